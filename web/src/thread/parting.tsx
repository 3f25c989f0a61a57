/** A place where the thread parts: a fork leaves it sideways and can be followed, or it left another one here. */

import { Ago } from "../parts/time.tsx";
import type { Parting } from "../state/forks.ts";
import { address } from "../state/route.ts";
import { nameOf, title } from "../state/sessions.ts";
import { plain } from "../text/safe.ts";
import { count } from "../text/words.ts";

export function PartingRow({ parting, isTaken }: { parting: Parting; isTaken: boolean }) {
  const { card, kind, message } = parting;
  const isFork = kind === "fork";
  return (
    <div class={`row fork${isFork ? "" : " origin"}${isTaken ? " taken" : ""}`}>
      <svg viewBox="0 0 24 28" aria-hidden="true">
        {isFork ? <path d="M2 0c0 14 4 14 14 14" /> : <path d="M16 14C6 14 2 14 2 28" />}
        <circle cx="19" cy="14" r="3" />
      </svg>
      <span>{isFork ? "Fork" : "Forked from"}</span>
      <a
        class="link cut"
        href={address({ view: "session", session: nameOf(card), message: isFork ? undefined : message })}
      >
        {plain(title(card))}
      </a>
      <span class="quiet wide">
        {isFork && typeof card.message_count === "number" ? `${count(card.message_count, "message")} · ` : ""}
        <Ago at={card.updated_at} />
      </span>
    </div>
  );
}
