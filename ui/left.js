// Files that a session left and that programs of the person's run later, with Keep and Quarantine beside each.

import { keepButton, quarantineButton } from "./acts.js";
import { el } from "./dom.js";
import * as parts from "./parts.js";
import { count } from "./words.js";

/** Whose difference is open, so that a redraw does not close it. */
const opened = new Set();

/** The list of one session; nothing where there is nothing to tell. */
export function leftFiles(record, home, redraw) {
  if (!record || (record.files.length === 0 && record.unfinished.length === 0 && !record.looking)) return null;
  const waiting = record.files.filter((file) => file.state === "left").length;
  return el(
    "div",
    { class: "left" },
    el("h3", {}, title(record, waiting)),
    waiting > 0 &&
      el("p", { class: "quiet small" }, "Programs of yours run what is in them. Keep what you asked for. Quarantine moves a file to where nothing runs it; nothing is deleted."),
    record.unfinished.map((why) => el("p", { class: "asks small", role: "alert" }, "Not all could be looked at: ", parts.foreign(why))),
    el("div", { class: "group", role: "list" }, record.files.map((file) => fileRow(record.id, file, home, redraw))),
  );
}

function title(record, waiting) {
  const looking = record.looking ? " It is still being looked at." : "";
  if (waiting === 0) return `Nothing that this session left waits for you.${looking}`;
  return `This session left ${count(waiting, "file")} that can run code later.${looking}`;
}

function fileRow(session, file, home, redraw) {
  const waits = file.state === "left";
  return parts.row(
    [
      parts.path(file.shown, home),
      parts.facts(el("span", {}, sentence(file)), parts.time(file.time_ms)),
      file.moved_to && el("div", { class: "facts" }, "Now in ", parts.path(file.moved_to, home)),
      file.diff && difference(`${session}:${file.path}`, file),
    ],
    waits && el("div", { class: "both" }, keepButton(session, file, redraw), quarantineButton(session, file, redraw)),
  );
}

const CHANGED = { true: "New.", false: "Changed." };

function sentence(file) {
  const runs = `${CHANGED[file.is_new]} It runs ${file.when}.`;
  switch (file.state) {
    case "left": return runs;
    case "kept": return `${runs} You keep it.`;
    case "quarantined": return `${runs} It was moved to quarantine.`;
    case "put-back": return `Settings that have git run something were changed, and put back: ${file.keys.join(", ")}.`;
    default: return runs;
  }
}

function difference(key, file) {
  const toggled = (event) => (event.target.open ? opened.add(key) : opened.delete(key));
  const summary = el("summary", { "data-key": `diff:${key}` }, file.is_new ? "What is in it" : "What changed");
  return el("details", { open: opened.has(key), ontoggle: toggled }, summary, el("pre", { class: "diff", tabindex: "0" }, file.diff));
}
