/** A branch that the conversation no longer follows: pale, beside the thread, and there when somebody wants it. */

import { useState } from "preact/hooks";
import { get, Refused } from "../api/keeper.ts";
import type { Card, Item, Page } from "../api/types.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { firstLine } from "../text/words.ts";
import { type Row, rowsOf } from "./rows.ts";
import { words } from "./tool_words.ts";

interface BranchProps {
  leaf: string;
  /** The last message that it shares with the conversation. */
  from: string;
  transcript: Transcript;
  card: Card | undefined;
}

/** Walks from the end of a branch to where it leaves. */
export function branchItems(all: Item[], leaf: string, from: string): Item[] {
  const byId = new Map(all.map((item) => [item.uuid, item]));
  const found: Item[] = [];
  let at = byId.get(leaf);
  while (at && at.uuid !== from && found.length < 500) {
    found.push(at);
    at = at.parent_uuid ? byId.get(at.parent_uuid) : undefined;
  }
  return found.reverse();
}

export function Branch({ leaf, from, transcript, card }: BranchProps) {
  const [rows, show] = useState<Row[] | undefined>(undefined);
  const [problem, fail] = useState("");
  const toggle = async () => {
    if (rows) return show(undefined);
    try {
      const page = await get<Page>(
        `/sessions/${encodeURIComponent(transcript.name)}/messages?branch=all&around=${encodeURIComponent(leaf)}&limit=500`,
      );
      const none = {
        problems: [],
        points: new Map(),
        branches: [],
        partings: new Map(),
        rewinds: [],
        isTaken: () => false,
        isResultKnown: () => true,
        previous: () => undefined,
        ordinal: () => undefined,
      };
      show(
        rowsOf(
          branchItems(page.items, leaf, from).map((item, number) => ({ number, item })),
          none,
        ),
      );
    } catch (error) {
      if (error instanceof Refused) fail(error.message);
    }
  };
  return (
    <div class="row back">
      <svg preserveAspectRatio="none" viewBox="0 0 16 100" aria-hidden="true">
        <path d="M15 0C15 8 2 6 2 14V100" vector-effect="non-scaling-stroke" />
      </svg>
      <div class="note">
        <span>A branch was abandoned here; the model will not see it</span>
        <button type="button" class="bare" aria-expanded={!!rows} onClick={() => void toggle()}>
          {rows ? "Hide" : "Show"}
        </button>
        {problem && <span class="bad">{problem}</span>}
      </div>
      {rows?.map((row) => (
        <p key={row.key} class="pale">
          {row.kind === "prompt" || row.kind === "prose" ? (
            plain(row.text)
          ) : row.kind === "tool" || row.kind === "strand" ? (
            <>
              {words(row.call, card?.cwd, true).verb}{" "}
              <code>{plain(words(row.call, card?.cwd, true).object ?? "")}</code>{" "}
              {plain(words(row.call, card?.cwd, true).rest ?? "")}
            </>
          ) : row.kind === "marker" ? (
            plain(firstLine(row.words))
          ) : null}
        </p>
      ))}
    </div>
  );
}
