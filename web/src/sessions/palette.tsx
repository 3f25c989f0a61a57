/** One box for sessions, messages and actions. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/keeper.ts";
import type { Hit, SearchPage } from "../api/types.ts";
import { takeFocus } from "../parts/focus.ts";
import { Icon, type Mark, type Sign } from "../parts/icon.tsx";
import { archive, fork, moveToTrash, unarchive } from "../state/actions.ts";
import { pending } from "../state/attention.ts";
import { go, shownSession } from "../state/route.ts";
import { can, cardOf, look, matching, nameOf, sessions, title } from "../state/sessions.ts";
import { turnTheme } from "../state/settings.ts";
import { plain } from "../text/safe.ts";
import { place } from "../text/words.ts";
import { openHelp } from "./help.tsx";
import { openNew } from "./new_session.tsx";

const isOpen = signal(false);

export function openPalette(): void {
  isOpen.value = true;
}

interface Choice {
  key: string;
  icon: Mark | Sign;
  words: string;
  more?: string | undefined;
  hit?: Hit;
  act: () => void;
}

function actions(): Choice[] {
  const name = shownSession.value;
  const card = name ? cardOf(name) : undefined;
  const all: Choice[] = [
    { key: "new", icon: "plus", words: "New session", act: openNew },
    { key: "list", icon: "list", words: "All sessions", act: () => go({ view: "list" }) },
    { key: "archived", icon: "folder", words: "Archived sessions", act: () => go({ view: "archive" }) },
    {
      key: "attention",
      icon: "gem",
      words: `Attention${pending.value.length ? `, ${pending.value.length} waiting` : ""}`,
      act: () => go({ view: "attention" }),
    },
    { key: "theme", icon: "theme", words: "Change the theme", act: turnTheme },
    { key: "help", icon: "question", words: "Keys", act: openHelp },
  ];
  if (card && name) {
    if (can("drive"))
      all.push({ key: "fork", icon: "fork", words: "Fork this session from its end", act: () => void fork(name) });
    all.push({
      key: "archive",
      icon: "folder",
      words: card.archived ? "Bring this session back from the archive" : "Archive this session",
      act: () => void (card.archived ? unarchive(card) : archive(card)),
    });
    all.push({
      key: "trash",
      icon: "close",
      words: "Move this session to the trash",
      act: () => void moveToTrash(card),
    });
  }
  return all;
}

export function Palette() {
  return isOpen.value ? <Box /> : null;
}

function Box() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, write] = useState("");
  const [at, move] = useState(0);
  const [hits, find] = useState<Hit[]>([]);
  const close = () => (isOpen.value = false);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    find([]);
    if (text.trim().length < 3) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<SearchPage>(`/search?limit=20&q=${encodeURIComponent(text.trim())}`, abort.signal).then(
        (page) => find(page.items),
        () => {},
      );
    }, 180);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const choices = useMemo<Choice[]>(() => {
    const cards = matching(sessions.value, text).slice(0, text ? 8 : 5);
    const open = (session: string, message?: string) => go({ view: "session", session, message });
    const word = text.trim().toLowerCase();
    return [
      ...cards.map(
        (card): Choice => ({
          key: nameOf(card),
          icon: look(card),
          words: title(card),
          more: place(card.cwd),
          act: () => open(nameOf(card)),
        }),
      ),
      ...actions().filter((choice) => choice.words.toLowerCase().includes(word)),
      ...hits.map(
        (hit, number): Choice => ({
          key: `hit.${number}`,
          icon: "find",
          words: hit.snippet,
          more: hit.name ?? hit.session_id.slice(0, 8),
          hit,
          act: () => open(nameOf(hit), hit.agent_id ? undefined : (hit.message ?? undefined)),
        }),
      ),
    ];
  }, [text, hits]);
  const chosen = Math.min(at, choices.length - 1);
  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.act();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(Math.min(chosen + 1, choices.length - 1));
    else if (event.key === "ArrowUp") move(Math.max(0, chosen - 1));
    else if (event.key === "Enter") take(choices[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="panel palette"
      aria-label="Find anything"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="panel-body">
        <label class="field big">
          <Icon name="find" />
          <input
            ref={takeFocus}
            role="combobox"
            aria-expanded="true"
            aria-controls="choices"
            aria-activedescendant={choices[chosen] ? `choice-${chosen}` : undefined}
            aria-label="Find sessions, messages and actions"
            placeholder="Sessions, messages, actions"
            value={text}
            onInput={(event) => {
              write(event.currentTarget.value);
              move(0);
            }}
            onKeyDown={press}
          />
        </label>
        <div id="choices" role="listbox" aria-label="Found">
          {choices.map((choice, number) => (
            <div
              key={choice.key}
              id={`choice-${number}`}
              role="option"
              aria-selected={number === chosen}
              class={number === chosen ? "choice here" : "choice"}
              onMouseMove={() => move(number)}
              onClick={() => take(choice)}
            >
              <Icon name={choice.icon} />
              <span class="cut">{choice.hit ? <Snippet hit={choice.hit} /> : plain(choice.words)}</span>
              {choice.more && <span class="quiet cut more-of">{plain(choice.more)}</span>}
            </div>
          ))}
          {choices.length === 0 && <p class="quiet none">Nothing found.</p>}
        </div>
      </div>
    </dialog>
  );
}

/** Some text around what was found. */
export function Snippet({ hit }: { hit: Hit }) {
  const letters = [...hit.snippet];
  const [from, to] = hit.ranges[0] ?? [0, 0];
  const begin = Math.max(0, (from ?? 0) - 32);
  return (
    <>
      {plain(letters.slice(begin, from).join("").replace(/\s+/g, " "))}
      <mark>{plain(letters.slice(from, to).join(""))}</mark>
      {plain(letters.slice(to).join("").replace(/\s+/g, " "))}
    </>
  );
}
