// Fails if the page's types are not what the keeper's description says.

import { readFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const description = JSON.parse(readFileSync("openapi.json", "utf8"));
const present = astToString(await openapi(description, { alphabetize: true }));
const written = readFileSync("src/api/schema.d.ts", "utf8");
if (!written.endsWith(`${present.trimEnd()}\n`) && !written.includes(present.trim())) {
  console.error("src/api/schema.d.ts is old: npm run types");
  process.exit(1);
}
