// Draws the page that is chosen, and draws it again when something changed.

import * as backend from "./backend.js";
import { el, replace } from "./dom.js";
import { freshen } from "./parts.js";
import { activity } from "./pages/activity.js";
import { granted } from "./pages/granted.js";
import { home } from "./pages/home.js";
import { sessions } from "./pages/sessions.js";
import { settings } from "./pages/settings.js";
import { count } from "./words.js";

const PAGES = [
  ["home", "Home", home, () => 0],
  ["sessions", "Sessions", sessions, (snapshot) => snapshot.sessions.length],
  ["granted", "What you granted", granted, (snapshot) => snapshot.grants.length],
  ["activity", "Activity", activity, () => 0],
  ["settings", "Settings", settings, () => 0],
];

const page = document.getElementById("page");
let known = null;
let asking = false;
let again = false;

/** One question to the app at a time; a change in between asks once more. */
async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    do {
      again = false;
      const [snapshot, entries] = await Promise.all([backend.snapshot(), backend.activity()]);
      known = { snapshot, activity: entries };
    } while (again);
    draw();
  } catch (failure) {
    known = null;
    trouble(failure);
  } finally {
    asking = false;
  }
}

function draw() {
  if (known === null) return;
  const chosen = PAGES.find(([id]) => `#${id}` === location.hash) ?? PAGES[0];
  drawNav(chosen[0]);
  replace(page, chosen[2]({ ...known, redraw: draw }).flat(Infinity).filter(Boolean));
}

function drawNav(current) {
  const { snapshot } = known;
  const links = PAGES.map(([id, name, , number]) => {
    const n = number(snapshot);
    return el(
      "li",
      {},
      el("a", { href: `#${id}`, "data-key": `nav:${id}`, "aria-current": id === current && "page" }, name, n > 0 && el("span", { class: "count" }, String(n))),
    );
  });
  replace(document.getElementById("nav"), links);
  const state = document.getElementById("state");
  const text = stateWords(snapshot);
  if (state.textContent !== text) state.textContent = text;
}

function stateWords({ status, waiting }) {
  if (status.protection === "degraded") return "\u26a0 Something is wrong";
  if (waiting.length > 0) return `? ${count(waiting.length, "question")} waiting`;
  return "\u2713 Protecting";
}

function trouble(failure) {
  document.getElementById("state").textContent = "\u26a0 Not connected";
  replace(page, [
    el("h1", {}, "IronCurtain cannot be reached"),
    el("p", { role: "alert" }, "Agents are denied until it runs again. Quit it from the tray and start it anew."),
    el("p", { class: "quiet" }, backend.sentence(failure)),
  ]);
}

window.addEventListener("hashchange", () => {
  draw();
  page.scrollTop = 0;
  page.focus({ preventScroll: true });
});
setInterval(freshen, 1000);
await backend.onChange(refresh);
await refresh();
