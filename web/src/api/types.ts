/** The keeper's objects, by the names the page calls them. They are generated; `events.ts` has what the description leaves open. */

import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

export type Card = Schemas["SessionCard"];
export type SessionState = Card["state"];
export type Item = Schemas["MessageItem"];
export type Page = Schemas["MessagePage"];
export type SessionPage = Schemas["SessionPage"];
export type Problem = Schemas["Problem"];
export type Problems = Schemas["Problems"];
export type ProblemItem = Schemas["ProblemItem"];
export type Tree = Schemas["Tree"];
export type SubagentPage = Schemas["SubagentPage"];
export type Info = Schemas["Info"];
export type Hit = Schemas["Hit"];
export type SearchPage = Schemas["SearchPage"];
export type CheckpointPage = Schemas["CheckpointPage"];
export type ClaudeCheckpoint = Schemas["ClaudeCheckpoint"];
export type DiffPage = Schemas["DiffPage"];
export type FileDiff = Schemas["FileDiff"];
export type SketchPage = Schemas["SketchPage"];
export type Sketch = Schemas["Sketch"];
export type Excerpt = Schemas["Excerpt"];
export type DirectoryPage = Schemas["DirectoryPage"];
