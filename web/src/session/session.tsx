/** A session: its name and state, its thread, what can be said to it, and the details beside it. */

import { useEffect, useState } from "preact/hooks";
import type { Card } from "../api/types.ts";
import { takeFocus } from "../parts/focus.ts";
import { Icon } from "../parts/icon.tsx";
import { StateMark, TONES, WORDS } from "../parts/state_mark.tsx";
import { archive, fork, moveToTrash, rename, unarchive } from "../state/actions.ts";
import { now } from "../state/clock.ts";
import { isSheetOpen, problems, showBytes, showTab } from "../state/details.ts";
import { transcript } from "../state/live.ts";
import { go, route } from "../state/route.ts";
import { branchOf, can, cardOf, info, isListed, look, title } from "../state/sessions.ts";
import { isPanelOpen } from "../state/settings.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { count, duration, place } from "../text/words.ts";
import { Bytes } from "../thread/fray.tsx";
import { current, isAtEnd, jump, jumpTo, Thread } from "../thread/thread.tsx";
import { Composer } from "./composer.tsx";
import { Details } from "./details.tsx";
import { FindBar, openFind } from "./find.tsx";

export function SessionView() {
  const shown = transcript.value;
  const name = route.value.session ?? "";
  const card = cardOf(name);
  const message = route.value.message;
  const isReady = shown?.reading.value.state === "ready";
  useEffect(() => {
    if (!shown || !isReady || !message) return;
    void jumpTo(shown, message);
  }, [shown, isReady, message]);
  // What keys were at belongs to the session that was left.
  useEffect(() => {
    if (!message) current.value = undefined;
  }, [shown]);
  if (!shown) return null;
  return (
    <>
      <main class="main">
        <Header card={card} name={name} shown={shown} />
        <Banners card={card} />
        <FindBar transcript={shown} />
        <div class="reading">
          <Reading shown={shown} card={card} />
          {isReady && !isAtEnd.value && shown.total.value > 0 && (
            <button
              type="button"
              class="to-end"
              onClick={() => (jump.value = "end")}
              title="To the end (G)"
              aria-label="To the end"
            >
              <Icon name="down" />
            </button>
          )}
        </div>
        {isReady && <Composer transcript={shown} card={card} />}
      </main>
      <Details transcript={shown} card={card} />
    </>
  );
}

function Reading({ shown, card }: { shown: Transcript; card: Card | undefined }) {
  const reading = shown.reading.value;
  const [isSlow, wait] = useState(false);
  useEffect(() => {
    wait(false);
    const timer = setTimeout(() => wait(true), 150);
    return () => clearTimeout(timer);
  }, [shown]);
  if (reading.state === "failed") {
    const { problem } = reading.error;
    const isGone = problem.status === 404;
    return (
      <div class="nothing-here" role="alert">
        <h2>{isGone ? "There is no such session" : "This session cannot be shown"}</h2>
        <p>
          {isGone
            ? "It may have been deleted, or lies outside of the directories that this keeper may show."
            : plain(reading.error.message)}
        </p>
        {problem.hint && <p class="quiet">{problem.hint}</p>}
        {card?.health.reason && <p class="bad">{plain(card.health.reason)}</p>}
        <div class="acts">
          <button type="button" onClick={() => void shown.open()}>
            Try again
          </button>
          <button type="button" class="bare" onClick={() => go({ view: "list" })}>
            All sessions
          </button>
        </div>
      </div>
    );
  }
  if (reading.state === "loading") {
    return (
      <div class="loading-thread" role="status" aria-busy="true" aria-label="Reading the session">
        {isSlow && [64, 88, 40, 72, 56].map((width) => <span key={width} class={`ghost w${width}`} />)}
      </div>
    );
  }
  if (shown.total.value === 0 && card?.health.status === "unreadable") {
    const seen = problems.value.find((it) => it.excerpt);
    return (
      <div class="nothing-here">
        <h2>Nothing of this session can be read</h2>
        <p class="bad">{plain(card.health.reason ?? "The file is damaged.")}</p>
        {seen?.excerpt && <Bytes excerpt={seen.excerpt} />}
        <p class="quiet">The file stays as it is.</p>
        {seen && seen.length > 0 && (
          <button type="button" onClick={() => showBytes(seen.offset, seen.length)}>
            Raw bytes
          </button>
        )}
      </div>
    );
  }
  return <Thread key={shown.name} transcript={shown} card={card} />;
}

function Header({ card, name, shown }: { card: Card | undefined; name: string; shown: Transcript }) {
  const [isNaming, naming] = useState(false);
  const [isMenu, menu] = useState(false);
  const since = shown.turnSince.value;
  const [, tick] = useState(0);
  useEffect(() => {
    if (since === undefined) return;
    const timer = setInterval(() => tick((it) => it + 1), 1000);
    return () => clearInterval(timer);
  }, [since]);
  const state = card ? look(card) : undefined;
  const words = card ? title(card) : isListed.value ? `Session ${name.slice(0, 8)}` : "";
  now.value;
  return (
    <header class="bar">
      <button type="button" class="bare icon narrow" aria-label="All sessions" onClick={() => go({ view: "list" })}>
        <Icon name="list" />
      </button>
      {isNaming && card ? (
        <input
          class="naming"
          ref={takeFocus}
          aria-label="Name of the session"
          defaultValue={title(card)}
          onBlur={() => naming(false)}
          onKeyDown={(event) => {
            if (event.key === "Escape") naming(false);
            if (event.key !== "Enter") return;
            const value = event.currentTarget.value.trim();
            if (value) void rename(card, value);
            naming(false);
          }}
        />
      ) : (
        <h1 class="cut">{plain(words)}</h1>
      )}
      <code
        class="quiet cut wide"
        title={card ? `${card.cwd ?? ""}${branchOf(card) ? ` on ${branchOf(card)}` : ""}` : undefined}
      >
        {[place(card?.cwd), branchOf(card)].filter(Boolean).join(" · ")}
      </code>
      <span class="grow" />
      {card && state && (
        <span class="state" role="status">
          <StateMark card={card} />
          <span class={TONES[state] === "bad" ? "bad" : TONES[state] === "wait" ? "wait" : undefined}>
            {WORDS[state]}
          </span>
          {since !== undefined && <span class="quiet">{duration(Date.now() - since)}</span>}
        </span>
      )}
      <button
        type="button"
        class="bare icon wide"
        title="Find in this session (/)"
        aria-label="Find in this session"
        onClick={openFind}
      >
        <Icon name="find" />
      </button>
      {can("drive") && (
        <button
          type="button"
          class="bare icon wide"
          title="Fork from the end (f)"
          aria-label="Fork from the end"
          onClick={() => void fork(name)}
        >
          <Icon name="fork" />
        </button>
      )}
      <button
        type="button"
        class="bare icon wide"
        title="Details (d)"
        aria-label="Details"
        aria-pressed={isPanelOpen.value}
        onClick={() => {
          if (window.matchMedia("(max-width: 1099px)").matches) isSheetOpen.value = !isSheetOpen.value;
          else isPanelOpen.value = !isPanelOpen.value;
        }}
      >
        <Icon name="panel" />
      </button>
      {card && (
        <span class="menu-place">
          <button
            type="button"
            class="bare icon"
            title="More"
            aria-label="More"
            aria-expanded={isMenu}
            onClick={() => menu(!isMenu)}
          >
            <Icon name="dots" />
          </button>
          {isMenu && (
            <div
              class="menu"
              role="menu"
              tabIndex={-1}
              onClick={() => menu(false)}
              onKeyDown={(event) => event.key === "Escape" && menu(false)}
            >
              <button type="button" role="menuitem" onClick={() => naming(true)}>
                Rename
              </button>
              <button type="button" role="menuitem" onClick={openFind}>
                Find in this session
              </button>
              {can("drive") && (
                <button type="button" role="menuitem" onClick={() => void fork(name)}>
                  Fork from the end <kbd>f</kbd>
                </button>
              )}
              <button
                type="button"
                role="menuitem"
                onClick={() => void (card.archived ? unarchive(card) : archive(card))}
              >
                {card.archived ? "Bring back from the archive" : "Archive"}
              </button>
              <button type="button" role="menuitem" onClick={() => void moveToTrash(card)}>
                Move to trash
              </button>
            </div>
          )}
        </span>
      )}
    </header>
  );
}

/** Goes to the next damaged place, from the one that is in view. */
let atProblem = -1;
export function nextProblem(): void {
  const damaged = problems.value.filter((it) => it.damage);
  if (damaged.length === 0) return;
  atProblem = (atProblem + 1) % damaged.length;
  goToProblem(damaged[atProblem]?.offset ?? 0);
}

/** Goes to a damaged place. */
export function goToProblem(offset: number): void {
  const shown = transcript.value;
  if (!shown) return;
  const there = document.querySelector(`[data-problem="${offset}"]`);
  if (there) {
    there.scrollIntoView({ block: "center" });
    return;
  }
  for (let number = 0; number < shown.total.value; number++) {
    const item = shown.item(number);
    if (item && (item.offset ?? 0) > offset) {
      jump.value = { number };
      return;
    }
  }
  jump.value = "end";
}

function Banners({ card }: { card: Card | undefined }) {
  const damaged = problems.value.filter((it) => it.damage).length;
  const about = info.value;
  return (
    <>
      {(about?.bypass_allowed || card?.permission_mode === "bypassPermissions") && (
        <div class="banner">
          <Icon name="failed" tone="bad" />
          <span class="grow">
            {card?.permission_mode === "bypassPermissions" ? (
              <b>This session asks nobody before it acts.</b>
            ) : (
              <b>Sessions may run without asking anybody.</b>
            )}{" "}
            {about?.bypass_allowed && (
              <>
                This keeper was started with <code>--allow-bypass</code>.
              </>
            )}
          </span>
        </div>
      )}
      {card?.archived && (
        <div class="banner calm">
          <Icon name="folder" />
          <span class="grow">
            <b>This session is in the archive.</b> It is read and continued like any other.
          </span>
          <button type="button" onClick={() => void unarchive(card)}>
            Bring back
          </button>
        </div>
      )}
      {card?.state !== "running" && card?.health.status !== "unreadable" && damaged > 0 && (
        <div class="banner">
          <Icon name="damaged" tone="bad" />
          <span class="grow">
            <b>
              {damaged === 1
                ? "One place in this session file cannot be read."
                : `${count(damaged, "place")} in this session file cannot be read.`}
            </b>{" "}
            Everything else is shown.
          </span>
          <button type="button" onClick={nextProblem}>
            Next problem <kbd>p</kbd>
          </button>
          <button type="button" class="bare wide" onClick={() => showTab("problems")}>
            Details
          </button>
        </div>
      )}
    </>
  );
}
