/** The page begins here. */

import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/thread.css";
import "./style/attention.css";
import "./style/sessions.css";
import "./style/phone.css";
import { render } from "preact";
import { logIn } from "./api/keeper.ts";
import { App } from "./app.tsx";
import { followKeys } from "./keys.ts";
import { startClock } from "./state/clock.ts";
import { start } from "./state/live.ts";
import { followAddress, readAddress } from "./state/route.ts";

await logIn();
readAddress();
followAddress();
startClock();
followKeys();
const page = document.getElementById("page");
if (page) render(<App />, page);
await start();
