/** Colours for code: loaded when the first code is shown. */

import type { Element, Root, RootContent } from "hast";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { Span } from "./code.tsx";

const languages = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  makefile,
  php,
  python,
  ruby,
  rust,
  shell,
  sql,
  swift,
  typescript,
  xml,
  yaml,
});

function parts(nodes: (RootContent | Element)[]): (Span | string)[] {
  return nodes.flatMap((node): (Span | string)[] => {
    if (node.type === "text") return [node.value];
    if (node.type !== "element") return [];
    const kind = node.properties.className;
    return [{ kind: Array.isArray(kind) ? kind.join(" ") : undefined, parts: parts(node.children) }];
  });
}

/** The parts of a code with their kinds; nothing for a language that is not known. */
export function highlight(text: string, language: string): Span[] | undefined {
  if (!languages.registered(language)) return undefined;
  const root: Root = languages.highlight(language, text, { prefix: "hl-" });
  return parts(root.children).map((part) => (typeof part === "string" ? { parts: [part] } : part));
}
