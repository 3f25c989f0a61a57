/** A button that copies, and says that it did. */

import { useEffect, useState } from "preact/hooks";
import { Icon, type Sign } from "./icon.tsx";

export function Copy({ text, label, words, sign }: { text: string; label: string; words?: string; sign?: Sign }) {
  const [done, say] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = window.setTimeout(() => say(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = (event: Event) => {
    event.stopPropagation();
    navigator.clipboard.writeText(text).then(
      () => say(true),
      () => say(false),
    );
  };
  return (
    <button
      type="button"
      class={words ? "bare" : "bare icon"}
      title={label}
      aria-label={words ? undefined : label}
      onClick={copy}
    >
      {sign && <Icon name={sign} />}
      {words ? done ? "Copied" : words : <Icon name={done ? "ok" : "copy"} />}
      {!words && (
        <span class="vh" aria-live="polite">
          {done ? "Copied" : ""}
        </span>
      )}
    </button>
  );
}
