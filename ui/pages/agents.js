// The agents page: each agent's protection, sessions and files to review, and connecting another agent.

import { byHand, connectRow, foundClients, loadClients, lookProblem, settingsPanel } from "../agent_connect.js";
import { agentList, otherAgents } from "../agent_list.js";
import { agentRow, bypassRow } from "../agent_row.js";
import { sessionRow } from "../agent_session.js";
import { autostartFiles } from "../autostart_files.js";
import { html, nothing, repeat } from "../html.js";
import { openFromAddress, scrollToOpened } from "../opened.js";
import * as parts from "../parts.js";
import { quarantined } from "../quarantine.js";
import { denials } from "../restrictions.js";
import { focusOn } from "../state.js";
import { AGENTS } from "../texts/agents.js";
import { FRAME } from "../texts/frame.js";

/** @typedef {import("../agent_list.js").Agent} Agent */
/** @typedef {import("../types.js").Snapshot} Snapshot */

/** @type {import("../app.js").Page} */
export const agents = {
  id: "agents",
  name: FRAME.pages.agents,
  count: ({ sessions }) => new Set(sessions.map((one) => one.client.name)).size,
  load: loadClients,
  view(snapshot, part) {
    openFromAddress("agents", part, part && `agent:${part}`);
    const found = foundClients();
    const all = agentList(snapshot, found);
    const others = otherAgents(all, found);
    return html`
      ${parts.heading(FRAME.pages.agents)}
      <h2 class="unseen">${AGENTS.list}</h2>
      ${lookProblem()}
      ${all.length === 0 ? emptyPage(others) : repeat(all, (one) => one.name, (one) => card(one, snapshot))}
      ${quarantined(snapshot.quarantine, new Set(snapshot.sessions.map(({ id }) => id)))}
      ${connecting(snapshot, others, found)}`;
  },
  drawn: scrollToOpened,
};

/** @param {import("../types.js").FoundClient[]} others */
const emptyPage = (others) =>
  parts.group(parts.row(parts.emptyState("bot", AGENTS.none, others[0] ? parts.button("first", AGENTS.noneAct, () => focusOn(`connect:${others[0]?.id}`), { kind: "main" }) : nothing)));

/**
 * @param {Agent} agent
 * @param {Snapshot} snapshot
 */
const card = (agent, { records, questions }) => html`
  <section class="agent" aria-label=${agent.name}>
    ${parts.group(html`
      ${agentRow(agent)}
      ${settingsPanel(agent.found)}
      ${bypassRow(agent.found)}
      ${repeat(agent.sessions, (one) => one.id, (one) => html`
        ${sessionRow(one)}
        ${denials(questions.denied.filter(({ session }) => session === one.id))}
        ${autostartFiles(records.find(({ id }) => id === one.id))}`)}
      ${repeat(agent.ended, (one) => one.id, autostartFiles)}`)}
  </section>`;

/**
 * @param {Snapshot} snapshot
 * @param {import("../types.js").FoundClient[]} others
 * @param {import("../types.js").FoundClient[]} found
 */
function connecting(snapshot, others, found) {
  const missing = found.filter((one) => one.state === "missing").map((one) => one.name);
  return html`
    ${parts.section(AGENTS.connectTitle)}
    ${parts.group(html`${repeat(others, (one) => one.id, (one) => connectRow(one))}${byHand(snapshot)}`)}
    ${missing.length > 0 ? html`<p class="small quiet after">${AGENTS.notInstalled(missing)}</p>` : nothing}`;
}
