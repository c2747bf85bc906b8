// The first rows of an agent: its state, its verified identity, and its servers that bypass IronCurtain.

import { connectMenu, mainButton, planButton } from "./agent_connect.js";
import { bypassing } from "./agent_list.js";
import { permissions } from "./grant_list.js";
import { html, nothing } from "./html.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { state } from "./state.js";
import { AGENTS } from "./texts/agents.js";
import { findBypasses } from "./bypasses.js";
import { list, named } from "./words.js";

/** @typedef {import("./agent_list.js").Agent} Agent */
/** @typedef {import("./types.js").FoundClient} FoundClient */

/** @param {Agent} agent */
export function agentRow(agent) {
  const { name, found, programs, looksLike } = agent;
  return openable(`agent:${name}`, AGENTS.details(name), {
    before: parts.agentIcon(name),
    what: html`
      ${parts.title(parts.client(name), presence(agent), protection(agent))}
      ${programs.map((exe) => parts.facts(html`${AGENTS.verified} ${parts.path(exe)}`))}
      ${looksLike === undefined ? nothing : parts.warning(AGENTS.looksLike)}
      ${programs.length > 1 ? parts.warning(AGENTS.severalPrograms(programs.length)) : nothing}`,
    act: html`${found && bypassing(found).length === 0 ? mainButton(found) : nothing}${connectMenu(found)}`,
  }, () => details(agent));
}

/** @param {Agent} agent */
function presence({ sessions }) {
  if (sessions.length === 0) return parts.dot("note", AGENTS.notRunning);
  return sessions.every((one) => one.paused) ? parts.dot("asks", AGENTS.paused) : parts.dot("good", AGENTS.connected);
}

/** @param {Agent} agent */
function protection({ found, sessions }) {
  const bypasses = findBypasses(sessions, found ? [found] : []);
  const open = bypasses.filter((bypass) => !bypass.isRemote).length;
  if (open > 0) return parts.chip(AGENTS.reachesAll(open), "bad", "shield-off");
  if (found?.state === "drifted") return parts.chip(AGENTS.drifted, "asks", "shield-alert");
  if (found?.state === "unreadable") return parts.chip(AGENTS.unreadable, "bad", "triangle-alert");
  if (bypasses.length > 0) return parts.chip(AGENTS.partly, "asks", "shield-alert");
  // The settings of an agent that IronCurtain does not know cannot be checked.
  if (!found && sessions.length > 0) return parts.chip(AGENTS.serversSandboxed, "good", "shield-check");
  if (sessions.length > 0 || found?.state === "connected") return parts.chip(AGENTS.protected, "good", "shield-check");
  return found?.state === "not-connected" ? parts.chip(AGENTS.notConnected) : nothing;
}

/** @param {Agent} agent */
function details({ name, found, known }) {
  const grants = state.snapshot ? permissions(state.snapshot).filter((grant) => grant.client === name).length : 0;
  return html`
    <dl>
      ${found ? html`<dt>${AGENTS.settingsFile}</dt><dd>${parts.path(found.file)}</dd>` : nothing}
      ${known && known.servers.length > 0 ? html`<dt>${AGENTS.uses}</dt><dd>${list(known.servers)}</dd>` : nothing}
      <dt>${AGENTS.permissions}</dt><dd><a href="#permissions" data-key="permissions-of:${name}">${AGENTS.permissionCount(grants)}</a></dd>
    </dl>
    ${found && found.entries.length > 0 ? html`<ul class="small entries">${found.entries.map((entry) => html`<li><span><code>${parts.foreign(entry.name)}</code> <span class="quiet">${parts.foreign(entry.way)}</span></span></li>`)}</ul>` : nothing}`;
}

/** @param {FoundClient | null} found */
export function bypassRow(found) {
  const past = bypassing(found);
  if (!found || past.length === 0) return nothing;
  return openable(`bypass:${found.id}`, AGENTS.details(AGENTS.bypassOf(past.length, found.name)), {
    before: parts.icon("shield-off", "bad"),
    what: html`${parts.title(AGENTS.bypass(past.length))}${parts.facts(parts.foreign(list(past.map((entry) => named(entry.name)))))}`,
    act: mainButton(found),
  }, () => html`
    <ul class="small entries">${past.map((entry) => html`
      <li><span><code>${parts.foreign(entry.name)}</code> <span class="asks">${parts.foreign(entry.way)}</span></span>
        ${planButton(found, `move:${found.id}:${entry.name}`, { kind: "move", only: [entry.name], secrets: true }, AGENTS.protectOne, AGENTS.protectOneLabel(entry.name, found.name))}
      </li>`)}</ul>`);
}
