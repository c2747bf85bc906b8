// The first steps, each of them optional: introduction, agents, servers, a starting folder, and a practice question.

import { actButton } from "../action_button.js";
import * as backend from "../backend.js";
import { html, nothing } from "../html.js";
import { map } from "../map.js";
import * as parts from "../parts.js";
import { reachModel } from "../reach_model.js";
import { focusOn, state } from "../state.js";
import { FRAME } from "../texts/frame.js";
import { WELCOME } from "../texts/welcome.js";
import { count } from "../words.js";
import { currentBypasses, foundRows, loadClients } from "../agent_connect.js";

/** @type {{ title: string, view: (snapshot: import("../types.js").Snapshot) => unknown }[]} */
const STEPS = [
  { title: WELCOME.introTitle, view: intro },
  { title: WELCOME.connectTitle, view: connect },
  { title: WELCOME.protectTitle, view: protect },
  { title: WELCOME.folderTitle, view: folder },
  { title: WELCOME.tryTitle, view: practice },
];

let at = 0;
/** @type {"" | "allowed" | "denied" | "unanswered"} */
let practised = "";
/** @type {import("../types.js").PrivateFolderAttempt | null} */
let attempt = null;
let picked = "";

/** @type {import("../app.js").Page} */
export const welcome = {
  id: "welcome",
  name: FRAME.pages.welcome,
  unlisted: true,
  load: loadClients,
  view(snapshot) {
    const step = STEPS[at] ?? STEPS[0];
    const last = at === STEPS.length - 1;
    return html`
      <div class="steps-head">
        ${dots()}
        ${last ? nothing : parts.button("step:leave", WELCOME.skip, () => void leave(), { kind: "plain" })}
      </div>
      <h1 tabindex="-1" data-key="step:title">${step?.title}</h1>
      ${step?.view(snapshot)}
      <div class="steps-go">
        ${at > 0 ? parts.button("step:back", WELCOME.back, () => go(at - 1)) : nothing}
        ${last ? parts.button("step:leave", WELCOME.done, () => void leave(), { kind: "main" }) : parts.button("step:next", at === 0 ? WELCOME.begin : WELCOME.next, () => go(at + 1), { kind: "main" })}
      </div>`;
  },
};

const dots = () => html`
  <span class="progress" role="img" aria-label=${WELCOME.step(at + 1, STEPS.length)}>${STEPS.map((_, n) => html`<span class=${n === at ? "here" : n < at ? "past" : ""}></span>`)}</span>`;

/** @param {number} to */
function go(to) {
  at = to;
  // Start each step at its top, even if it does not fit.
  focusOn("step:title");
}

async function leave() {
  // If saving fails, the first steps open again at the next start.
  await backend.finishFirstSteps().catch(() => {});
  if (state.snapshot) state.snapshot.first_run = false;
  at = 0;
  location.hash = "#home";
}

/** Example of a connected agent. @type {import("../reach_model.js").AgentNode[]} */
const EXAMPLE = [{
  name: WELCOME.exampleAgent,
  asks: true,
  reachesAll: false,
  servers: [{ name: "filesystem", how: "sandboxed", count: 1, page: "", paused: false, stopped: false, targets: [{ kind: "folder", text: "~/src/app", full: "~/src/app", access: ["read", "write"], page: "" }, { kind: "folder", text: "~/Documents", full: "~/Documents", access: ["read"], page: "" }] }],
}];

/** @param {import("../types.js").Snapshot} snapshot */
function intro(snapshot) {
  return html`
    ${map(snapshot.sessions.length > 0 ? reachModel(snapshot, currentBypasses(snapshot)) : EXAMPLE, true)}
    <ul class="points">${WELCOME.intro.map((one) => html`<li>${parts.icon(one.icon, "big")}<span>${one.text}</span></li>`)}</ul>
    ${snapshot.sessions.length > 0 ? nothing : html`<p class="asks">${parts.icon("triangle-alert")} ${WELCOME.notYet}</p>`}`;
}

function connect() {
  return html`
    <p class="quiet">${WELCOME.connectText}</p>
    ${foundRows(() => true, WELCOME.noneFound, WELCOME.noneFoundText)}`;
}

function protect() {
  return html`
    <p class="quiet">${WELCOME.protectText}</p>
    ${foundRows((one) => one.state === "unreadable" || one.entries.some((entry) => entry.past), WELCOME.noneOpen, WELCOME.noneOpenText, true)}`;
}

function folder() {
  return html`
    <p class="quiet">${WELCOME.folderText}</p>
    <div class="both start">
      ${pick("folder-read", WELCOME.pickRead, false, "main")}
      ${pick("folder-write", WELCOME.pickWrite, true, "")}
    </div>
    ${picked ? html`<p class="good" role="status">${parts.icon("check")} ${picked}</p>` : nothing}`;
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
    going: WELCOME.picking,
    done: WELCOME.picked,
    failed: WELCOME.notPicked,
    again: true,
    kind,
    act: async () => {
      const path = await backend.startingFolder(write);
      if (path !== null) picked = write ? WELCOME.mayWrite(path) : WELCOME.mayRead(path);
    },
  });

/** @param {import("../types.js").Snapshot} snapshot */
function practice({ sessions }) {
  return html`
    ${parts.group(html`
      ${parts.row(
        html`${parts.title(WELCOME.practice)}${parts.facts(WELCOME.practiceText)}
          ${practised ? html`<p role="status">${WELCOME.practised[practised]}</p>` : nothing}`,
        actButton({ key: "practise", ready: WELCOME.ask, label: WELCOME.askLabel, going: WELCOME.asking, done: WELCOME.answered, failed: WELCOME.notAsked, again: true, act: async () => { practised = await backend.askPracticeQuestion(); } }),
        parts.icon("circle-question-mark", "big"),
      )}
      ${parts.row(
        html`${parts.title(WELCOME.look)}${parts.facts(WELCOME.lookText)}${attempt ? attemptResult(attempt) : nothing}`,
        actButton({ key: "look", ready: WELCOME.tryIt, label: WELCOME.tryLabel, going: WELCOME.looking, done: WELCOME.tried, failed: WELCOME.notTried, again: true, act: async () => { attempt = await backend.tryPrivateFolder(); } }),
        parts.icon("lock", "big"),
      )}`)}
    ${sessions.length === 0 ? html`<p class="asks">${parts.icon("info")} ${WELCOME.noAgent}</p>` : nothing}`;
}

/** @param {import("../types.js").PrivateFolderAttempt} one */
const attemptResult = (one) =>
  one.seen === 0
    ? html`<p class="good" role="status">${parts.icon("check")} ${WELCOME.refused} ${count(one.there, "name")} ${WELCOME.refusedIn} ${parts.path(one.folder)}${WELCOME.refusedNone}</p>${one.said ? html`<pre tabindex="0" aria-label=${WELCOME.programSaid}>${one.said}</pre>` : nothing}`
    : html`<p class="bad" role="alert">${parts.icon("triangle-alert")} ${WELCOME.notRefused} ${count(one.seen, "name")} ${WELCOME.of} ${one.there} ${WELCOME.refusedIn} ${parts.path(one.folder)}. ${WELCOME.noSandbox}</p>`;
