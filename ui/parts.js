// The objects that look the same on every page: path, client, decision, time, group of rows.

import { el } from "./dom.js";
import * as words from "./words.js";

export function path(full, home) {
  const [lead, strong] = words.pathParts(full, home);
  return el("span", { class: "path", title: full }, el("span", { class: "lead" }, lead), el("b", {}, strong));
}

/** A word that comes from elsewhere, which never turns the order of the words around it. */
export const foreign = (text) => el("bdi", {}, text);

export function client(view) {
  return el("span", { class: "client", title: view.exe ?? "" }, view.name);
}

const DECISIONS = { allow: ["allow", "Allowed"], deny: ["deny", "Denied"], escalate: ["ask", "Asked"] };

export function badge(entry) {
  const [kind, text] = DECISIONS[entry.decision] ?? ["note", entry.event];
  return el("span", { class: `badge ${kind}` }, text);
}

/** A time that keeps itself fresh: see `freshen`. */
export function time(then, how = "ago") {
  const element = el("time", { datetime: new Date(then).toISOString(), title: words.exact(then) });
  element.dataset.then = then;
  element.dataset.how = how;
  element.textContent = words[how](then, Date.now());
  return element;
}

/** Brings every time on the page up to date. */
export function freshen() {
  for (const element of document.querySelectorAll("time[data-then]")) {
    element.textContent = words[element.dataset.how](Number(element.dataset.then), Date.now());
  }
}

export const group = (rows, empty, kind = "") =>
  el("div", { class: `group ${kind}`, role: "list" }, rows.length > 0 ? rows : [empty]);

export const row = (what, act, ...before) =>
  el("div", { class: "row", role: "listitem" }, ...before, el("div", { class: "what" }, what), act && el("div", { class: "do" }, act));

export const empty = (title, text) =>
  el("div", { class: "empty", role: "listitem" }, el("b", {}, title), text);

export const facts = (...parts) => {
  const line = el("div", { class: "facts" });
  parts.filter(Boolean).forEach((part, at) => line.append(...(at ? [" \u00b7 "] : []), part));
  return line;
};

export function entry(view, home) {
  const who = view.client && el("span", {}, foreign(view.client), view.server && [" \u2192 ", foreign(view.server)]);
  return row(
    [
      el("div", {}, view.summary),
      view.paths.map((one) => el("div", {}, path(one, home))),
      facts(who, view.tool && el("code", {}, view.tool)),
    ],
    null,
    el("span", { class: "when" }, time(view.time_ms)),
    badge(view),
  );
}
