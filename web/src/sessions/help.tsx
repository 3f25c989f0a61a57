/** The keys. */

import { signal } from "@preact/signals";
import { Panel } from "../parts/panel.tsx";

const isOpen = signal(false);

export function openHelp(): void {
  isOpen.value = true;
}

const KEYS: [string, string][] = [
  ["Ctrl K", "find sessions, messages, actions"],
  ["/", "filter sessions; find within the session that is open"],
  ["j  k", "next and previous message, or session of the list"],
  ["[  ]", "previous and next prompt"],
  ["e", "open or close what a tool did"],
  ["g  G", "beginning and end"],
  ["n", "next request that needs you"],
  ["f", "fork from the end"],
  ["u", "undo the last rewind"],
  ["c", "new session"],
  ["i", "write a prompt"],
  ["Esc", "interrupt the turn, or close what is open"],
  ["p", "next damaged place"],
  ["d", "details"],
  ["t", "theme"],
  ["?", "this"],
];

export function Help() {
  if (!isOpen.value) return null;
  return (
    <Panel title="Keys" close={() => (isOpen.value = false)}>
      <dl class="keys">
        {KEYS.map(([key, words]) => (
          <div key={key}>
            <dt>
              {key.split("  ").map((it) => (
                <kbd key={it}>{it}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
