/** What the keeper sends that its description does not spell out: frames of the stream, and free-form members. */

/** One frame of the stream. */
export interface Frame {
  v: number;
  epoch: string;
  seq?: number;
  ts?: string;
  topic?: string;
  type: string;
  data: unknown;
}

/** A piece of a message that is just being said. */
export interface Delta {
  message_id: string | null;
  index: number;
  kind: string;
  /** Where it begins, in bytes of UTF-8. */
  offset: number;
  text: string;
}

/** What was said so far. */
export interface Partial {
  message_id: string | null;
  blocks: { kind: string; text: string }[];
}

/** A tool that still runs. */
export interface Progress {
  tool_use_id?: unknown;
  elapsed_time_seconds?: unknown;
}

/** A prompt that waits for its turn. */
export interface Queued {
  client_message_id: string;
  parts: { type: string; text?: string }[];
}

/** The prompts that wait; held ones do so until a person goes on with them. */
export interface Waiting {
  items: Queued[];
  held: boolean;
}

/** What somebody is asked to allow, to the letter. */
export interface Shown {
  id: string;
  session_id: string;
  cwd: string | null;
  tool_name: string;
  input: unknown;
  description: string | null;
  agent_id: string | null;
}

export type AttentionState = "pending" | "allowed" | "denied" | "withdrawn" | "lost";

/** A request for a decision. */
export interface Attention {
  shown: Shown;
  digest: string;
  state: AttentionState;
  tool_use_id: string;
  message: string | null;
  requested_at: string;
  decided_at: string | null;
  decided_by: string | null;
  repeats: string | null;
  hidden_characters: boolean;
}

/** What is known of a path at a checkpoint. */
export interface Change {
  path: string;
  [more: string]: unknown;
}

/** A moment that files can be taken back to. */
export interface Checkpoint {
  id: string;
  what: string;
  created_at: string;
  message?: string;
  tool_use?: string[];
  changes?: Change[];
  left_out?: unknown[];
  /** What a rewind went back to. */
  rewind?: { to: string };
}

/** One path of a rewind, and what happens to it. */
export interface Step {
  path: string;
  action: "restore" | "create" | "remove";
  assumed: boolean;
  forced: boolean;
  insertions: number | null;
  deletions: number | null;
}

/** A path that stops a rewind. */
export interface Conflict {
  path: string;
  reason: string;
  because: string;
}

/** What a rewind would do, or did. */
export interface Rewind {
  digest: string;
  steps: Step[];
  result: {
    can_rewind?: boolean;
    canRewind?: boolean;
    error?: string;
    insertions?: number;
    deletions?: number;
    receipt?: string;
    complete?: boolean;
    incomplete?: string[];
    conflicts?: Conflict[];
    skipped?: { path: string; because?: string; reason?: string }[];
  };
  undo: string | null;
  fork: string | null;
}
