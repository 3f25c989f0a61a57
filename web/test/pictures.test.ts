import { expect, test } from "vitest";
import { filesOf, fitted, refusal } from "../src/state/pictures.ts";
import { partsOf } from "../src/state/transcript.ts";

test("only pictures that models read are taken, and only so many", () => {
  const file = (type: string) => ({ name: "a.svg", type });
  expect(refusal(file("image/png"), 0, 20)).toBeUndefined();
  expect(refusal(file("image/svg+xml"), 0, 20)).toContain("a.svg is no picture that Claude can read");
  expect(refusal(file(""), 0, 20)).toContain("PNG, JPEG, GIF and WebP");
  expect(refusal(file("image/png"), 20, 20)).toBe("A prompt takes at most 20 pictures.");
});

test("a picture keeps its shape when it is made smaller, and is never made larger", () => {
  expect(fitted(4000, 3000)).toEqual({ width: 2000, height: 1500 });
  expect(fitted(640, 480)).toEqual({ width: 640, height: 480 });
  expect(fitted(90_000, 10)).toEqual({ width: 2000, height: 1 });
});

test("words that are copied with a picture of them are words", () => {
  const transfer = (types: string[]) => ({ types, files: ["file"] }) as unknown as DataTransfer;
  expect(filesOf(transfer(["Files"]))).toEqual(["file"]);
  expect(filesOf(transfer(["text/plain", "text/html", "Files"]))).toEqual([]);
  expect(filesOf(null)).toEqual([]);
});

test("pictures come before the words they go with, and need none", () => {
  const pictures = [{ media_type: "image/png", data: "AA==" }];
  const image = { type: "image", media_type: "image/png", data: "AA==" };
  expect(partsOf({ text: "look", pictures })).toEqual([image, { type: "text", text: "look" }]);
  expect(partsOf({ text: "", pictures })).toEqual([image]);
});
