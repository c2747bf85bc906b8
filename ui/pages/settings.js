// Settings of questions, limits, the log, autostart and appearance, and information about the app.

import * as backend from "../backend.js";
import { html, live, nothing } from "../html.js";
import * as parts from "../parts.js";
import { redraw, say, state } from "../state.js";

/** @typedef {import("../types.js").Settings} Settings */

/** @type {Settings | null} */
let found = null;
let problem = "";
let saved = "";

/** @type {import("../app.js").Page} */
export const settings = {
  id: "settings",
  name: "Settings",
  icon: "settings",
  async load() {
    try {
      use(await backend.settings());
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    <h1>Settings</h1>
    ${problem ? parts.problem(problem) : nothing}
    ${found === null ? nothing : page(found)}
    ${about(snapshot)}`,
};

/** @param {Settings} now */
function use(now) {
  found = now;
  problem = "";
  if (state.snapshot) state.snapshot.appearance = now.appearance;
  document.documentElement.dataset.theme = now.appearance;
}

/** @param {Partial<Settings>} changes */
async function change(changes) {
  try {
    use(await backend.changeSettings(changes));
    say("Saved");
    saved = Object.keys(changes)[0] ?? "";
  } catch (failure) {
    problem = `Not saved: ${backend.sentence(failure)}`;
  }
  redraw();
}

/** @param {Settings} now */
const page = (now) => html`
  <h2>Questions</h2>
  ${parts.group(html`
    ${setting("How long a question waits", "No answer in this time means no. Clients give up on a call after 60 seconds.", number("deadline_seconds", now, 1, 3600, "seconds"))}
    ${setting("Questions per agent and minute", "Anything above this is denied without asking.", number("questions_per_minute", now, 1, 1000, "questions"))}
    ${setting("Don't ask again after a no", "How long the same call is denied without asking. Each further no doubles it. 0 = ask every time.", number("denial_holds_seconds", now, 0, 3600, "seconds"))}
    ${setting("Notifications", NOTICES[now.notifications], parts.select("notifications", now.notifications, [["full", "Who asks, and for what kind of thing"], ["plain", "Only that a question is waiting"], ["off", "None"]], (to) => void change({ notifications: /** @type {any} */ (to) }), "Notifications"))}`)}
  <p class="small quiet after">Changes apply to new sessions.</p>
  <h2>This computer</h2>
  ${parts.group(html`
    ${setting("Start with the desktop", "Starts IronCurtain when you log in, before your agents.", parts.tick("autostart", now.autostart ? "on" : "off", now.autostart, (on) => void change({ autostart: on }), "Start with the desktop"))}
    ${setting("Appearance", "The colours of this window.", parts.select("appearance", now.appearance, [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]], (to) => void change({ appearance: /** @type {any} */ (to) }), "Appearance"))}`)}
  <h2>Servers</h2>
  ${parts.group(html`
    ${setting("Where no sandbox can be made", now.unsandboxed === "warn" ? "Servers are started without one: each can do anything you can." : "A sandboxed server is not started.", parts.select("unsandboxed", now.unsandboxed, [["enforce", "Refuse to start it"], ["warn", "Start it and warn"]], (to) => void change({ unsandboxed: /** @type {any} */ (to) }), "Where no sandbox can be made"))}
    ${setting("Sessions at once", "Anything above this is refused.", number("max_sessions", now, 1, 100_000, "sessions"))}`)}
  <h2>Record</h2>
  ${parts.group(setting("How long the record is kept", html`Older entries are deleted at the next start; the deletion is recorded too. <a href="#activity">Search, check or export the record</a>`, number("keep_days", now, 1, 36_500, "days")))}
  <p class="small quiet after">Written to ${parts.path(now.file)}.</p>`;

const NOTICES = {
  full: "Shown when a question is waiting and you are not looking at it. They name no files, and cannot allow anything.",
  plain: "Shown when a question is waiting and you are not looking at it. They don't say what it is about.",
  off: "None are shown. The question's own window still opens.",
};

/**
 * @param {string} name
 * @param {unknown} text
 * @param {unknown} control
 */
const setting = (name, text, control) => parts.row(html`<div>${name}</div>${parts.facts(text)}`, control);

/**
 * Returns a number field that saves its value at once.
 * @param {keyof typeof LABELS} field
 * @param {Settings} now
 * @param {number} least
 * @param {number} most
 * @param {string} unit
 */
const number = (field, now, least, most, unit) => html`
  <label class="amount"><input type="number" min=${least} max=${most} step="1" data-key=${field} aria-label="${LABELS[field]}, ${unit}"
    .value=${live(String(now[field]))} @change=${(/** @type {Event} */ event) => void change({ [field]: Number(parts.valueOf(event)) })}> ${unit}
    ${saved === field ? html`<span class="badge allow">saved</span>` : nothing}</label>`;

const LABELS = { deadline_seconds: "How long a question waits", questions_per_minute: "Questions per agent and minute", denial_holds_seconds: "Don't ask again after a no", max_sessions: "Sessions at once", keep_days: "How long the record is kept" };

/** @param {import("../types.js").Snapshot} snapshot */
const about = ({ status }) => html`
  <h2>About</h2>
  ${parts.group(
    parts.row(html`
      <div>IronCurtain ${status.version}</div>
      ${parts.facts("Agents ask, you decide, the kernel enforces, and you can revoke it.")}
      <details><summary data-key="diagnostics">For a problem report</summary>
        <pre tabindex="0">${`version ${status.version}\nprocess ${status.pid}\nstarted ${new Date(status.started_ms).toISOString()}\nrules ${status.policy}\nsessions ${status.sessions}\ntroubles ${status.troubles.length === 0 ? "none" : status.troubles.join("; ")}`}</pre></details>`),
  )}`;
