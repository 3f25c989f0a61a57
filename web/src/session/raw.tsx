/** What is written in the file: a message's line, or the bytes of a place. */

import { useEffect, useState } from "preact/hooks";
import { bytes, raw } from "../api/keeper.ts";
import { Copy } from "../parts/copy.tsx";
import { rawBytes, rawMessage } from "../state/details.ts";
import type { Transcript } from "../state/transcript.ts";
import { hexDump } from "../text/hex.ts";
import { plain } from "../text/safe.ts";
import { number } from "../text/words.ts";

/** How many bytes of a place are shown. */
const BYTES = 4096;
/** How much of a line is shown. */
const LONG = 200_000;

/** Reads something; nothing until it is here, and words if it cannot be read. */
function useRead(read: () => Promise<string>, what: unknown[]): string | undefined {
  const [text, put] = useState<string | undefined>(undefined);
  useEffect(() => {
    put(undefined);
    let isWanted = true;
    read().then(
      (line) => isWanted && put(line),
      (error: Error) => isWanted && put(error.message),
    );
    return () => {
      isWanted = false;
    };
  }, what);
  return text;
}

export function Raw({ transcript }: { transcript: Transcript }) {
  const [place, uuid] = [rawBytes.value, rawMessage.value];
  if (place) return <Place transcript={transcript} offset={place.offset} length={place.length} />;
  if (uuid) return <Line transcript={transcript} uuid={uuid} />;
  return (
    <section>
      <p class="quiet">“Raw” at a message shows its line here, byte by byte.</p>
    </section>
  );
}

function Place({ transcript, offset, length }: { transcript: Transcript; offset: number; length: number }) {
  const text = useRead(
    async () => hexDump(await bytes(transcript.name, offset, Math.min(length, BYTES)), offset),
    [transcript, offset, length],
  );
  return (
    <section class="raw">
      <h2>
        <span class="cut">
          Byte {number(offset)} to {number(offset + Math.min(length, BYTES) - 1)}
        </span>
        <span class="grow" />
        {text !== undefined && <Copy text={text} label="Copy these bytes as codes" words="Copy" />}
      </h2>
      <pre class="dump" tabIndex={0}>
        {text ?? "Reading…"}
      </pre>
      {length > BYTES && <p class="quiet">{number(length - BYTES)} more bytes</p>}
    </section>
  );
}

function Line({ transcript, uuid }: { transcript: Transcript; uuid: string }) {
  const text = useRead(() => raw(transcript.name, uuid), [transcript, uuid]);
  let shown = text ?? "";
  try {
    shown = JSON.stringify(JSON.parse(shown), null, 2);
  } catch {
    // It is shown as it is.
  }
  return (
    <section class="raw">
      <h2>
        <code class="cut">{uuid}</code>
        <span class="grow" />
        {text !== undefined && <Copy text={text} label="Copy the line as it was written" words="Copy" />}
      </h2>
      <pre tabIndex={0}>
        {text === undefined ? "Reading…" : plain(shown.length > LONG ? `${shown.slice(0, LONG)}…` : shown)}
      </pre>
    </section>
  );
}
