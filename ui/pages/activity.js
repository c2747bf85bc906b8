// What agents asked for and what became of it.

import { el } from "../dom.js";
import * as parts from "../parts.js";

let wanted = "";

export function activity({ snapshot, activity: all, redraw }) {
  const found = all.filter(matches).reverse();
  return [
    el("h1", {}, "Activity"),
    el(
      "div",
      { class: "tools" },
      el("input", {
        type: "search",
        value: wanted,
        placeholder: "Find an agent, server, tool, path or word",
        "aria-label": "Find in the activity",
        "data-key": "find",
        oninput: (event) => {
          wanted = event.target.value;
          redraw();
        },
      }),
    ),
    parts.group(
      found.map((entry) => parts.entry(entry, snapshot.home)),
      wanted
        ? parts.empty("Nothing matches.", "Try fewer or other words.")
        : parts.empty("Nothing happened yet.", "Every call of an agent is listed here, allowed or not."),
      "log",
    ),
  ];
}

function matches(entry) {
  const text = [entry.summary, entry.event, entry.client, entry.server, entry.tool, entry.decision, ...entry.paths]
    .join(" ")
    .toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
