// The state of protection, connected agents and pending questions.

import * as backend from "../backend.js";
import { callRow } from "../activity_row.js";
import { statusIcon } from "../status_icon.js";
import { html, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { lockdown, missedRows } from "../restrictions.js";
import { protectionState } from "../protection_state.js";
import { count } from "../words.js";

/** @type {import("../app.js").Page} */
export const home = {
  id: "home",
  name: "Home",
  icon: "house",
  view(snapshot) {
    const { status, sessions, waiting, questions, recent } = snapshot;
    const { mood, title, text } = protectionState(snapshot);
    return html`
      <div class="hero"><span class="mark">${statusIcon(mood)}</span><div><h1>${title}</h1><p class="quiet">${text}</p></div></div>
      <div class="hero-do">${mood === "open" ? html`<a class="button" href="#welcome" data-key="welcome">First steps</a>` : nothing}${lockdown(status)}</div>
      ${status.other_home ? html`<p class="bad" role="alert">${status.other_home}</p>` : nothing}
      ${status.troubles.map((trouble) => html`<p class="bad" role="alert">${trouble}</p>`)}
      ${changedServers(snapshot.changed_servers)}
      ${waiting.length > 0 ? waitingRows(waiting) : nothing}
      ${missedRows(questions.missed)}
      ${leftBehind(snapshot)}
      <h2>Connected now</h2>
      ${sessions.length === 0
        ? parts.empty("No agent is connected.", html`When an agent starts a server through IronCurtain, it is listed here. <a href="#agents">Connect a client</a>`)
        : parts.group(repeat(sessions, (session) => session.id, sessionRow))}
      <h2>Last decisions</h2>
      ${recent.length === 0
        ? parts.empty("No decisions yet.", "Agents' requests and their outcomes are listed here.")
        : parts.group(repeat(recent, (call) => call.seq, (call) => callRow(call)), "log")}
      ${recent.length > 0 ? html`<p class="after"><a href="#activity">All activity</a></p>` : nothing}`;
  },
};

/**
 * Where the person is sent when a server is another program now.
 * @param {string[]} names
 */
const changedServers = (names) =>
  names.length === 0
    ? nothing
    : html`<div class="after">${parts.group(
        names.map((name) =>
          parts.row(
            html`<div><b>${parts.foreign(name)} is no longer the program you allowed.</b></div>${parts.facts("The new program is blocked until you decide.")}`,
            html`<a href="#servers" data-key="decide:${name}" aria-label="Decide about the server ${name}">Decide</a>`,
          ),
        ),
      )}</div>`;

/** @param {import("../types.js").Waiting[]} waiting */
const waitingRows = (waiting) => html`
  <h2>Waiting for you</h2>
  ${parts.group(
    waiting.map((one, at) =>
      parts.row(
        html`<div>${one.sentence}</div>${one.line ? html`<div class="path">${one.line}</div>` : nothing}`,
        at === 0 ? parts.button("show", "Show the question", () => void backend.showQuestion(), { kind: "main" }) : nothing,
      ),
    ),
  )}`;

/**
 * Returns a link to autostart files that sessions left.
 * @param {import("../types.js").Snapshot} snapshot
 */
function leftBehind({ records }) {
  const files = records.flatMap((one) => one.files).filter((file) => file.state === "left").length;
  if (files === 0) return nothing;
  return html`<div class="after">${parts.group(
    parts.row(
      html`<div>Sessions left ${count(files, "file")} that can run code later.</div>${parts.facts("Review them, and keep only what you asked for.")}`,
      html`<a href="#agents" data-key="left">Show them</a>`,
    ),
  )}</div>`;
}

/** @param {import("../types.js").Session} session */
const sessionRow = (session) =>
  parts.row(html`
    <div>${parts.pair(parts.client(session.client.name, session.client.exe), session.server)}</div>
    ${parts.facts(
      html`connected ${parts.time(session.started_ms)}`,
      `${session.allowed} allowed, ${session.denied} denied, ${session.asked} asked`,
      session.paused ? html`<span class="asks">\u2016 paused</span>` : nothing,
      session.trouble ? html`<span class="bad">\u26a0 its server stopped</span>` : nothing,
      session.sandboxed ? nothing : html`<span class="bad">\u26a0 ${session.remote ? "remote, cannot be sandboxed" : "not sandboxed"}</span>`,
    )}`);
