/** What to call a prompt: its number, or its first words where what comes before was not read. */

import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { firstLine } from "../text/words.ts";
import { textOf } from "./blocks.ts";

export function promptName(transcript: Transcript, uuid: string): string {
  const number = transcript.numberOf(uuid);
  const item = number === undefined ? undefined : transcript.item(number);
  if (number === undefined || !item) return "this prompt";
  transcript.version(transcript.pageOf(number)).value;
  const ordinal = transcript.ordinal(number);
  if (ordinal) return `prompt ${ordinal}`;
  const words = plain(firstLine(textOf(item)));
  return `“${words.length > 36 ? `${words.slice(0, 36)}…` : words}”`;
}
