/** Files, checkpoints, rewinds and forks of a session, beside its thread. */

import type { Card } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { StateMark } from "../parts/state_mark.tsx";
import { Ago, Time } from "../parts/time.tsx";
import { lookAt, overview, rewinds, undoReceipt } from "../state/changes.ts";
import { preview, tree } from "../state/details.ts";
import { family, partings } from "../state/forks.ts";
import { address } from "../state/route.ts";
import { can, nameOf, title } from "../state/sessions.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { count, shortened } from "../text/words.ts";
import { promptName } from "../thread/prompt_name.ts";
import { abandonedShown, jumpTo, knots } from "../thread/thread.tsx";
import { Counts } from "./diff_panel.tsx";

export function Changes({ transcript, card }: { transcript: Transcript; card: Card | undefined }) {
  return (
    <>
      <Files transcript={transcript} />
      <Checkpoints transcript={transcript} />
      <Rewinds transcript={transcript} />
      {card && <Branches transcript={transcript} card={card} />}
    </>
  );
}

function Files({ transcript }: { transcript: Transcript }) {
  const changed = overview.value?.session === transcript.name ? overview.value.page.items : [];
  const points = [...knots.value.values()];
  const recorded = [...new Set(points.flatMap((point) => point.files))];
  const same = recorded.filter((path) => !changed.some((file) => file.path === path));
  const first = (points.find((it) => it.keptBy === "rethread") ?? points[0])?.message ?? "";
  return (
    <section>
      <h2>
        Files <span class="quiet">{recorded.length ? `${changed.length} changed` : ""}</span>
      </h2>
      {recorded.length === 0 && (
        <p class="quiet">
          {can("checkpoints")
            ? "Nothing recorded yet. Files are kept before the first tool of a turn that this keeper drives changes them."
            : "This keeper records no files, because it drives no sessions."}
        </p>
      )}
      <ul class="files">
        {changed.slice(0, 60).map((file) => (
          <li key={file.path}>
            <Icon name={file.action === "removed" ? "close" : file.action === "created" ? "plus" : "edit"} />
            <button
              type="button"
              class="text plain grow cut"
              title={`What changed in ${file.path}`}
              onClick={() => void lookAt(transcript.name, { kind: "since", id: first }, file.path)}
            >
              <code>{plain(shortened(file.path, 34))}</code>
            </button>
            <span class="vh">{file.action}</span>
            <Counts file={file} />
          </li>
        ))}
        {same.slice(0, 20).map((path) => (
          <li key={path} class="quiet">
            <Icon name="read" />
            <code class="grow cut" title={path}>
              {plain(shortened(path, 34))}
            </code>
            <span>as it was</span>
          </li>
        ))}
      </ul>
      {changed.length > 1 && (
        <button type="button" class="text" onClick={() => void lookAt(transcript.name, { kind: "since", id: first })}>
          Open all of it
        </button>
      )}
    </section>
  );
}

function Checkpoints({ transcript }: { transcript: Transcript }) {
  const points = [...knots.value.values()].reverse();
  if (points.length === 0) return null;
  const isBack = (at: string, message: string) =>
    rewinds.value.some((it) => message !== it.message && at < it.at && at > (knots.value.get(it.message)?.at ?? ""));
  return (
    <section>
      <h2>
        Checkpoints <span class="quiet">{points.length}</span>
      </h2>
      <ol class="points">
        {points.map((point) => (
          <li key={point.message} class={isBack(point.at, point.message) ? "taken" : undefined}>
            <span class="grow">
              <button type="button" class="text plain" onClick={() => void jumpTo(transcript, point.message)}>
                Before {promptName(transcript, point.message)}
              </button>
              <br />
              <button
                type="button"
                class="text"
                onClick={() => void lookAt(transcript.name, { kind: "turn", id: point.message })}
              >
                {count(point.files.length, "file")}
              </button>{" "}
              <span class="quiet">·</span>{" "}
              {point.keptBy === "rethread" ? (
                <button type="button" class="text" onClick={() => void preview(transcript.name, point.message)}>
                  Rewind to here
                </button>
              ) : (
                <span class="quiet">kept by Claude Code</span>
              )}
            </span>
            <Time at={point.at} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Rewinds({ transcript }: { transcript: Transcript }) {
  if (rewinds.value.length === 0) return null;
  return (
    <section>
      <h2>
        Rewinds <span class="quiet">{rewinds.value.length}</span>
      </h2>
      <ul class="files">
        {rewinds.value.toReversed().map((it) => (
          <li key={it.receipt}>
            <Icon name="back" />
            <span class="grow">
              {count(it.files.length, "file")}, <Ago at={it.at} />
            </span>
            <button type="button" class="text" onClick={() => void undoReceipt(transcript.name, it.receipt)}>
              Undo
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The sessions that were forked from each other, as a tree, and what was abandoned within this one. */
function Branches({ transcript, card }: { transcript: Transcript; card: Card }) {
  const relatives = family(card);
  const abandoned = tree.value?.branches.filter((branch) => !branch.active).length ?? 0;
  if (relatives.length === 0 && abandoned === 0) return null;
  const place = (id: string) => partings.value.find((it) => it.card.session_id === id)?.message;
  return (
    <section>
      <h2>
        Branches <span class="quiet">{relatives.length || ""}</span>
      </h2>
      <ul class="files kin">
        {relatives.slice(0, 40).map(({ card: it, depth }) => {
          const isHere = it.session_id === card.session_id;
          const at = place(it.session_id);
          return (
            <li key={nameOf(it)} class={isHere ? "here" : undefined} data-depth={Math.min(depth, 6)}>
              <Icon name={depth === 0 ? "thread" : "fork"} />
              {isHere ? (
                <b class="grow cut" aria-current="page">
                  {plain(title(it))}
                </b>
              ) : (
                <a class="grow cut" href={address({ view: "session", session: nameOf(it) })}>
                  {plain(title(it))}
                </a>
              )}
              {at && (
                <button
                  type="button"
                  class="text"
                  title="Where the two part, on this thread"
                  onClick={() => void jumpTo(transcript, at)}
                >
                  where
                </button>
              )}
              <StateMark card={it} />
            </li>
          );
        })}
      </ul>
      {abandoned > 0 && (
        <label class="switching">
          <span class="grow">Show {abandoned === 1 ? "the abandoned branch" : `${abandoned} abandoned branches`}</span>
          <input
            type="checkbox"
            role="switch"
            aria-checked={abandonedShown.value}
            checked={abandonedShown.value}
            onChange={() => (abandonedShown.value = !abandonedShown.value)}
          />
        </label>
      )}
    </section>
  );
}
