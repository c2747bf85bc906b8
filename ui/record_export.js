// Turns the export of the record to a collector on and off, and shows a sample of the exported entries.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
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
  if (now.url !== null) [url, paths] = [now.url, now.paths];
}

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
  const wanted = paths;
  sample = null;
  await attempt(async () => {
    const entries = await backend.exportSample(wanted);
    if (wanted === paths) sample = entries;
  });
}

/** Returns the row for the settings page. */
export const recordExport = () =>
  found === null ? (problem ? parts.row(parts.problem(TEXTS.unknown(problem)), nothing, parts.icon("cloud")) : nothing) : openable("export", TEXTS.open, { what: html`${parts.title(TEXTS.title, chip(found))}${parts.facts(line(found))}`, before: parts.icon("cloud") }, () => (found?.url ? running(found) : form()));

/** @param {import("./types.js").RecordExport} now */
const chip = (now) => (now.url === null ? nothing : now.failure ? parts.chip(TEXTS.failing, "bad", "triangle-alert") : parts.chip(TEXTS.on, "good", "check"));

/** @param {import("./types.js").RecordExport} now */
const line = (now) => (now.url === null ? TEXTS.off : html`${parts.foreign(now.url)}${now.failure ? html`: <span class="bad">${parts.foreign(now.failure)}</span>` : nothing}`);

/** @param {import("./types.js").RecordExport} now */
const running = (now) => html`
  ${problem ? parts.problem(problem) : nothing}
  <p>${TEXTS.counts(now.sent, now.not_sent)}</p>
  ${actButton({ key: "export:off", ...TEXTS.disable, kind: "stop", again: true, act: async () => use(await backend.disableExport()) })}`;

/** @param {(text: string) => void} set */
const typed = (set) => (/** @type {Event} */ event) => {
  set(parts.valueOf(event));
  redraw();
};

const form = () => html`
  ${problem ? parts.problem(problem) : nothing}
  ${parts.field(TEXTS.url, html`<input type="text" inputmode="url" class="mono" autocomplete="off" spellcheck="false" data-key="export:url" .value=${live(url)} @input=${typed((text) => (url = text))}>`, TEXTS.urlHint)}
  ${parts.field(TEXTS.paths, parts.select("export:paths", paths, Object.entries(TEXTS.pathChoices), choosePaths))}
  ${parts.field(TEXTS.token, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" data-key="export:token" .value=${live(token)} @input=${typed((text) => (token = text))}>`, TEXTS.tokenHint)}
  ${sample === null ? nothing : html`<h3>${TEXTS.sample}</h3><pre tabindex="0" aria-label=${TEXTS.sample}>${sample.length === 0 ? TEXTS.noSample : sample.join("\n")}</pre>`}
  ${sample === null
    ? parts.button("export:sample", TEXTS.show, () => void showSample(), { kind: "main", off: url.trim() === "" })
    : actButton({ key: "export:on", ...TEXTS.enable, kind: "main", again: true, off: url.trim() === "", act: async () => use(await backend.enableExport(url, paths, token)) })}`;

/** @param {string} to */
function choosePaths(to) {
  paths = /** @type {import("./types.js").ExportedPaths} */ (to);
  if (sample === null) redraw();
  else void showSample();
}
