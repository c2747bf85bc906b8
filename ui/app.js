// Draws the frame and the selected page, and redraws them when something changes.

import { drawingButtons } from "./action_button.js";
import { currentBypasses, hasLookedForClients, loadClients, refreshClients, uncheckedAgents } from "./agent_connect.js";
import * as backend from "./backend.js";
import { brake } from "./brake.js";
import { followPresses } from "./double_press.js";
import { addFailure, failureList } from "./failures.js";
import { keptFocus } from "./focus.js";
import { html, nothing, render } from "./html.js";
import { followKeys } from "./keyboard.js";
import { followMenus } from "./menu.js";
import { home } from "./pages/home.js";
import * as parts from "./parts.js";
import { connectedLine, protectionState } from "./protection_state.js";
import { drawWith, redraw, state } from "./state.js";
import { FRAME } from "./texts/frame.js";

/**
 * @typedef {object} Page
 * @property {string} id
 * @property {string} name
 * @property {boolean} [wide] True if the page uses the whole width.
 * @property {boolean} [unlisted] True if the navigation has no link to the page.
 * @property {(snapshot: import("./types.js").Snapshot) => number | "!"} [count] Number beside the page's name; "!" if the page needs the user's attention.
 * @property {() => Promise<void>} [load] Loads data that the page shows in addition to the snapshot.
 * @property {boolean} [follows] True if the data must be reloaded at every change.
 * @property {(snapshot: import("./types.js").Snapshot, part: string) => unknown} view `part` is what follows the page's id
 *   and a slash in the address.
 * @property {() => void} [drawn] Called after each drawing of the page.
 */

/** Interval for redrawing relative times, in milliseconds. */
const FRESHEN_MS = 60_000;
/** Time after which an unanswered request for the snapshot is reported. */
const ANSWER_MS = 10_000;

const page = element("page");
const pill = element("state");
const stop = element("brake");
let asking = false;
let again = false;
/** The pages that have been loaded. The window opens sooner with Home alone. @type {Page[]} */
let pages = [home];
/** `true` once all pages have been loaded, or could not be loaded. */
let hasAllPages = false;
/** @type {Promise<void> | null} */
let loadingPages = null;

/**
 * Returns an element of the static page.
 * @param {string} id
 */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

/** Returns the page that the address names, and the part of that page. Unknown and missing names mean Home. @returns {[Page, string]} */
function chosen() {
  const [id = "", ...part] = location.hash.slice(1).split("/");
  return [pages.find((one) => one.id === id) ?? home, decoded(part.join("/"))];
}

/** Returns `true` if the page that the address names has been loaded. */
const isLoaded = () => hasAllPages || /^#?(home)?$/.test(location.hash);

/** Loads all pages. A failure is shown on Home. */
function loadPages() {
  loadingPages ??= importPages();
  return loadingPages;
}

async function importPages() {
  try {
    const { PAGES } = await import("./pages/all.js");
    pages = PAGES;
  } catch (failure) {
    addFailure(FRAME.notLoaded(backend.sentence(failure)));
  }
  hasAllPages = true;
  redraw();
}

/** Returns the text that an address encodes, or the address itself if it is malformed. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Loads the snapshot. Only one request runs at a time. A change during a request triggers another one. */
async function refresh() {
  again = asking;
  if (asking) return;
  asking = true;
  do {
    again = false;
    try {
      await refreshOnce();
      state.failure = null;
      void refreshClients();
    } catch (failure) {
      state.failure = failure;
    }
    redraw();
  } while (again);
  asking = false;
}

async function refreshOnce() {
  const isFirst = state.snapshot === null;
  const late = setTimeout(reportLate, ANSWER_MS);
  state.snapshot = await backend.snapshot().finally(() => clearTimeout(late));
  state.received_ms = Date.now();
  document.documentElement.dataset.theme = state.snapshot.appearance;
  // Only when the window opens: never navigate away from a page that the user is looking at.
  if (isFirst && location.hash === "" && state.snapshot.first_run) location.hash = "#welcome";
  if (chosen()[0].follows) await load();
}

/** Shows that the state on the screen is old. */
function reportLate() {
  state.failure = FRAME.noAnswer;
  redraw();
}

async function load() {
  if (!isLoaded()) await loadPages();
  await chosen()[0].load?.();
  redraw();
}

function draw() {
  const { snapshot, failure } = state;
  // Protection is not claimed before the agents' own servers are known.
  if (failure === null && (snapshot === null || !hasLookedForClients())) return;
  if (failure === null && !isLoaded()) {
    // Redraws when the page has been loaded.
    void loadPages();
    return;
  }
  document.getElementById("loading")?.remove();
  if (failure !== null || snapshot === null) return unreachable(failure);
  drawingButtons(() => drawPage(snapshot));
}

/** @param {import("./types.js").Snapshot} snapshot */
function drawPage(snapshot) {
  const [current, part] = chosen();
  document.body.dataset.page = current.id;
  document.title = FRAME.title(current.name);
  const keepFocus = keptFocus(document.body);
  for (const one of pages) if (!one.unlisted) drawLink(one, current, snapshot);
  const { mood, word } = protectionState(snapshot, currentBypasses(snapshot), uncheckedAgents());
  render(parts.statePill(mood, word, connectedLine(snapshot)), pill);
  render(brake(snapshot.status), stop);
  render(html`<div class="page ${current.wide ? "wide" : ""}" id="page-${current.id}">${failureList()}${content(current, snapshot, part)}</div>`, page);
  current.drawn?.();
  const control = state.focus && document.querySelector(`[data-key="${CSS.escape(state.focus)}"]`);
  if (control instanceof HTMLElement) control.focus();
  else keepFocus();
  state.focus = "";
  // After the first frame is on the screen.
  if (loadingPages === null) setTimeout(loadPages, 0);
}

/**
 * Updates the link to a page. The link itself is static, so it works and keeps the focus from the first paint on.
 * @param {Page} one
 * @param {Page} current
 * @param {import("./types.js").Snapshot} snapshot
 */
function drawLink(one, current, snapshot) {
  const link = element(`to-${one.id}`);
  link.ariaCurrent = one === current ? "page" : null;
  const n = one.count?.(snapshot) ?? 0;
  drawMark(link, n);
}

/** @param {HTMLElement} link @param {number | "!"} n */
function drawMark(link, n) {
  const mark = n === "!" ? html`<span class="count alert" role="img" aria-label=${FRAME.alert}>!</span>` : n > 0 ? html`<span class="count">${n}</span>` : nothing;
  render(mark, /** @type {HTMLElement} */ (link.lastElementChild));
}

/**
 * Returns the content of a page, or the reason it cannot be drawn.
 * @param {Page} one
 * @param {import("./types.js").Snapshot} snapshot
 * @param {string} part
 */
function content(one, snapshot, part) {
  try {
    return one.view(snapshot, part);
  } catch (failure) {
    return html`<h1>${one.name}</h1><p role="alert">${FRAME.pageFailed}</p><p class="quiet">${backend.sentence(failure)}</p>`;
  }
}

/** @param {unknown} failure */
function unreachable(failure) {
  // The counts are outdated too.
  for (const { id, unlisted } of pages) if (!unlisted) drawMark(element(`to-${id}`), 0);
  render(parts.statePill("degraded", FRAME.notConnected, ""), pill);
  render(nothing, stop);
  render(
    html`
      <div class="page">
        <h1>${FRAME.unreachableTitle}</h1>
        <p role="alert">${FRAME.unreachableText}</p>
        <p class="quiet">${backend.sentence(failure)}</p>
      </div>`,
    page,
  );
}

drawWith(draw);
followKeys();
followMenus();
followPresses();
element("skip").addEventListener("click", (event) => {
  // The address contains the current page, so the link must not change the address.
  event.preventDefault();
  page.focus();
});
addEventListener("hashchange", () => {
  redraw();
  page.scrollTop = 0;
  page.focus({ preventScroll: true });
  void load();
});
addEventListener("focus", () => void refreshClients());
// Each redraw wakes the engine about fifty times, so skip it on pages without relative times.
setInterval(() => {
  if (page.querySelector("time")) redraw();
}, FRESHEN_MS);
await backend.onChange(refresh);
await Promise.all([refresh(), loadClients()]);
await load();
