/** Beginning a session in a directory. */

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { takeFocus } from "../parts/focus.ts";
import { Panel } from "../parts/panel.tsx";
import { Quoted } from "../parts/quoted.tsx";
import { begin } from "../state/actions.ts";
import { shownSession } from "../state/route.ts";
import { can, cardOf, info, sessions } from "../state/sessions.ts";
import { shortened } from "../text/words.ts";
import { Directories } from "./directories.tsx";

const isOpen = signal(false);

export function openNew(): void {
  isOpen.value = true;
}

export function NewSession() {
  if (!isOpen.value) return null;
  return <Form />;
}

function Form() {
  const here = shownSession.value ? cardOf(shownSession.value)?.cwd : undefined;
  const [cwd, choose] = useState(here ?? sessions.value[0]?.cwd ?? "");
  const [prompt, write] = useState("");
  const [isBusy, work] = useState(false);
  const close = () => (isOpen.value = false);
  const recent = useMemo(() => [...new Set(sessions.value.flatMap((card) => card.cwd ?? []))].slice(0, 4), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    work(true);
    if (await begin(cwd, prompt)) close();
    work(false);
  };
  return (
    <Panel title="New session" close={close}>
      {can("drive") ? (
        <form class="form" onSubmit={(event) => void submit(event)}>
          <label>
            Directory
            <input
              ref={takeFocus}
              required
              value={cwd}
              onInput={(event) => choose(event.currentTarget.value)}
              spellcheck={false}
            />
          </label>
          {recent.length > 0 && (
            <p class="recent">
              <span class="quiet">Recent</span>
              {recent.map((path) => (
                <button key={path} type="button" class="text" title={path} onClick={() => choose(path)}>
                  {shortened(path, 28)}
                </button>
              ))}
            </p>
          )}
          <Directories path={cwd} choose={choose} />
          <label>
            First prompt
            <textarea
              rows={4}
              value={prompt}
              placeholder="What Claude should do"
              onInput={(event) => write(event.currentTarget.value)}
            />
          </label>
          <div class="acts">
            <button type="submit" class="go" disabled={isBusy || !cwd}>
              {isBusy ? "Starting" : "Start"}
            </button>
            <button type="button" class="bare" onClick={close}>
              Cancel
            </button>
          </div>
        </form>
      ) : (
        <div class="form">
          <p>
            This keeper only reads.{" "}
            <Quoted words={`${info.value?.agent.missing ?? "Claude Code was not found when it was started"}.`} />
          </p>
          <p class="quiet">Sessions that you start in a terminal appear here by themselves.</p>
        </div>
      )}
    </Panel>
  );
}
