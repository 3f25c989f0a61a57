/** What was taken back: the part of the thread that files no longer follow, and the way forward again. */

import { Icon } from "../parts/icon.tsx";
import { Ago } from "../parts/time.tsx";
import { rewinds, undoReceipt } from "../state/changes.ts";
import type { TakenBack } from "../state/taken_back.ts";
import type { Transcript } from "../state/transcript.ts";
import { count } from "../text/words.ts";

export function TakenRow({ taken, transcript }: { taken: TakenBack; transcript: Transcript }) {
  const isLast = rewinds.value.at(-1)?.receipt === taken.receipt;
  return (
    <div class="row back taken-note">
      <svg preserveAspectRatio="none" viewBox="0 0 16 100" aria-hidden="true">
        <path d="M15 0C15 30 15 60 15 100" vector-effect="non-scaling-stroke" />
      </svg>
      <div class="note">
        <span>
          Taken back <Ago at={taken.at} />: {count(taken.files.length, "file")}. What was said stays.
        </span>
        <button type="button" onClick={() => void undoReceipt(transcript.name, taken.receipt)}>
          <Icon name="back" /> Undo{isLast && <kbd>u</kbd>}
        </button>
      </div>
    </div>
  );
}
