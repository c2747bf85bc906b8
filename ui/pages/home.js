// Am I protected, who is connected, what is waiting.

import * as backend from "../backend.js";
import { el } from "../dom.js";
import { curtain } from "../curtain.js";
import * as parts from "../parts.js";
import { count } from "../words.js";

const LAST = 6;

export function home({ snapshot, activity }) {
  const { status, sessions, waiting } = snapshot;
  const [mood, title, text] = state(snapshot);
  const decisions = activity.filter((entry) => entry.decision).slice(-LAST).reverse();
  return [
    el("div", { class: "hero" }, el("span", { class: "mark" }, curtain(mood)), el("div", {}, el("h1", {}, title), el("p", { class: "quiet" }, text))),
    status.troubles.map((trouble) => el("p", { class: "bad", role: "alert" }, trouble)),
    waiting.length > 0 && [
      el("h2", {}, "Waiting for you"),
      parts.group(waiting.map((one, at) => parts.row([el("div", {}, one.sentence), one.line && el("div", { class: "path" }, one.line)], at === 0 && showButton()))),
    ],
    leftBehind(snapshot),
    el("h2", {}, "Connected now"),
    parts.group(
      sessions.map((session) => sessionRow(session)),
      parts.empty("No agent is connected.", "When an agent starts a server through IronCurtain, it is listed here."),
    ),
    el("h2", {}, "Last decisions"),
    parts.group(
      decisions.map((entry) => parts.entry(entry, snapshot.home)),
      parts.empty("Nothing was decided yet.", "What agents asked for, and what became of it, is listed here."),
      "log",
    ),
  ];
}

/** Where the person is sent when sessions left files that can run code later. */
function leftBehind({ records }) {
  const files = records.flatMap((one) => one.files).filter((file) => file.state === "left").length;
  if (files === 0) return null;
  return parts.group([
    parts.row(
      [el("div", {}, `Sessions left ${count(files, "file")} that can run code later.`), parts.facts("Look at them, and keep what you asked for.")],
      el("a", { href: "#sessions", "data-key": "left" }, "Show them"),
    ),
  ]);
}

function state({ status, sessions, waiting }) {
  if (status.protection === "degraded") return ["degraded", "Something is wrong", "Until it is put right, agents are denied."];
  if (waiting.length > 0) return ["asking", `${count(waiting.length, "question")} for you`, "Nothing happens until you answer; no answer is a no."];
  const open = sessions.filter((session) => !session.sandboxed).length;
  const who = sessions.length === 0 ? "No agent is connected." : `${count(sessions.length, "session")} connected.`;
  const reach = open === 0 ? "Agents reach only what you granted." : `${count(open, "server")} not sandboxed.`;
  return ["protecting", "Protecting", `${who} ${reach}`];
}

const showButton = () =>
  el("button", { type: "button", class: "main", "data-key": "show", onclick: () => backend.showQuestion() }, "Show the question");

function sessionRow(session) {
  const calls = `${session.allowed} allowed, ${session.denied} denied, ${session.asked} asked`;
  return parts.row([
    el("div", {}, parts.client(session.client), el("span", { class: "arrow" }, "\u2192"), parts.foreign(session.server)),
    parts.facts(el("span", {}, "connected ", parts.time(session.started_ms)), calls, !session.sandboxed && el("span", { class: "bad" }, "\u26a0 not sandboxed")),
  ]);
}
