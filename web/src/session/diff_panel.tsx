/** What a turn or a tool changed, file by file. */

import { useState } from "preact/hooks";
import type { FileDiff } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { type Look, looking } from "../state/changes.ts";
import { preview } from "../state/details.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { unified } from "../text/unified_diff.ts";
import { count, shortened } from "../text/words.ts";
import { promptName } from "../thread/prompt_name.ts";
import { DiffView } from "../thread/tool.tsx";
import { languageOf } from "../thread/tool_words.ts";

const ACTIONS: Record<FileDiff["action"], string> = {
  created: "new",
  changed: "",
  removed: "removed",
  unknown: "not known",
};

const SOURCES: Record<string, string> = {
  window: "changed while the tool ran; a save of yours at that moment looks the same",
  outside: "changed while no tool ran, probably by you",
  rewind: "changed by a rewind",
  claude_code: "kept by Claude Code itself",
};

/** More than this is opened one by one. */
const FEW = 6;

export function Counts({ file }: { file: Pick<FileDiff, "insertions" | "deletions"> }) {
  return (
    <span class="counts">
      {file.insertions ? <span class="plus">+{file.insertions}</span> : null}{" "}
      {file.deletions ? <span class="minus">−{file.deletions}</span> : null}
    </span>
  );
}

function File({ file, isOpen: isFirst }: { file: FileDiff; isOpen: boolean }) {
  const [isOpen, open] = useState(isFirst);
  const about = [ACTIONS[file.action], SOURCES[file.source], file.assumed ? "as it was found later" : ""].filter(
    Boolean,
  );
  return (
    <div class="file">
      <button type="button" class="call" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} />
        <code class="cut" title={file.path}>
          {plain(shortened(file.path, 48))}
        </code>
        <span class="end">
          {ACTIONS[file.action]} <Counts file={file} />
        </span>
      </button>
      {isOpen &&
        (file.diff ? (
          <DiffView diff={unified(file.diff)} language={languageOf(file.path)} />
        ) : (
          <p class="nothing">No lines to show: it is binary, too large, or no longer kept.</p>
        ))}
      {isOpen && about.length > (file.action === "changed" ? 0 : 1) && (
        <p class="nothing">{about.slice(file.action === "changed" ? 0 : 1).join(" · ")}</p>
      )}
    </div>
  );
}

function heading(look: Look, transcript: Transcript): string {
  if (look.part.kind === "tool") return "Changed by this call";
  const name = promptName(transcript, look.part.id);
  return look.part.kind === "turn" ? `Changed by ${name}` : `Changed since before ${name}`;
}

export function DiffPanel({ look, transcript }: { look: Look; transcript: Transcript }) {
  const items = (look.page?.items ?? []).filter((file) => !look.path || file.path === look.path);
  const sum = (of: "insertions" | "deletions") => items.reduce((all, file) => all + (file[of] ?? 0), 0);
  const { part } = look;
  return (
    <section class="plan">
      <h2 class="step">{heading(look, transcript)}</h2>
      {!look.page && !look.problem && <p class="quiet">Comparing files.</p>}
      {look.page && (
        <p class="sum">
          {items.length === 0 ? (
            "Nothing that was recorded is different."
          ) : (
            <>
              {count(items.length, "file")}{" "}
              <Counts file={{ insertions: sum("insertions"), deletions: sum("deletions") }} />
            </>
          )}
        </p>
      )}
      {items.map((file) => (
        <File key={file.path} file={file} isOpen={items.length <= FEW} />
      ))}
      {(look.page?.incomplete ?? []).map((words) => (
        <p key={words} class="quiet">
          May not be everything: {plain(words)}
        </p>
      ))}
      {look.problem && (
        <p class="refused" role="alert">
          {look.problem.message}
        </p>
      )}
      <div class="acts">
        {part.kind !== "tool" && items.length > 0 && look.page?.kept_by === "rethread" && (
          <button
            type="button"
            onClick={() => {
              looking.value = undefined;
              void preview(look.session, part.id);
            }}
          >
            <Icon name="back" /> Rewind to before it
          </button>
        )}
        <button type="button" class="bare" onClick={() => (looking.value = undefined)}>
          Close
        </button>
      </div>
    </section>
  );
}
