/** A block of code: its language, a copy button, and colours once the highlighter is there. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Copy } from "../parts/copy.tsx";
import { plain } from "./safe.ts";

/** A part of highlighted code. */
export interface Span {
  kind?: string | undefined;
  parts: (Span | string)[];
}

type Highlight = (text: string, language: string) => Span[] | undefined;

const highlighter = signal<Highlight | undefined>(undefined);
let isLoading = false;

/** Texts longer than this stay plain: colours are not worth a stutter. */
const MOST = 40_000;

function load(): void {
  if (isLoading) return;
  isLoading = true;
  import("./highlight.ts").then(
    (module) => {
      highlighter.value = module.highlight;
    },
    () => {
      isLoading = false;
    },
  );
}

function spans(parts: (Span | string)[]): ComponentChildren {
  return parts.map((part, at) =>
    typeof part === "string" ? (
      part
    ) : (
      <span key={at} class={part.kind}>
        {spans(part.parts)}
      </span>
    ),
  );
}

/** Code in colours, as soon as there is time for it. */
export function Coloured({ text, language }: { text: string; language?: string | undefined }) {
  const [coloured, colour] = useState<{ text: string; spans: Span[] } | undefined>(undefined);
  const highlight = highlighter.value;
  const isWanted = !!language && text.length <= MOST;
  useEffect(() => {
    if (!isWanted) return;
    if (!highlight) return load();
    const idle = window.requestIdleCallback ?? ((then: () => void) => window.setTimeout(then, 1));
    const cancel = window.cancelIdleCallback ?? window.clearTimeout;
    const task = idle(() => {
      const found = highlight(text, language);
      if (found) colour({ text, spans: found });
    });
    return () => cancel(task);
  }, [highlight, text, language, isWanted]);
  return <>{coloured?.text === text ? spans(coloured.spans) : text}</>;
}

/** A block of code in a text. */
export function Code({ text, language }: { text: string; language?: string | undefined }) {
  const safe = plain(text);
  return (
    <figure class="code">
      <figcaption>
        <span>{language ? plain(language).slice(0, 24) : "text"}</span>
        <Copy text={safe} label="Copy code" />
      </figcaption>
      <pre tabIndex={0}>
        <Coloured text={safe} language={language?.toLowerCase()} />
      </pre>
    </figure>
  );
}
