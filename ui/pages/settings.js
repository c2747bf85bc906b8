// What is running, and whether the log is whole.

import * as backend from "../backend.js";
import { el } from "../dom.js";
import * as parts from "../parts.js";
import { count } from "../words.js";

let log = null;

export function settings({ snapshot, redraw }) {
  const { status } = snapshot;
  return [
    el("h1", {}, "Settings"),
    el("h2", {}, "Activity log"),
    parts.group([
      parts.row(
        [
          el("div", {}, "Every decision is written down before it takes effect, and changing the log shows."),
          el("div", { class: "small", role: "status" }, logWords()),
        ],
        el("button", { type: "button", "data-key": "check", disabled: log === "checking", onclick: () => check(redraw) }, "Check the log"),
      ),
    ]),
    el("h2", {}, "Servers"),
    parts.group(
      status.servers.map((name) => parts.row([name])),
      parts.empty("No server is set up.", "Servers are listed in mcp-servers.json in the configuration folder."),
    ),
    el("h2", {}, "About"),
    parts.group([
      parts.row([
        el("div", {}, `IronCurtain ${status.version}`),
        parts.facts("Agents ask, you decide, the kernel enforces, and you can take it back."),
        parts.facts(`process ${status.pid}`, el("span", {}, "started ", parts.time(status.started_ms))),
      ]),
    ]),
  ];
}

async function check(redraw) {
  log = "checking";
  redraw();
  try {
    log = await backend.checkLog();
  } catch (failure) {
    log = { intact: false, entries: 0, problem: backend.sentence(failure) };
  }
  redraw();
}

function logWords() {
  if (log === null) return "";
  if (log === "checking") return "Checking\u2026";
  if (log.intact) return el("span", { class: "badge allow" }, `${count(log.entries, "entry").replace("entrys", "entries")}, all unchanged`);
  return el("span", { class: "bad" }, `\u26a0 ${log.problem ?? "the log was changed"}`);
}
