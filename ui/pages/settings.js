// The settings page: questions, limits, the record, autostart and appearance, and information about the app.

import { begin, confirmation } from "../action_button.js";
import * as backend from "../backend.js";
import { html, live, nothing } from "../html.js";
import { openable } from "../opened.js";
import { lockedBy, organization } from "../organization.js";
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
/** Reasons why settings were not saved, by setting. @type {Map<string, string>} */
const problems = new Map();
/** Typed text that is not saved yet, by setting. @type {Map<string, string>} */
const drafts = new Map();
/** Completes after all changes so far. Changes are saved one after the other, so that the last answer is the newest state. */
let saving = Promise.resolve();

/** @type {import("../app.js").Page} */
export const settings = {
  id: "settings",
  name: FRAME.pages.settings,
  async load() {
    try {
      await saving;
      use(await backend.settings());
      problem = "";
    } catch (failure) {
      problem = SETTINGS.unreadable(backend.sentence(failure));
    }
    await loadRecordExport();
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
  if (state.snapshot) state.snapshot.appearance = now.appearance;
  document.documentElement.dataset.theme = now.appearance;
}

/**
 * Saves a setting. Until the setting is saved, and if saving fails, its control shows the stored value.
 * @param {keyof Settings} field
 * @param {unknown} value
 */
function change(field, value) {
  saving = saving.then(async () => {
    try {
      use(await backend.changeSettings({ [field]: value }));
      problems.delete(field);
      saved = field;
      say(SETTINGS.said);
    } catch (failure) {
      problems.set(field, SETTINGS.notSaved(backend.sentence(failure)));
      saved = "";
    }
    drafts.delete(field);
    redraw();
  });
  redraw();
  return saving;
}

/** Turns off the sandbox requirement. @type {import("../action_button.js").Act & { says: string }} */
const allowUnsandboxed = { key: "unsandboxed-off", ...SETTINGS.allowUnsandboxed, kind: "stop", again: true, act: allowAll };

async function allowAll() {
  await change("unsandboxed", "warn");
  const problem = problems.get("unsandboxed");
  if (problem) throw new Error(problem);
}

/** @param {boolean} on */
function requireSandbox(on) {
  if (on) void change("unsandboxed", "enforce");
  else begin(allowUnsandboxed.key, allowUnsandboxed.says);
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
    ${setting("power", "autostart", SETTINGS.autostart, SETTINGS.autostartHint, parts.switchBox("autostart", SETTINGS.autostart, now.autostart, (on) => void change("autostart", on)))}
    ${setting("sun", "appearance", SETTINGS.appearance, nothing, choice("appearance", now, SETTINGS.appearance, SETTINGS.appearances))}`)}
  ${parts.section(SETTINGS.servers)}
  ${parts.group(html`
    ${setting(now.unsandboxed === "enforce" ? "shield-check" : "shield-off", "unsandboxed", SETTINGS.enforce, sandboxText(now), parts.switchBox("unsandboxed", SETTINGS.enforce, now.unsandboxed === "enforce", requireSandbox, isLocked("unsandboxed")), confirmation(allowUnsandboxed, "unsandboxed"))}
    ${setting("server", "max_sessions", SETTINGS.sessions, SETTINGS.sessionsHint, number("max_sessions", now, 1, 100_000, SETTINGS.units.sessions))}`)}
  ${parts.section(SETTINGS.record)}
  ${parts.group(html`
    ${setting("history", "keep_days", SETTINGS.keep, html`${SETTINGS.keepHint} <a href="#activity">${SETTINGS.recordLink}</a>`, number("keep_days", now, 1, 36_500, SETTINGS.units.days))}
    ${recordExport()}`)}
  <p class="small quiet after">${SETTINGS.file} ${parts.path(now.file)}.</p>`;

/** @param {Settings} now */
function sandboxText({ unsandboxed, managed }) {
  if (unsandboxed === "warn") return html`<span class="bad">${SETTINGS.enforceOff}</span>`;
  return managed?.settings.forbid_unsandboxed ? SETTINGS.enforceAll : SETTINGS.enforceOn;
}

/** Returns true if the user cannot change a setting. @param {keyof Settings} field */
const isLocked = (field) => found?.managed?.locked.includes(field) ?? false;

/**
 * Returns the row of a setting. A lock and its reason mark a setting that the organization manages.
 * @param {string} icon
 * @param {keyof Settings} field
 * @param {string} name
 * @param {unknown} text
 * @param {unknown} control
 * @param {unknown} [more]
 */
const setting = (icon, field, name, text, control, more = nothing) =>
  parts.row(html`${parts.title(name, saved === field ? parts.chip(SETTINGS.saved, "good", "check") : nothing)}${parts.facts(text)}${problems.has(field) ? parts.problem(problems.get(field) ?? "") : nothing}${more}`, html`${isLocked(field) ? lockedBy(found?.managed?.organization ?? "") : nothing}${control}`, parts.icon(icon));

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
    .value=${live(drafts.get(field) ?? String(now[field]))} @input=${(/** @type {Event} */ event) => drafts.set(field, parts.valueOf(event))}
    @change=${(/** @type {Event} */ event) => void change(field, numberOf(parts.valueOf(event)))}> ${unit}</label>`;

/** Returns the typed number. An empty field is not zero: the app refuses it. @param {string} text */
const numberOf = (text) => (text.trim() === "" ? text : Number(text));

/**
 * Returns a list that saves its choice at once.
 * @param {"notifications" | "appearance"} field
 * @param {Settings} now
 * @param {string} name
 * @param {Record<string, string>} choices
 */
const choice = (field, now, name, choices) => parts.select(field, now[field], Object.entries(choices), (to) => void change(field, to), name);

/** @param {import("../types.js").Snapshot} snapshot */
const about = ({ status }) => html`
  ${parts.section(SETTINGS.about)}
  ${parts.group(openable("diagnostics", SETTINGS.report, { what: html`${parts.title(SETTINGS.product(status.version))}${parts.facts(SETTINGS.motto)}`, before: parts.icon("info") }, () => html`
    <h3>${SETTINGS.report}</h3>
    <pre tabindex="0" aria-label=${SETTINGS.reportLabel}>${SETTINGS.reportText(status)}</pre>`))}`;
