/** What a person is asked to allow, exactly: whatever of it nobody would see is written out. */

import type { Attention } from "../api/events.ts";
import { Markdown } from "../text/markdown.tsx";
import { hasHidden, visible } from "../text/safe.ts";
import { DiffView } from "../thread/tool.tsx";
import { edits, languageOf } from "../thread/tool_words.ts";

/** A text with everything in it that nobody would see. */
export function Exact({ text }: { text: string }) {
  return (
    <>
      {visible(text).map((piece, at) =>
        piece.hidden ? (
          <mark key={at} class="hidden-character" title="A character that nobody sees, or that turns text around">
            {piece.text}
          </mark>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** Exactly what is asked for. Nothing of it is cut. */
export function What({ attention }: { attention: Attention }) {
  const { tool_name: name, input } = attention.shown;
  const members = (typeof input === "object" && input !== null ? input : { input }) as Record<string, unknown>;
  const call = { type: "tool_use" as const, id: attention.tool_use_id, name, input: members };
  const path = String(members.file_path ?? "");
  const diff = edits(call);
  if (name === "Bash" && typeof members.command === "string") {
    const rest = Object.fromEntries(
      Object.entries(members).filter(([key]) => key !== "command" && key !== "description"),
    );
    return (
      <pre>
        <Exact text={members.command} />
        {Object.keys(rest).length > 0 && (
          <span class="quiet">
            <Exact text={`\n${JSON.stringify(rest)}`} />
          </span>
        )}
      </pre>
    );
  }
  if (diff) {
    return (
      <>
        <pre class="path">
          <Exact text={path || String(members.notebook_path ?? "")} />
        </pre>
        {hasHidden(JSON.stringify(input)) ? (
          <EveryMember members={members} />
        ) : (
          <DiffView diff={diff} language={languageOf(path)} />
        )}
      </>
    );
  }
  if (name === "ExitPlanMode") {
    return (
      <div class="plan-text prose-text">
        {members.plan ? <Plan text={String(members.plan)} /> : <p class="quiet">It wrote no plan.</p>}
      </div>
    );
  }
  return (
    <pre>
      <Exact text={JSON.stringify(input, null, 2)} />
    </pre>
  );
}

/** Everything that a tool is called with, where a picture of it would leave out what nobody sees. */
function EveryMember({ members }: { members: Record<string, unknown> }) {
  return (
    <>
      {Object.entries(members).map(([name, value]) => (
        <pre key={name}>
          <span class="quiet">
            <Exact text={`${name}:\n`} />
          </span>
          <Exact text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />
        </pre>
      ))}
    </>
  );
}

/** A plan as it is meant to be read, unless something in it is not meant to be. */
function Plan({ text }: { text: string }) {
  return hasHidden(text) ? (
    <pre>
      <Exact text={text} />
    </pre>
  ) : (
    <Markdown text={text} />
  );
}
