// Who is connected, what proves it, what it can reach, and what sessions left that runs later.

import { endSessionButton, takeBackButton } from "../acts.js";
import { el } from "../dom.js";
import { leftFiles } from "../left.js";
import * as parts from "../parts.js";

export function sessions({ snapshot, redraw }) {
  return [
    el("h1", {}, "Sessions"),
    snapshot.sessions.length === 0
      ? parts.group([], parts.empty("No agent is connected.", "A session begins when an agent starts a server through IronCurtain, and ends with it."))
      : snapshot.sessions.map((session) => card(session, record(snapshot, session.id), snapshot.home, redraw)),
    snapshot.records.filter((one) => one.ended_ms !== null).map((one) => ended(one, snapshot.home, redraw)),
  ];
}

const record = (snapshot, id) => snapshot.records.find((one) => one.id === id);

function ended(one, home, redraw) {
  return el(
    "section",
    { "aria-label": `ended: ${one.client}, ${one.server}` },
    el("h2", {}, el("span", { class: "client" }, one.client), el("span", { class: "arrow" }, "\u2192"), parts.foreign(one.server)),
    el("p", { class: "quiet small" }, "ended ", parts.time(one.ended_ms)),
    leftFiles(one, home, redraw),
  );
}

function card(session, found, home, redraw) {
  const { client } = session;
  return el(
    "section",
    { "aria-label": `${client.name}, ${session.server}` },
    el("h2", {}, parts.client(client), el("span", { class: "arrow" }, "\u2192"), parts.foreign(session.server)),
    el(
      "div",
      { class: "group" },
      parts.row([proof(session, home)], endSessionButton(session.id, client.name, redraw)),
      session.roots.map((folder) => folderRow(folder, home, redraw)),
    ),
    leftFiles(found, home, redraw),
  );
}

function proof(session, home) {
  const { client } = session;
  const started = client.chain.slice(1).map((process) => process.name).join(" in ");
  return el(
    "dl",
    {},
    fact("Program", client.exe ? parts.path(client.exe, home) : el("span", { class: "bad" }, "a program that hides what it is")),
    started && fact("Started by", started),
    client.cwd && fact("Works in", parts.path(client.cwd, home)),
    client.says_it_is && fact("Says it is", el("span", { class: "quiet" }, "\u201c", parts.foreign(client.says_it_is), "\u201d")),
    client.label && fact("Calls itself", el("span", { class: "quiet" }, "\u201c", parts.foreign(client.label), "\u201d")),
    fact("Server", session.sandboxed ? "sandboxed: it can reach only the folders below" : el("span", { class: "bad" }, "\u26a0 not sandboxed: it can reach all that you can")),
    fact("Calls", `${session.allowed} allowed, ${session.denied} denied, ${session.asked} asked`),
    fact("Connected", parts.time(session.started_ms)),
  );
}

const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];

function folderRow(folder, home, redraw) {
  return parts.row(
    [parts.path(folder.path, home), parts.facts(source(folder.source))],
    folder.grant && takeBackButton(folder.grant, folder.path, redraw),
  );
}

/** The marks around names are for terminals. */
const source = (text) => `from ${text.replaceAll("`", "")}`;
