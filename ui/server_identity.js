// A server whose program changed: what the new program would get, and the decision about it.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { changeWords, keepWords, startAfreshWords, wouldGet } from "./sentences.js";

/** @typedef {import("./types.js").Server} Server */

/** What was done, by server.
 * @type {Map<string, string>} */
const told = new Map();

/**
 * Returns the panel in a server's card, or nothing if the server is the program that the user allowed.
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function suspendedPanel(server, reload) {
  const suspended = server.suspended;
  if (!suspended) {
    const words = told.get(server.name);
    return words ? parts.row(html`<p role="status"><span class="badge allow">Done</span> ${words}</p>`) : nothing;
  }
  const decide = (/** @type {boolean} */ keep) => async () => {
    told.set(server.name, await backend.decideIdentity(server.name, suspended.found, keep));
    await reload();
    // The program can change again, and then it is another decision.
    forget(`identity-keep:${server.name}`);
    forget(`identity-afresh:${server.name}`);
  };
  const change = changeWords(suspended);
  return parts.row(html`
    <div role="group" aria-label="Decide about ${server.name}">
      <h3 class="bad">\u26a0 ${parts.foreign(server.name)} is no longer the program you allowed</h3>
      <p class="says">If you keep its permissions, the new program can, without asking you:</p>
      <ul class="would-get">${wouldGet(suspended).map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>
      <dl>
        <dt>Old program</dt><dd class="mono">${suspended.before ?? "not known"}</dd>
        <dt>New program</dt><dd class="mono">${suspended.now}</dd>
        ${change ? html`<dt>What changed</dt><dd>${change}</dd>` : nothing}
      </dl>
      <p class="says">The new program is blocked until you decide. Keep only if you changed or updated it yourself.</p>
      <div class="both start">
        ${actButton({
          key: `identity-afresh:${server.name}`,
          ready: "Start afresh",
          label: `Start afresh: ${server.name}`,
          going: "Starting afresh\u2026",
          done: "Started afresh",
          failed: "Nothing was decided",
          says: startAfreshWords(suspended, server.name),
          kind: "main",
          act: decide(false),
        })}
        ${actButton({
          key: `identity-keep:${server.name}`,
          ready: "Keep everything",
          label: `Keep everything: ${server.name}`,
          going: "Keeping\u2026",
          done: "Kept",
          failed: "Nothing was decided",
          says: keepWords(suspended),
          kind: "stop",
          act: decide(true),
        })}
      </div>
    </div>`);
}
