/** Bytes as people look at them: sixteen to a line, as codes and as text. */

const WIDTH = 16;

/** `00002068  7b 22 00 …  |{"...|` for each sixteen bytes; lines that are as the one before them are one `*`. */
export function hexDump(bytes: Uint8Array, offset: number): string {
  const lines: string[] = [];
  let before = "";
  let isLeftOut = false;
  for (let at = 0; at < bytes.length; at += WIDTH) {
    const row = bytes.subarray(at, at + WIDTH);
    const codes = [...row].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const isSame = codes === before && at + WIDTH < bytes.length;
    before = codes;
    if (isSame) {
      if (!isLeftOut) lines.push("*");
      isLeftOut = true;
      continue;
    }
    isLeftOut = false;
    const text = [...row].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${String(offset + at).padStart(8, "0")}  ${codes.padEnd(WIDTH * 3 - 1)}  ${text}`);
  }
  return lines.join("\n");
}
