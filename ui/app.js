// Draws the frame and the selected page, and redraws them when something changes.

import { currentWays, hasLookedForClients, loadClients } from "./agent_connect.js";
import * as backend from "./backend.js";
import { brake } from "./brake.js";
import { keptFocus } from "./focus.js";
import { html, nothing, render } from "./html.js";
import { followKeys } from "./keyboard.js";
import { followMenus } from "./menu.js";
import { activity } from "./pages/activity.js";
import { agents } from "./pages/agents.js";
import { home } from "./pages/home.js";
import { permissions } from "./pages/permissions.js";
import { rules } from "./pages/rules.js";
import { servers } from "./pages/servers.js";
import { settings } from "./pages/settings.js";
import { welcome } from "./pages/welcome.js";
import * as parts from "./parts.js";
import { connectedLine, protectionState } from "./protection_state.js";
import { drawWith, redraw, state } from "./state.js";
import { FRAME } from "./texts/frame.js";

/**
 * @typedef {object} Page
 * @property {string} id
 * @property {string} name
 * @property {boolean} [wide] True if the page uses the whole width.
 * @property {(snapshot: import("./types.js").Snapshot) => number | "!"} [count] Number beside the page's name; "!" if the page needs the user's attention.
 * @property {() => Promise<void>} [load] Loads data that the page shows in addition to the snapshot.
 * @property {boolean} [follows] True if the data must be reloaded at every change.
 * @property {(snapshot: import("./types.js").Snapshot, part: string) => unknown} view `part` is what follows the page's id
 *   and a slash in the address.
 * @property {() => void} [drawn] Called after each drawing of the page.
 */

/** @type {Page[]} */
const PAGES = [home, activity, agents, permissions, servers, rules, settings];

/** Interval for redrawing relative times, in milliseconds. */
const FRESHEN_MS = 60_000;

const page = element("page");
const pill = element("state");
const stop = element("brake");
let asking = false;
let again = false;

/**
 * Returns an element of the static page.
 * @param {string} id
 */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

/** Returns the page that the address names, and the part of that page. @returns {[Page, string]} */
function chosen() {
  const [id = "", ...part] = location.hash.slice(1).split("/");
  return [[...PAGES, welcome].find((one) => one.id === id) ?? home, decodeURIComponent(part.join("/"))];
}

/** Loads the snapshot. Only one request runs at a time. A change during a request triggers another one. */
async function refresh() {
  again = asking;
  if (asking) return;
  asking = true;
  try {
    do {
      again = false;
      const isFirst = state.snapshot === null;
      state.snapshot = await backend.snapshot();
      document.documentElement.dataset.theme = state.snapshot.appearance;
      state.failure = null;
      // Only when the window opens: never navigate away from a page that the user is looking at.
      if (isFirst && location.hash === "" && state.snapshot.first_run) location.hash = "#welcome";
      if (chosen()[0].follows) await load();
      redraw();
    } while (again);
  } catch (failure) {
    state.failure = failure;
    redraw();
  } finally {
    asking = false;
  }
}

async function load() {
  await chosen()[0].load?.();
  redraw();
}

function draw() {
  const { snapshot, failure } = state;
  // Protection is not claimed before the agents' own servers are known.
  if (failure === null && (snapshot === null || !hasLookedForClients())) return;
  document.getElementById("loading")?.remove();
  if (failure !== null || snapshot === null) return unreachable(failure);
  const [current, part] = chosen();
  document.body.dataset.page = current.id;
  const keepFocus = keptFocus(document.body);
  for (const one of PAGES) drawLink(one, current, snapshot);
  const { mood, word } = protectionState(snapshot, currentWays(snapshot));
  render(parts.statePill(mood, word, connectedLine(snapshot)), pill);
  render(brake(snapshot.status), stop);
  render(html`<div class="page ${current.wide ? "wide" : ""}" id="page-${current.id}">${content(current, snapshot, part)}</div>`, page);
  current.drawn?.();
  const control = state.focus && document.querySelector(`[data-key="${CSS.escape(state.focus)}"]`);
  if (control instanceof HTMLElement) control.focus();
  else keepFocus();
  state.focus = "";
}

/**
 * Updates the link to a page. The link itself is static, so it works, and keeps the focus, from the first paint on.
 * @param {Page} one
 * @param {Page} current
 * @param {import("./types.js").Snapshot} snapshot
 */
function drawLink(one, current, snapshot) {
  const link = element(`to-${one.id}`);
  link.ariaCurrent = one === current ? "page" : null;
  const n = one.count?.(snapshot) ?? 0;
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
addEventListener("hashchange", () => {
  redraw();
  page.scrollTop = 0;
  page.focus({ preventScroll: true });
  void load();
});
// Each redraw wakes the engine about fifty times, so skip it on pages without relative times.
setInterval(() => {
  if (page.querySelector("time")) redraw();
}, FRESHEN_MS);
await backend.onChange(refresh);
await Promise.all([refresh(), loadClients()]);
await load();
