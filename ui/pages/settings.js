// The settings page: questions, limits, the record, autostart and appearance, and information about the app.

import * as backend from "../backend.js";
import { html, live, nothing } from "../html.js";
import { openable } from "../opened.js";
import * as parts from "../parts.js";
import { loadRecordExport, recordExport } from "../record_export.js";
import { redraw, say, state } from "../state.js";
import { FRAME } from "../texts/frame.js";
import { SETTINGS } from "../texts/settings.js";

/** @typedef {import("../types.js").Settings} Settings */

/** @type {Settings | null} */
let found = null;
let problem = "";
/** The setting that was saved last. */
let saved = "";

/** @type {import("../app.js").Page} */
export const settings = {
  id: "settings",
  name: FRAME.pages.settings,
  async load() {
    try {
      use(await backend.settings());
      await loadRecordExport();
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    ${parts.heading(FRAME.pages.settings)}
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
    say(SETTINGS.said);
    saved = Object.keys(changes)[0] ?? "";
  } catch (failure) {
    problem = SETTINGS.notSaved(backend.sentence(failure));
  }
  redraw();
}

/** @param {Settings} now */
const page = (now) => html`
  ${now.managed === null ? nothing : organization(now.managed)}
  ${parts.section(SETTINGS.questions)}
  ${parts.group(html`
    ${setting("clock", "deadline_seconds", SETTINGS.deadline, SETTINGS.deadlineHint, number("deadline_seconds", now, 1, 3600, SETTINGS.units.seconds))}
    ${setting("gauge", "questions_per_minute", SETTINGS.perMinute, SETTINGS.perMinuteHint, number("questions_per_minute", now, 1, 1000, SETTINGS.units.questions))}
    ${setting("square-x", "denial_holds_seconds", SETTINGS.denialHolds, SETTINGS.denialHoldsHint, number("denial_holds_seconds", now, 0, 3600, SETTINGS.units.seconds))}
    ${setting("bell", "notifications", SETTINGS.notifications, SETTINGS.notices[now.notifications], choice("notifications", now, SETTINGS.notifications, SETTINGS.noticeChoices))}`)}
  <p class="small quiet after">${SETTINGS.newSessions}</p>
  ${parts.section(SETTINGS.computer)}
  ${parts.group(html`
    ${setting("power", "autostart", SETTINGS.autostart, SETTINGS.autostartHint, parts.switchBox("autostart", SETTINGS.autostart, now.autostart, (on) => void change({ autostart: on })))}
    ${setting("sun", "appearance", SETTINGS.appearance, nothing, choice("appearance", now, SETTINGS.appearance, SETTINGS.appearances))}`)}
  ${parts.section(SETTINGS.servers)}
  ${parts.group(html`
    ${setting("shield-check", "unsandboxed", SETTINGS.enforce, now.unsandboxed === "warn" ? html`<span class="bad">${SETTINGS.enforceOff}</span>` : SETTINGS.enforceOn, parts.switchBox("unsandboxed", SETTINGS.enforce, now.unsandboxed === "enforce", (on) => void change({ unsandboxed: on ? "enforce" : "warn" })))}
    ${setting("server", "max_sessions", SETTINGS.sessions, SETTINGS.sessionsHint, number("max_sessions", now, 1, 100_000, SETTINGS.units.sessions))}`)}
  ${parts.section(SETTINGS.record)}
  ${parts.group(html`
    ${setting("history", "keep_days", SETTINGS.keep, html`${SETTINGS.keepHint} <a href="#activity">${SETTINGS.recordLink}</a>`, number("keep_days", now, 1, 36_500, SETTINGS.units.days))}
    ${recordExport()}`)}
  <p class="small quiet after">${SETTINGS.file} ${parts.path(now.file)}.</p>`;

/** @param {NonNullable<Settings["managed"]>} managed */
const organization = ({ organization: name, revision, sees_record }) => html`
  ${parts.section(SETTINGS.managed.section)}
  ${parts.group(parts.row(html`${parts.title(name)}${parts.facts(SETTINGS.managed.facts(revision, sees_record))}`, nothing, parts.icon("lock")))}`;

/**
 * Returns the row of a setting. A setting that the organization manages has a lock instead of its control.
 * @param {string} icon
 * @param {keyof Settings} field
 * @param {string} name
 * @param {unknown} text
 * @param {unknown} control
 */
const setting = (icon, field, name, text, control) =>
  parts.row(html`${parts.title(name, saved === field ? parts.chip(SETTINGS.saved, "good", "check") : nothing)}${parts.facts(text)}`, found?.managed?.locked.includes(field) ? parts.chip(SETTINGS.managed.locked(found.managed.organization), "note", "lock") : control, parts.icon(icon));

/** @type {Partial<Record<keyof Settings, string>>} */
const LABELS = { deadline_seconds: SETTINGS.deadline, questions_per_minute: SETTINGS.perMinute, denial_holds_seconds: SETTINGS.denialHolds, max_sessions: SETTINGS.sessions, keep_days: SETTINGS.keep };

/**
 * Returns a number field that saves its value at once.
 * @param {keyof Settings} field
 * @param {Settings} now
 * @param {number} least
 * @param {number} most
 * @param {string} unit
 */
const number = (field, now, least, most, unit) => html`
  <label class="amount"><input type="number" min=${least} max=${most} step="1" data-key=${field} aria-label="${LABELS[field]}, ${unit}"
    .value=${live(String(now[field]))} @change=${(/** @type {Event} */ event) => void change({ [field]: Number(parts.valueOf(event)) })}> ${unit}</label>`;

/**
 * Returns a list that saves its choice at once.
 * @param {"notifications" | "appearance"} field
 * @param {Settings} now
 * @param {string} name
 * @param {Record<string, string>} choices
 */
const choice = (field, now, name, choices) => parts.select(field, now[field], Object.entries(choices), (to) => void change({ [field]: to }), name);

/** @param {import("../types.js").Snapshot} snapshot */
const about = ({ status }) => html`
  ${parts.section(SETTINGS.about)}
  ${parts.group(openable("diagnostics", SETTINGS.report, { what: html`${parts.title(SETTINGS.product(status.version))}${parts.facts(SETTINGS.motto)}`, before: parts.icon("info") }, () => html`
    <h3>${SETTINGS.report}</h3>
    <pre tabindex="0" aria-label=${SETTINGS.reportLabel}>${`version ${status.version}\nprocess ${status.pid}\nstarted ${new Date(status.started_ms).toISOString()}\nrules ${status.policy}\nsessions ${status.sessions}\ntroubles ${status.troubles.length === 0 ? "none" : status.troubles.join("; ")}`}</pre>`))}`;
