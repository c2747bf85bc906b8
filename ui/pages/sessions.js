// Connected agents, their verified identity and access, and the autostart files that sessions left.

import { endSession, restartServer } from "../action_button.js";
import { html, nothing, repeat } from "../html.js";
import { autostartFiles } from "../autostart_files.js";
import { quarantined } from "../quarantine.js";
import * as parts from "../parts.js";
import { denials, pause } from "../restrictions.js";
import { revokeButton } from "../revoke.js";

/** @typedef {import("../types.js").Session} Session */

/** @type {import("../app.js").Page} */
export const sessions = {
  id: "sessions",
  name: "Sessions",
  icon: "bot",
  count: (snapshot) => snapshot.sessions.length,
  view({ sessions, records, quarantine, questions }) {
    const ended = records.filter((one) => one.ended_ms !== null);
    return html`
      <h1>Sessions</h1>
      ${sessions.length === 0
        ? parts.empty("No agent is connected.", html`A session begins when an agent starts a server through IronCurtain, and ends with it. <a href="#agents">Connect a client</a>`)
        : repeat(sessions, (one) => one.id, (one) => card(one, records.find((record) => record.id === one.id), questions.denied.filter(({ session }) => session === one.id)))}
      ${repeat(ended, (one) => one.id, endedCard)}
      ${quarantined(quarantine, new Set(sessions.map(({ id }) => id)))}`;
  },
};

/** @param {import("../types.js").SessionRecord} one */
const endedCard = (one) => html`
  <section aria-label="ended: ${one.client}, ${one.server}">
    <h2>${parts.pair(parts.client(one.client), one.server)}</h2>
    <p class="quiet small">ended ${parts.time(one.ended_ms ?? 0)}</p>
    ${autostartFiles(one)}
  </section>`;

/**
 * @param {Session} session
 * @param {import("../types.js").SessionRecord | undefined} found
 * @param {import("../types.js").Denial[]} denied
 */
const card = (session, found, denied) => html`
  <section aria-label="${session.client.name}, ${session.server}">
    <h2>${parts.pair(parts.client(session.client.name, session.client.exe), session.server)}</h2>
    ${session.paused ? html`<p class="asks" role="status">\u2016 Paused: everything this agent asks for here is denied until you resume it.</p>` : nothing}
    ${session.trouble ? html`<p class="bad" role="alert">\u26a0 Its server stopped: ${parts.foreign(session.trouble)}</p>` : nothing}
    ${parts.group(html`
      ${parts.row(proof(session), html`${pause(session)}${endSession(session)}${restartServer(session)}`)}
      ${repeat(session.roots, (one) => one.path, folderRow)}`)}
    ${denials(denied)}
    ${autostartFiles(found)}
  </section>`;

/** @param {Session} session */
function proof(session) {
  const { client } = session;
  const started = client.chain.slice(1).map((process) => process.name).join(" in ");
  return html`
    <dl>
      ${fact("Program", client.exe ? parts.path(client.exe) : html`<span class="bad">a program whose file cannot be identified</span>`)}
      ${started ? fact("Started by", parts.foreign(started)) : nothing}
      ${client.cwd ? fact("Works in", parts.path(client.cwd)) : nothing}
      ${client.says_it_is ? fact("Claims to be", html`<span class="quiet">\u201c${parts.foreign(client.says_it_is)}\u201d</span>`) : nothing}
      ${client.label ? fact("Calls itself", html`<span class="quiet">\u201c${parts.foreign(client.label)}\u201d</span>`) : nothing}
      ${fact("Server", session.sandboxed ? "sandboxed: it can reach only the folders below" : html`<span class="bad">\u26a0 ${session.remote ? "remote, cannot be sandboxed: it sees everything that is sent to it" : "not sandboxed: it can do anything you can"}</span>`)}
      ${session.connection ? fact("Connection", html`<span title=${session.connection}>shares one connection with other servers</span>`) : nothing}
      ${fact("Calls", `${session.allowed} allowed, ${session.denied} denied, ${session.asked} asked`)}
      ${fact("Connected", parts.time(session.started_ms))}
    </dl>`;
}

/**
 * @param {string} name
 * @param {unknown} value
 */
const fact = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;

/** @param {import("../types.js").Root} folder */
const folderRow = (folder) =>
  parts.row(
    html`${parts.path(folder.path)}${parts.facts(folder.grant ? "you granted it" : source(folder.source))}`,
    folder.grant ? revokeButton(folder.grant, folder.path) : nothing,
  );

/**
 * Removes backquotes around names, which are for terminals.
 * @param {string} text
 */
const source = (text) => `from ${text.replaceAll("`", "")}`;
