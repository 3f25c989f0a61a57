// One turn of the real CLI through the SDK, mirrored: `node turn.js PROMPT [SESSION]`.

import { query } from "@anthropic-ai/claude-agent-sdk";
import { RethreadSessionStore } from "../src/index.js";

const [prompt = "", resume] = process.argv.slice(2);
const { CLAUDE: executable = "claude", PROJECT: cwd = "." } = process.env;

const messages = query({
  prompt,
  options: {
    cwd,
    pathToClaudeCodeExecutable: executable,
    permissionMode: "bypassPermissions",
    allowDangerouslySkipPermissions: true,
    sessionStore: RethreadSessionStore.fromEnvironment(),
    ...(resume ? { resume } : {}),
  },
});
for await (const message of messages) {
  if (message.type === "system" && message.subtype === "mirror_error") {
    throw new Error(`something was not mirrored: ${JSON.stringify(message)}`);
  }
  if (message.type === "result") {
    console.log(JSON.stringify({ session_id: message.session_id, subtype: message.subtype }));
  }
}
