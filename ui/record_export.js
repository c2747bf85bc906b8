// Turns the export of the record to a collector on and off, and shows a sample of the exported entries.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import { openable } from "./opened.js";
import { lockedBy } from "./organization.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { ORGANIZATION } from "./texts/organization.js";
import { SETTINGS } from "./texts/settings.js";

const TEXTS = SETTINGS.export;

/** @type {import("./types.js").RecordExport | null} */
let found = null;
/** @type {string[] | null} */
let sample = null;
let problem = "";
let url = "";
let token = "";
/** @type {import("./types.js").ExportedPaths} */
let paths = "hashed";

export async function loadRecordExport() {
  await attempt(async () => use(await backend.recordExport()));
}

/** @param {import("./types.js").RecordExport} now */
function use(now) {
  found = now;
  sample = null;
  if (now.url !== null) url = now.url;
  if (now.url !== null && !now.managed?.paths) paths = now.paths;
}

/** Returns the chosen collector: the organization's, or else the user's. */
const collector = () => found?.managed?.url ?? url;

/** Returns the chosen form of paths: the organization's, or else the user's. */
const form = () => found?.managed?.paths ?? paths;

/** @param {() => Promise<void>} act */
async function attempt(act) {
  try {
    await act();
    problem = "";
  } catch (failure) {
    problem = backend.sentence(failure);
  }
  redraw();
}

/** Shows a sample with the chosen setting for paths. The export can be turned on only while the sample is shown. */
async function showSample() {
  const wanted = form();
  sample = null;
  await attempt(async () => {
    const entries = await backend.exportSample(wanted);
    if (wanted === form()) sample = entries;
  });
}

/** Returns the row for the settings page. */
export const recordExport = () =>
  found === null ? (problem ? parts.row(parts.problem(TEXTS.unknown(problem)), nothing, parts.icon("cloud")) : nothing) : openable("export", TEXTS.open, { what: html`${parts.title(TEXTS.title, chip(found))}${parts.facts(line(found))}`, before: parts.icon("cloud") }, () => (found?.url ? running(found) : fields(found?.managed ?? null)));

/** @param {import("./types.js").RecordExport} now */
function chip(now) {
  if (now.managed?.is_missing) return parts.chip(ORGANIZATION.export.isRequired, "bad", "triangle-alert");
  if (now.url === null) return nothing;
  return now.failure ? parts.chip(TEXTS.failing, "bad", "triangle-alert") : parts.chip(TEXTS.on, "good", "check");
}

/** @param {import("./types.js").RecordExport} now */
const line = (now) => html`
  ${now.url === null ? TEXTS.off : html`${parts.foreign(now.url)}${now.failure ? html`: <span class="bad">${parts.foreign(now.failure)}</span>` : nothing}`}
  ${now.managed?.is_missing ? html`<p class="bad">${parts.coded(missing(now.url, now.managed))}</p>` : nothing}`;

/**
 * Returns why nothing starts with the current export.
 * @param {string | null} current
 * @param {NonNullable<import("./types.js").RecordExport["managed"]>} managed
 */
const missing = (current, { organization, url: required }) => (current === null || required === null ? ORGANIZATION.export.missing(organization) : ORGANIZATION.export.otherCollector(organization, required));

/** @param {import("./types.js").RecordExport} now */
const running = (now) => html`
  ${problem ? parts.problem(problem) : nothing}
  <p>${TEXTS.counts(now.sent, now.not_sent)} ${TEXTS.pathsSent[now.paths]} ${now.managed?.paths ? lockedBy(now.managed.organization) : nothing}</p>
  ${now.managed?.is_required ? html`<p class="locked">${parts.icon("lock")}<span>${parts.foreign(ORGANIZATION.export.required(now.managed.organization))}</span></p>` : nothing}
  ${actButton({ key: "export:off", ...TEXTS.disable, kind: "stop", again: true, off: now.managed?.is_required ?? false, act: async () => use(await backend.disableExport()) })}`;

/** @param {(text: string) => void} set */
const typed = (set) => (/** @type {Event} */ event) => {
  set(parts.valueOf(event));
  redraw();
};

/** @param {import("./types.js").RecordExport["managed"]} managed */
function fields(managed) {
  const lock = managed ? lockedBy(managed.organization) : nothing;
  const [hasUrl, hasPaths] = [Boolean(managed?.url), Boolean(managed?.paths)];
  return html`
  ${problem ? parts.problem(problem) : nothing}
  ${parts.field(TEXTS.url, html`<input type="text" inputmode="url" class="mono" autocomplete="off" spellcheck="false" data-key="export:url" ?disabled=${hasUrl} .value=${live(collector())} @input=${typed((text) => (url = text))}>`, hasUrl ? lock : TEXTS.urlHint)}
  ${parts.field(TEXTS.paths, parts.select("export:paths", form(), Object.entries(TEXTS.pathChoices), choosePaths, undefined, hasPaths), hasPaths ? lock : nothing)}
  ${parts.field(TEXTS.token, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" data-key="export:token" .value=${live(token)} @input=${typed((text) => (token = text))}>`, TEXTS.tokenHint)}
  ${sample === null ? nothing : html`<h3>${TEXTS.sample}</h3><pre tabindex="0" aria-label=${TEXTS.sample}>${sample.length === 0 ? TEXTS.noSample : sample.join("\n")}</pre>`}
  ${sample === null
    ? parts.button("export:sample", TEXTS.show, () => void showSample(), { kind: "main", off: collector().trim() === "" })
    : actButton({ key: "export:on", ...TEXTS.enable, kind: "main", again: true, off: collector().trim() === "", act: async () => use(await backend.enableExport(collector(), hasPaths ? null : paths, token)) })}`;
}

/** @param {string} to */
function choosePaths(to) {
  paths = /** @type {import("./types.js").ExportedPaths} */ (to);
  if (sample === null) redraw();
  else void showSample();
}
