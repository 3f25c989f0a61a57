/** The frame: sessions, thread, details; one column and a bar for the thumb on a phone. */

import { useEffect, useState } from "preact/hooks";
import { isLoggedOut } from "./api/keeper.ts";
import { AttentionView } from "./attention/attention.tsx";
import { Copy } from "./parts/copy.tsx";
import { Icon, Knot } from "./parts/icon.tsx";
import { SessionView } from "./session/session.tsx";
import { Help } from "./sessions/help.tsx";
import { List } from "./sessions/list.tsx";
import { NewSession } from "./sessions/new_session.tsx";
import { Palette } from "./sessions/palette.tsx";
import { Sidebar } from "./sessions/sidebar.tsx";
import { dismiss, toasts } from "./state/actions.ts";
import { pending } from "./state/attention.ts";
import { looking } from "./state/changes.ts";
import { isSheetOpen, rewinding, tab } from "./state/details.ts";
import { stream, transcript } from "./state/live.ts";
import { route } from "./state/route.ts";
import { info } from "./state/sessions.ts";
import { infoWidth, isPanelOpen, sideWidth } from "./state/settings.ts";
import { count } from "./text/words.ts";

export function App() {
  if (isLoggedOut.value) return <LoggedOut />;
  const { view } = route.value;
  // Files take more room than facts.
  const isWide =
    tab.value === "changes" && [looking.value, rewinding.value].some((it) => it && it.session === route.value.session);
  return (
    <>
      <Stale />
      {info.value?.demo && (
        <p class="demo-note">This is a demonstration: nothing here is yours, and nothing you do leaves it.</p>
      )}
      {view === "list" || view === "archive" ? (
        <List isArchive={view === "archive"} />
      ) : (
        <div
          class={`app ${view === "attention" ? "ask" : isPanelOpen.value ? "with-info" : ""}${isWide ? " wide-info" : ""}`}
          style={{ "--side": `${sideWidth.value}px`, "--info": `${infoWidth.value}px` }}
        >
          <Sidebar />
          {view === "attention" ? <AttentionView /> : <SessionView />}
        </div>
      )}
      <Dock />
      <Toasts />
      <Palette />
      <Help />
      <NewSession />
    </>
  );
}

/** Says when what is shown may be old, and when that is tried to be mended. */
function Stale() {
  const link = stream.link.value;
  const [, tick] = useState(0);
  const [isShown, show] = useState(false);
  const isDown = link.state === "waiting" || link.state === "stale";
  useEffect(() => {
    if (!isDown) {
      if (link.state === "open") show(false);
      return;
    }
    // A blink of the network is nothing to tell of.
    const late = setTimeout(() => show(true), 1200);
    const timer = setInterval(() => tick((it) => it + 1), 1000);
    return () => {
      clearTimeout(late);
      clearInterval(timer);
    };
  }, [isDown, link]);
  if (!isShown || link.state === "open") return null;
  const seconds = link.state === "waiting" ? Math.max(0, Math.ceil((link.until - Date.now()) / 1000)) : 0;
  return (
    <div class="stale" role="status">
      <Icon name="failed" tone="bad" />
      <span class="grow">
        <b>The keeper does not answer.</b> What is shown may be old.{" "}
        {seconds > 0 ? `Trying again in ${count(seconds, "second")}.` : "Trying again."}
      </span>
      <button type="button" onClick={() => stream.now()}>
        Try now
      </button>
    </div>
  );
}

function LoggedOut() {
  return (
    <main class="hello">
      <h1 class="brand-line">
        <Knot /> You are not logged in
      </h1>
      <ol>
        <li>
          <Icon name="terminal" />
          Type this in a terminal on the machine where the keeper runs:
        </li>
      </ol>
      <p class="command big">
        <code>rethread open</code> <Copy text="rethread open" label="Copy the command" words="Copy" />
      </p>
      <p class="quiet">It opens this page with a link that works once, within a minute.</p>
    </main>
  );
}

/** What a thumb reaches. */
function Dock() {
  const { view, session } = route.value;
  const waiting = pending.value.length;
  const back = session ?? transcript.value?.name;
  return (
    <nav class="dock" aria-label="Views">
      <a
        href="#"
        class={view === "list" || view === "archive" ? "here" : ""}
        aria-current={view === "list" ? "page" : undefined}
      >
        <Icon name="list" /> Sessions
      </a>
      <a
        href="#attention"
        class={view === "attention" ? "here" : ""}
        aria-current={view === "attention" ? "page" : undefined}
      >
        <Icon name="gem" /> Attention
        {waiting > 0 && <span class="count need">{waiting}</span>}
      </a>
      <a
        href={back ? `#session=${encodeURIComponent(back)}` : "#"}
        class={view === "session" && !isSheetOpen.value ? "here" : ""}
        aria-disabled={!back}
        onClick={() => (isSheetOpen.value = false)}
      >
        <Icon name="thread" /> Thread
      </a>
      <button
        type="button"
        class={isSheetOpen.value ? "here" : ""}
        disabled={view !== "session"}
        onClick={() => (isSheetOpen.value = !isSheetOpen.value)}
      >
        <Icon name="panel" /> Details
      </button>
    </nav>
  );
}

function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.isBad ? "toast bad-toast" : "toast"}>
          <span class="grow">{toast.words}</span>
          {toast.undo && (
            <button
              type="button"
              onClick={() => {
                dismiss(toast.id);
                void toast.undo?.();
              }}
            >
              <Icon name="back" /> Undo
            </button>
          )}
          <button type="button" class="bare icon" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
