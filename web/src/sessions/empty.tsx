/** No sessions at all: what this page is for, in three lines, and what to do. */

import { useEffect, useState } from "preact/hooks";
import { Copy } from "../parts/copy.tsx";
import { Icon } from "../parts/icon.tsx";
import { Quoted } from "../parts/quoted.tsx";
import { openDemo } from "../state/actions.ts";
import { can, info } from "../state/sessions.ts";
import { place } from "../text/words.ts";
import { openNew } from "./new_session.tsx";

/** The demonstration has a port of its own, which only a browser on the keeper's machine reaches. */
const isNear = (): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);

/** Opens the demo; Enter does too, as long as nothing else has the focus. */
function Demo() {
  const [isOpening, open] = useState(false);
  const go = () => {
    open(true);
    void openDemo().then((isGone) => open(isGone));
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== "Enter" || event.repeat || document.activeElement !== document.body) return;
      event.preventDefault();
      go();
    };
    // Whoever comes back finds the page as it was left.
    const back = () => open(false);
    addEventListener("keydown", press);
    addEventListener("pageshow", back);
    return () => {
      removeEventListener("keydown", press);
      removeEventListener("pageshow", back);
    };
  }, []);
  return (
    <button type="button" class="go" disabled={isOpening} onClick={go}>
      {isOpening ? "Opening the demo" : "Open the demo"} <kbd>Enter</kbd>
    </button>
  );
}

export function Empty() {
  const about = info.value;
  const hasDemo = can("demo") && isNear();
  return (
    <div class="hello">
      <h1>No sessions here yet</h1>
      <ol>
        <li>
          <Icon name="thread" />
          <b>Every Claude Code session</b> in your folders appears here by itself.
        </li>
        <li>
          <Icon name="gem" />
          <b>When one needs you</b>, it says so here; you answer from this page or a phone.
        </li>
        <li>
          <Icon name="back" />
          <b>Before files change</b> they are kept, so any point can be forked or taken back.
        </li>
      </ol>
      <div class="acts">
        {hasDemo && <Demo />}
        {can("drive") && (
          <button type="button" class={hasDemo ? undefined : "go"} onClick={openNew}>
            Start one in a folder <kbd>c</kbd>
          </button>
        )}
        {!hasDemo && (
          <>
            <span class="command">
              <code>rethread serve --demo</code>{" "}
              <Copy text="rethread serve --demo" label="Copy the command that shows the demo" />
            </span>
            <span class="quiet">shows the demo</span>
          </>
        )}
      </div>
      <p class="quiet">
        Looking in <code>{place(about?.claude_folder ?? "~/.claude")}</code>
        {about && about.allowed_roots.length > 0 && (
          <>
            , limited to{" "}
            {about.allowed_roots.map((root, at) => (
              <span key={root}>
                {at > 0 ? ", " : ""}
                <code>{place(root)}</code>
              </span>
            ))}
          </>
        )}
        . {about?.agent.missing && <Quoted words={`${about.agent.missing}.`} />}
      </p>
      <figure
        class="legend"
        aria-label="A thread runs through prompts as beads and checkpoints as knots; a subagent is a thin strand beside it, a fork leaves it, a part taken back is dashed, and a diamond needs you"
      >
        <svg viewBox="0 0 640 110" aria-hidden="true">
          <path d="M0 60H258M276 60H606" />
          <circle class="f" cx="48" cy="60" r="6" />
          <path class="thin" d="M132 60c10 0 8 26 22 26h50c14 0 12-26 22-26" />
          <path d="M252 60c7 0 7-8 13-8s6 8 0 8-6 8 0 8 8-8 14-8" />
          <circle class="f" cx="324" cy="60" r="6" />
          <path d="M354 60c16 0 12-30 28-30h52" />
          <circle class="ring" cx="438" cy="30" r="4" />
          <path class="pale" d="M280 62c10 0 12 28 26 28h56" />
          <circle class="f" cx="500" cy="60" r="6" />
          <path class="gem" d="M614 50l10 10-10 10-10-10Z" />
          <text x="30" y="38">
            prompt
          </text>
          <text x="152" y="106">
            subagent
          </text>
          <text x="236" y="38">
            checkpoint
          </text>
          <text x="450" y="34">
            fork
          </text>
          <text x="370" y="94">
            taken back
          </text>
          <text x="572" y="38">
            needs you
          </text>
        </svg>
      </figure>
    </div>
  );
}
