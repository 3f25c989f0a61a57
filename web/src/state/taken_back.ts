/** What of a session's changes to files was taken back. */

import type { Checkpoint } from "../api/events.ts";

/** A rewind that counts: everything from a prompt up to then was taken back. */
export interface TakenBack {
  receipt: string;
  /** The prompt before which files are as they were. */
  message: string;
  at: string;
  files: string[];
}

/** The rewinds that were not undone. Undoing one is a rewind to its receipt, and can itself be undone. */
export function takenBack(all: Checkpoint[]): TakenBack[] {
  const undone = new Set<string>();
  const found: TakenBack[] = [];
  for (const record of all.toReversed()) {
    const to = record.what === "rewind" ? record.rewind?.to : undefined;
    if (!to || undone.has(record.id)) continue;
    if (all.some((other) => other.what === "rewind" && other.id === to)) {
      undone.add(to);
      continue;
    }
    const message = all.find((other) => other.id === to)?.message ?? to;
    found.push({
      receipt: record.id,
      message,
      at: record.created_at,
      files: [...new Set((record.changes ?? []).map((change) => change.path))],
    });
  }
  return found.reverse();
}
