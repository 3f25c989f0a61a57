/** Pictures that go with a prompt: taken from the clipboard, a drop or a file, and made small enough to be sent. */

import { info } from "./sessions.ts";

/** A picture that can be sent. */
export interface Picture {
  id: number;
  name: string;
  media_type: string;
  /** Its bytes, as base64. */
  data: string;
  width: number;
  height: number;
}

/** What models read. */
export const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** Models look at no more than this, in pixels on the longer side; what is larger only costs time. */
const SIDE = 2000;
/** A request has room for this many bytes of pictures, as base64 is a third longer and words need room too. */
const USED = 0.7;

let next = 1;

/** Why a file cannot be sent as a picture; nothing if it may be tried. */
export function refusal(file: { name: string; type: string }, count: number, most: number): string | undefined {
  if (!KINDS.includes(file.type)) {
    const what = file.name || "That";
    return `${what} is no picture that Claude can read. It reads PNG, JPEG, GIF and WebP.`;
  }
  if (count >= most) return `A prompt takes at most ${most} pictures.`;
  return undefined;
}

/** How large a picture becomes that must not be longer than a side. */
export function fitted(width: number, height: number, side = SIDE): { width: number; height: number } {
  const scale = Math.min(1, side / Math.max(width, height, 1));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

/** Reads a file into a picture. Throws words for a person if it cannot be sent. */
export async function picture(file: File, already: Picture[]): Promise<Picture> {
  const limits = info.value?.limits;
  const [most, large] = [limits?.images ?? 20, limits?.image_bytes ?? 5 << 20];
  const refused = refusal(file, already.length, most);
  if (refused) throw new Error(refused);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name || "The picture"} is damaged: it cannot be opened.`);
  });
  const whole = { width: bitmap.width, height: bitmap.height };
  let blob: Blob = file;
  let shape = fitted(whole.width, whole.height);
  // What moves would stand still after it was drawn anew; it is sent as it is, or not at all.
  const isStill = file.type !== "image/gif";
  for (let side = SIDE; isStill && (shape.width < whole.width || blob.size > large) && side >= 500; side /= 2) {
    shape = fitted(whole.width, whole.height, side);
    blob = await drawn(bitmap, shape, file.type === "image/jpeg" ? "image/jpeg" : "image/png");
    // A photograph as PNG is larger than it need be.
    if (blob.size > large) blob = await drawn(bitmap, shape, "image/jpeg");
    if (blob.size <= large) break;
  }
  bitmap.close();
  if (blob.size > large) throw new Error(`${file.name || "The picture"} is larger than ${large >> 20} MB.`);
  const room = (limits?.body_bytes ?? 8 << 20) * USED - already.reduce((sum, it) => sum + it.data.length * 0.75, 0);
  if (blob.size > room)
    throw new Error("These pictures are too large together. Send some of them with the next prompt.");
  const data = await base64(blob);
  return { id: next++, name: file.name, media_type: blob.type || file.type, data, ...(blob === file ? whole : shape) };
}

async function drawn(bitmap: ImageBitmap, shape: { width: number; height: number }, type: string): Promise<Blob> {
  const canvas = new OffscreenCanvas(shape.width, shape.height);
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, shape.width, shape.height);
  return canvas.convertToBlob({ type, quality: 0.85 });
}

function base64(blob: Blob): Promise<string> {
  return new Promise((then, fail) => {
    const reader = new FileReader();
    reader.onload = () => then(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => fail(new Error("The picture cannot be read."));
    reader.readAsDataURL(blob);
  });
}

/** The files of a paste or a drop; none if it is words. */
export function filesOf(transfer: DataTransfer | null): File[] {
  // A table copied from a spreadsheet comes as words and as a picture of them: the words are meant.
  if (!transfer || transfer.types.includes("text/plain")) return [];
  return [...transfer.files];
}

export const source = (it: Pick<Picture, "media_type" | "data">): string => `data:${it.media_type};base64,${it.data}`;
