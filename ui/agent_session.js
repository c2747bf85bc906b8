// An agent's session with a server: what it can reach, the verified client, and buttons to pause, restart and end it.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import { closeMenu } from "./menu.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { revokeButton } from "./revoke.js";
import { AGENTS } from "./texts/agents.js";

/** @typedef {import("./types.js").Session} Session */

/** Value of `source` for the folder that every session has. */
const SCRATCH = "the session's own folder";

/** @param {Session} session */
export const sessionRow = (session) =>
  openable(`session:${session.id}`, AGENTS.session(session.server, session.client.name), {
    before: parts.icon(session.remote ? "cloud" : session.sandboxed ? "shield-check" : "triangle-alert", session.sandboxed ? "good" : session.remote ? "" : "bad"),
    what: html`
      ${parts.title(parts.foreign(session.server), sandbox(session), session.trouble ? parts.dot("bad", AGENTS.stopped) : session.paused ? parts.dot("asks", AGENTS.paused) : nothing)}
      ${session.trouble ? html`<p class="small bad" role="alert">${parts.coded(AGENTS.trouble(session.trouble))}</p>` : nothing}
      ${session.paused ? html`<p class="small asks" role="status">${AGENTS.pausedText}</p>` : nothing}
      ${reach(session)}`,
    act: html`${pause(session)}${parts.menu(`more:${session.id}`, AGENTS.sessionMore(session.server, session.client.name), () => html`${restart(session)}${end(session)}`)}`,
  }, () => proof(session));

/** @param {Session} session */
function sandbox({ sandboxed, remote }) {
  if (remote) return parts.chip(AGENTS.remote, "asks");
  return sandboxed ? parts.chip(AGENTS.sandboxed, "good") : parts.chip(AGENTS.notSandboxed, "bad");
}

/**
 * Returns a tree of everything that the session can reach without approval.
 * @param {Session} session
 */
function reach({ sandboxed, remote, roots, always, hosts }) {
  const folders = [...roots.filter((one) => one.source !== SCRATCH), ...always];
  if (remote) return tree(branch("cloud", AGENTS.sent));
  if (!sandboxed) return tree(html`<li class="bad">${parts.icon("triangle-alert")}<span>${AGENTS.everything}</span></li>`);
  if (folders.length + hosts.length === 0) return tree(branch("folder", AGENTS.scratch));
  return tree(html`
    ${repeat(folders, (one) => `${one.path} ${one.source}`, folder)}
    ${hosts.map((host) => branch("globe", html`<span class="path">${parts.foreign(host)}</span>`))}`);
}

/** @param {unknown} branches */
const tree = (branches) => html`<ul class="reach">${branches}</ul>`;

/**
 * @param {string} name
 * @param {unknown} text
 */
const branch = (name, text) => html`<li>${parts.icon(name)}<span>${text}</span></li>`;

/** @param {import("./types.js").Root} one */
const folder = (one) => html`
  <li>${parts.icon("folder")}<span>${one.path === "/" ? AGENTS.computer : parts.path(one.path)} ${parts.accessChip(one.access)} <span class="quiet small">${one.grant ? AGENTS.granted : parts.foreign(AGENTS.from(plain(one.source)))}</span></span>
    ${one.grant ? revokeButton(one.grant, one.path, "plain") : nothing}</li>`;

/**
 * Removes backquotes around names, which are for terminals.
 * @param {string} text
 */
const plain = (text) => text.replaceAll("`", "");

/** @param {Session} session */
function proof(session) {
  const { client } = session;
  const started = client.chain.slice(1).map((process) => process.name);
  const sandbox = session.remote ? AGENTS.isRemote : session.sandboxed ? AGENTS.isSandboxed : AGENTS.isOpen;
  return html`
    <dl>
      ${fact(AGENTS.program, client.exe ? parts.path(client.exe) : html`<span class="bad">${AGENTS.unknownProgram}</span>`)}
      ${started.length > 0 ? fact(AGENTS.startedBy, parts.foreign(AGENTS.chain(started))) : nothing}
      ${client.cwd ? fact(AGENTS.worksIn, parts.path(client.cwd)) : nothing}
      ${client.says_it_is ? fact(AGENTS.claims, html`<span class="quiet">\u201c${parts.foreign(client.says_it_is)}\u201d</span>`) : nothing}
      ${client.label ? fact(AGENTS.calls_itself, html`<span class="quiet">\u201c${parts.foreign(client.label)}\u201d</span>`) : nothing}
      ${fact(AGENTS.sandbox, session.sandboxed ? sandbox : html`<span class="bad">${sandbox}</span>`)}
      ${session.roots.filter((one) => one.source === SCRATCH).map((one) => fact(AGENTS.scratchFolder, parts.path(one.path)))}
      ${session.connection ? fact(AGENTS.connection, html`<span title=${session.connection}>${AGENTS.shared}</span>`) : nothing}
      ${session.run ? fact(AGENTS.run, session.run) : nothing}
      ${fact(AGENTS.callsName, AGENTS.calls(session.allowed, session.denied, session.asked))}
      ${fact(AGENTS.since, parts.time(session.started_ms))}
    </dl>`;
}

/**
 * @param {string} name
 * @param {unknown} value
 */
const fact = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;

/** @param {Session} session */
const pause = (session) =>
  actButton({
    key: `${session.paused ? "resume" : "pause"}:${session.id}`,
    ...(session.paused ? AGENTS.resume : AGENTS.pause),
    label: AGENTS.pauseLabel(session.paused ? AGENTS.resume.ready : AGENTS.pause.ready, session.client.name, session.server),
    again: true,
    act: async () => {
      await backend.pauseSession(session.id, !session.paused);
      forget(`${session.paused ? "pause" : "resume"}:${session.id}`);
    },
  });

/** @param {Session} session */
const end = (session) =>
  actButton({
    key: `end:${session.id}`,
    ...AGENTS.end,
    label: AGENTS.endLabel(session.client.name, session.server),
    kind: "stop",
    act: async () => {
      await backend.endSession(session.id);
      closeMenu();
    },
  });

/** @param {Session} session */
const restart = (session) =>
  actButton({
    key: `restart:${session.id}`,
    ...AGENTS.restart,
    label: AGENTS.restartLabel(session.client.name, session.server),
    again: true,
    says: AGENTS.restartSays(session.server),
    act: async () => {
      await backend.restartServer(session.id);
      closeMenu();
    },
  });
