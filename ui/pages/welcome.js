// The first steps, each of them optional: introduction, clients, servers, a starting folder, and a practice question.

import { actButton } from "../action_button.js";
import * as backend from "../backend.js";
import { html, nothing } from "../html.js";
import * as parts from "../parts.js";
import { focusOn, state } from "../state.js";
import { count } from "../words.js";
import { clients, foundRows } from "./clients.js";

/** @type {{ title: string, view: (snapshot: import("../types.js").Snapshot) => unknown }[]} */
const STEPS = [
  { title: "Agents ask, you decide", view: what },
  { title: "Connect a client", view: connect },
  { title: "Protect the servers you have", view: move },
  { title: "Pick a starting folder", view: folder },
  { title: "See it work", view: practice },
];

let at = 0;
/** @type {"" | "allowed" | "denied" | "unanswered"} */
let practised = "";
/** @type {import("../types.js").PrivateFolderAttempt | null} */
let look = null;
let picked = "";

/** @type {import("../app.js").Page} */
export const welcome = {
  id: "welcome",
  name: "First steps",
  icon: "house",
  load: async () => clients.load?.(),
  view(snapshot) {
    const step = STEPS[at] ?? STEPS[0];
    const last = at === STEPS.length - 1;
    return html`
      <p class="quiet small">Step ${at + 1} of ${STEPS.length}</p>
      <h1 tabindex="-1" data-key="step:title">${step?.title}</h1>
      ${step?.view(snapshot)}
      <div class="both start steps-go">
        ${at > 0 ? parts.button("step:back", "Back", () => go(at - 1)) : nothing}
        ${last ? nothing : parts.button("step:next", at === 0 ? "Begin" : "Next step", () => go(at + 1), { kind: "main" })}
        ${parts.button("step:leave", last ? "Done" : "Skip setup", () => void leave(), { kind: last ? "main" : "plain" })}
      </div>`;
  },
};

/** @param {number} to */
function go(to) {
  at = to;
  // Start each step at its top, even if it does not fit.
  focusOn("step:title");
}

async function leave() {
  // If saving fails, the first steps open once more at the next start.
  await backend.finishFirstSteps().catch(() => {});
  if (state.snapshot) state.snapshot.first_run = false;
  at = 0;
  location.hash = "#home";
}

function what() {
  return html`
    <ul class="three">
      <li>Agents that you connect start their servers through IronCurtain. Each runs in a sandbox, or is marked if it cannot.</li>
      <li>When an agent wants something new, you are asked. No answer means no.</li>
      <li>Everything you allowed is listed here; one click revokes it.</li>
    </ul>
    <p class="says asks">\u25cb Nothing is protected until a client is connected. That is the next step.</p>`;
}

function connect() {
  return html`
    <p class="lead-in quiet">A connected client starts its servers through IronCurtain. You see the whole change before it is written, and Disconnect restores the previous settings.</p>
    ${foundRows(() => true, "No agent client was found on this computer.", "Install one, or connect it by hand under Clients.")}`;
}

function move() {
  return html`
    <p class="lead-in quiet">These servers are started directly by a client. Protected servers run in a sandbox and reach only what you allow. The others keep all your rights, as today.</p>
    ${foundRows((one) => one.entries.some((entry) => entry.past), "No unprotected servers found.", "More servers are added under Servers.", () => nothing)}`;
}

function folder() {
  return html`
    <p class="lead-in quiet">Every agent that you connect may work in it through the server filesystem, without asking. It becomes a rule, which you can change or remove under Rules. Without one you are asked about each folder.</p>
    <div class="both start">
      ${pick("folder-read", "Pick a folder to read\u2026", false, "main")}
      ${pick("folder-write", "Pick a folder to read and write\u2026", true, "")}
    </div>
    ${picked ? html`<p class="good says" role="status">${picked}</p>` : nothing}`;
}

/**
 * @param {string} key
 * @param {string} ready
 * @param {boolean} write
 * @param {string} kind
 */
const pick = (key, ready, write, kind) =>
  actButton({
    key,
    ready,
    going: "Picking\u2026",
    done: "Picked",
    failed: "Not opened",
    again: true,
    kind,
    act: async () => {
      const path = await backend.startingFolder(write);
      if (path !== null) picked = `Agents may ${write ? "read and write" : "read"} in ${path}, without asking.`;
    },
  });

const PRACTISED = {
  allowed: "You allowed it. In a real question, the agent would have done exactly that, once.",
  denied: "Denied. A real request would have been refused.",
  unanswered: "You didn't answer, which means no.",
};

/** @param {import("../types.js").Snapshot} snapshot */
function practice({ sessions }) {
  return html`
    ${parts.group(html`
      ${parts.row(
        html`<div>A practice question</div>${parts.facts("The real question in its own window. No agent is asking, and your answer has no effect.")}
          ${practised ? html`<p class="says" role="status">${PRACTISED[practised]}</p>` : nothing}`,
        actButton({ key: "practise", ready: "Ask me", label: "Ask me a practice question", going: "Asking you\u2026", done: "Answered", failed: "Not asked", again: true, act: async () => { practised = await backend.askPracticeQuestion(); } }),
      )}
      ${parts.row(
        html`<div>Try to read a private folder</div>${parts.facts("A program without permissions tries to read one of your private folders from the same sandbox as servers.")}
          ${look ? seen(look) : nothing}`,
        actButton({ key: "look", ready: "Try it", label: "Try it: read a private folder", going: "Looking\u2026", done: "Tried", failed: "Not tried", again: true, act: async () => { look = await backend.tryPrivateFolder(); } }),
      )}`)}
    ${sessions.length === 0 ? html`<p class="says asks">\u25cb No agent is connected at the moment. Start one that you connected, and it appears under Sessions.</p>` : nothing}`;
}

/** @param {import("../types.js").PrivateFolderAttempt} one */
const seen = (one) =>
  one.seen === 0 && one.said
    ? html`<p class="says good" role="status">\u2713 Refused. You have ${count(one.there, "name")} in ${parts.path(one.folder)}; it saw none.</p><pre tabindex="0" aria-label="What the program said">${one.said}</pre>`
    : html`<p class="says bad" role="alert">\u26a0 Not refused: it saw ${count(one.seen, "name")} of ${one.there} in ${parts.path(one.folder)}. Sandboxes do not work on this computer.</p>`;
