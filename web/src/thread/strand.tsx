/** A subagent: a thinner strand beside the thread, which opens in place. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api/keeper.ts";
import type { Card, Item, Page } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { subagents } from "../state/details.ts";
import type { Transcript } from "../state/transcript.ts";
import { Markdown } from "../text/markdown.tsx";
import { plain } from "../text/safe.ts";
import { count } from "../text/words.ts";
import { blocks, type ToolResult, type ToolUse } from "./blocks.ts";
import { rowsOf } from "./rows.ts";
import { openness, Tool } from "./tool.tsx";
import { words } from "./tool_words.ts";

interface StrandProps {
  call: ToolUse;
  result: ToolResult | undefined;
  transcript: Transcript;
  card: Card | undefined;
  isRunning: boolean;
  item: Item;
}

export function Strand({ call, result, transcript, card, isRunning }: StrandProps) {
  const isOpen = openness(call.id, false);
  const agent = subagents.value.find((it) => it.tool_use_id === call.id);
  const live = transcript.strands.value.get(agent?.agent_id ?? call.id) ?? transcript.strands.value.get(call.id);
  const about = words(call, card?.cwd, !!result);
  const isFailed = !!result?.isError;
  return (
    <>
      <span class="strand" aria-hidden="true" />
      <button type="button" class="call" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <Icon name={isOpen.value ? "down" : "right"} />
        <b>Subagent</b>
        <span class="cut">{plain(about.rest ?? "")}</span>
        <span class="end">
          {live && !result ? count(live.length, "message") : agent?.agent_type ? plain(agent.agent_type) : ""}
          {isFailed ? (
            <Icon name="failed" tone="bad" />
          ) : result ? (
            <Icon name="ok" tone="good" />
          ) : isRunning ? (
            <Icon name="running" tone="accent" />
          ) : null}
        </span>
      </button>
      {isOpen.value && <Within agentId={agent?.agent_id} transcript={transcript} card={card} live={live} />}
      {result && (isOpen.value || isFailed) && (
        <div class="say prose-text">
          <Markdown text={result.text.slice(0, 8000)} />
        </div>
      )}
    </>
  );
}

/** What a subagent did; read when it is opened. */
function Within({
  agentId,
  transcript,
  card,
  live,
}: {
  agentId: string | undefined;
  transcript: Transcript;
  card: Card | undefined;
  live: Item[] | undefined;
}) {
  const [items, put] = useState<Item[] | undefined>(undefined);
  const [most, more] = useState(40);
  useEffect(() => {
    if (!agentId) return;
    let isWanted = true;
    get<Page>(
      `/sessions/${encodeURIComponent(transcript.name)}/messages?agent=${encodeURIComponent(agentId)}&limit=500`,
    ).then(
      (page) => isWanted && put(page.items),
      () => isWanted && put([]),
    );
    return () => {
      isWanted = false;
    };
  }, [agentId, transcript]);
  const all = useMemo(() => {
    const seen = new Set((items ?? []).map((item) => item.uuid));
    return [...(items ?? []), ...(live ?? []).filter((item) => !seen.has(item.uuid))];
  }, [items, live]);
  const results = useMemo(() => {
    const found = new Map<string, ToolResult>();
    for (const item of all)
      for (const block of blocks(item)) if (block.type === "tool_result") found.set(block.tool_use_id, block);
    return found;
  }, [all]);
  if (!agentId && !live) return <p class="quiet nothing">Its conversation is not kept beside this session.</p>;
  if (!items && !live) return <p class="quiet nothing">Reading…</p>;
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
  // Its first message is the task, which is said above.
  const rows = rowsOf(
    all.map((item, at) => ({ number: at, item })),
    none,
  ).filter((row) => row.kind === "tool" || row.kind === "prose" || row.kind === "strand");
  return (
    <div class="within">
      {rows.slice(0, most).map((row) => {
        if (row.kind === "prose") {
          return (
            <div key={row.key} class="say prose-text">
              <Markdown text={row.text} />
            </div>
          );
        }
        if (row.kind !== "tool" && row.kind !== "strand") return null;
        return (
          <Tool
            key={row.key}
            call={row.call}
            result={results.get(row.call.id)}
            directory={card?.cwd}
            uuid={undefined}
            startedAt={row.item.timestamp}
            isRunning={false}
          />
        );
      })}
      {rows.length > most && (
        <button type="button" class="text" onClick={() => more(most + 200)}>
          {count(rows.length - most, "more step")}
        </button>
      )}
    </div>
  );
}
