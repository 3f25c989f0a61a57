// Logs the browser in with the one-time code of the address, then shows the newest sessions.
"use strict";

async function logIn() {
  const words = new URLSearchParams(location.hash.slice(1));
  const code = words.get("boot");
  if (!code) return;
  words.delete("boot");
  // The code must not stay in the address, whether it works or not.
  history.replaceState(null, "", "/" + (words.size ? "#" + words : ""));
  await fetch("/api/v1/auth/exchange", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Rethread": "1" },
    body: JSON.stringify({ code }),
  });
}

async function show() {
  const answer = await fetch("/api/v1/sessions?limit=20");
  const state = document.getElementById("state");
  if (answer.status === 401) {
    state.textContent = "You are not logged in. Type `rethread open` in a terminal, and open the link it prints.";
    return;
  }
  const page = await answer.json();
  const list = document.getElementById("sessions");
  for (const session of page.items) {
    const item = document.createElement("li");
    item.textContent = (session.name || session.first_prompt || session.session_id) + " ";
    const about = document.createElement("small");
    about.textContent = [session.state, session.cwd, session.updated_at].filter(Boolean).join(" · ");
    item.append(about);
    list.append(item);
  }
}

logIn().then(show);
