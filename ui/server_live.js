// The processes of a server, one per session: state, failure, number of restarts and log.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").LiveServer} LiveServer */

/** Last lines of expanded logs, by session.
 * @type {Map<string, string[]>} */
const logs = new Map();

/**
 * Returns the rows of a server's processes.
 * @param {string} server
 * @param {LiveServer[]} live
 * @param {() => Promise<void>} reload
 */
export const liveRows = (server, live, reload) => repeat(live, (one) => one.session, (one) => liveRow(server, one, reload));

/**
 * @param {string} server
 * @param {LiveServer} one
 * @param {() => Promise<void>} reload
 */
function liveRow(server, one, reload) {
  const lines = logs.get(one.session);
  return parts.row(
    html`
      <div>${one.trouble ? html`<span class="badge deny">stopped</span>` : html`<span class="badge allow">running</span>`} for ${parts.client(one.client)}</div>
      ${one.trouble ? html`<p class="small bad">${parts.foreign(one.trouble)}</p>` : nothing}
      ${parts.facts(html`since ${parts.time(one.started_ms)}`, one.restarts > 0 ? html`<span class="asks">started again ${one.restarts === 1 ? "once" : count(one.restarts, "time")}</span>` : "no restarts")}
      ${lines ? html`<pre tabindex="0" aria-label="The last lines that ${server} wrote for ${one.client}">${lines.length === 0 ? "It has written nothing." : lines.join("\n")}</pre>` : nothing}`,
    html`
      ${actButton({
        key: `server-restart:${one.session}`,
        ready: "Restart",
        label: `Restart ${server} for ${one.client}`,
        going: "Restarting\u2026",
        done: "Restarted",
        failed: "Not restarted",
        again: true,
        says: `The process of ${server} is restarted. Calls in flight fail; the session and your permissions stay.`,
        act: async () => {
          await backend.restartServer(one.session);
          await reload();
        },
      })}
      ${lines ? parts.button(`log:${one.session}`, "Hide its last lines", () => { logs.delete(one.session); redraw(); }, { expanded: true })
        : actButton({ key: `log:${one.session}`, ready: "Its last lines", label: `Its last lines: ${server} for ${one.client}`, going: "Reading\u2026", done: "Read", failed: "Not read", again: true, act: async () => { logs.set(one.session, await backend.serverLog(one.session)); } })}`,
  );
}
