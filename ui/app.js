// Draws the selected page, and redraws it when something changes.

import * as backend from "./backend.js";
import { keptFocus } from "./focus.js";
import { html, nothing, render } from "./html.js";
import { followKeys } from "./keyboard.js";
import { activity } from "./pages/activity.js";
import { clients } from "./pages/clients.js";
import { granted } from "./pages/granted.js";
import { home } from "./pages/home.js";
import { rules } from "./pages/rules.js";
import { servers } from "./pages/servers.js";
import { sessions } from "./pages/sessions.js";
import { settings } from "./pages/settings.js";
import { welcome } from "./pages/welcome.js";
import { drawWith, redraw, state } from "./state.js";
import { stateLine } from "./protection_state.js";

/**
 * @typedef {object} Page
 * @property {string} id
 * @property {string} name
 * @property {(snapshot: import("./types.js").Snapshot) => number} [count] Number beside its name.
 * @property {() => Promise<void>} [load] Loads what it shows besides the snapshot.
 * @property {boolean} [follows] Reload it at every change.
 * @property {(snapshot: import("./types.js").Snapshot) => unknown} view
 */

/** @type {Page[]} */
const PAGES = [home, sessions, granted, rules, servers, clients, activity, settings];

/** Relative times on the page change once a minute. */
const FRESHEN_MS = 60_000;

const page = element("page");
const links = element("nav");
const line = element("state");
/** The page still shows its static content, which the first drawing replaces. */
let isShell = true;
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

const chosen = () => [...PAGES, welcome].find(({ id }) => `#${id}` === location.hash) ?? home;

/** Loads the snapshot. Only one request runs at a time; a change meanwhile triggers another one. */
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
      if (chosen().follows) await load();
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
  await chosen().load?.();
  redraw();
}

function draw() {
  const { snapshot, failure } = state;
  if (failure === null && snapshot === null) return;
  if (isShell) links.replaceChildren();
  isShell = false;
  if (failure !== null || snapshot === null) return unreachable(failure);
  render(PAGES.map((one) => link(one, snapshot)), links);
  const words = stateLine(snapshot);
  if (line.textContent !== words) line.textContent = words;
  const keepFocus = keptFocus(page);
  render(html`<div class="page" id="page-${chosen().id}">${chosen().view(snapshot)}</div>`, page);
  const control = state.focus && page.querySelector(`[data-key="${CSS.escape(state.focus)}"]`);
  if (control instanceof HTMLElement) control.focus();
  else keepFocus();
  state.focus = "";
}

/**
 * @param {Page} one
 * @param {import("./types.js").Snapshot} snapshot
 */
function link(one, snapshot) {
  const n = one.count?.(snapshot) ?? 0;
  const current = one === chosen() ? "page" : nothing;
  return html`<li><a href="#${one.id}" data-key="nav:${one.id}" aria-current=${current}>${one.name}${n > 0 ? html` <span class="count">${n}</span>` : nothing}</a></li>`;
}

/** @param {unknown} failure */
function unreachable(failure) {
  line.textContent = "\u26a0 Not connected";
  render(
    html`
      <h1>IronCurtain is not responding</h1>
      <p role="alert">This window cannot show its state until it responds. Quit it from the tray and start it again.</p>
      <p class="quiet">${backend.sentence(failure)}</p>`,
    page,
  );
}

drawWith(draw);
followKeys();
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
await refresh();
await load();
