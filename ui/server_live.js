// A server's processes, one per session, with state, failure, number of restarts and log.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").LiveServer} LiveServer */

/** Last lines of open logs, by session. @type {Map<string, string[]>} */
const logs = new Map();

/**
 * Returns the processes of a server.
 * @param {string} server
 * @param {LiveServer[]} live
 * @param {() => Promise<void>} reload
 */
export const processes = (server, live, reload) =>
  live.length === 0 ? nothing : html`
    <h3 class="some">${SERVERS.processes}</h3>
    ${parts.group(repeat(live, (one) => one.session, (one) => processRow(server, one, reload)), "some")}`;

/**
 * @param {string} server
 * @param {LiveServer} one
 * @param {() => Promise<void>} reload
 */
function processRow(server, one, reload) {
  const lines = logs.get(one.session);
  return parts.row(
    html`
      ${parts.title(parts.client(one.client), one.trouble ? parts.dot("bad", SERVERS.stopped(1)) : parts.dot("good", SERVERS.running))}
      ${one.trouble ? html`<p class="small bad">${parts.coded(SERVERS.lastMessage(one.trouble))}</p>` : nothing}
      ${parts.facts(html`${SERVERS.upFor} ${parts.time(one.started_ms)}`, one.restarts > 0 ? html`<span class="asks">${SERVERS.restartsOf(one.restarts)}</span>` : SERVERS.noRestarts)}
      ${lines ? html`<pre tabindex="0" aria-label=${SERVERS.logOf(server, one.client)}>${lines.length === 0 ? SERVERS.emptyLog : lines.join("\n")}</pre>` : nothing}`,
    html`
      ${lines ? parts.button(`log:${one.session}`, SERVERS.hideLog, () => { logs.delete(one.session); redraw(); }, { expanded: true })
        : actButton({ key: `log:${one.session}`, ...SERVERS.log, label: SERVERS.logLabel(server, one.client), again: true, act: async () => { logs.set(one.session, await backend.serverLog(one.session)); } })}
      ${actButton({
        key: `server-restart:${one.session}`,
        ...SERVERS.restart,
        ready: parts.icon("refresh-cw"),
        yes: SERVERS.restart.ready,
        label: SERVERS.restartLabel(server, one.client),
        again: true,
        says: SERVERS.restartSays(server),
        act: async () => {
          await backend.restartServer(one.session);
          await reload();
        },
      })}`,
    parts.agentIcon(one.client, "small"),
  );
}
