// The panel of a server whose program changed: the stored state that the new program would get, and the decision about it.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { changeWords, keepWords, SERVERS, startAfreshWords, wouldGet } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** Result of the last decision, by server.
 * @type {Map<string, string>} */
const results = new Map();

/**
 * Returns the panel in a server's details, or nothing if the server is the program that the user allowed.
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function suspendedPanel(server, reload) {
  const suspended = server.suspended;
  if (!suspended) {
    const words = results.get(server.name);
    return words ? html`<p role="status"><span class="badge allow">${SERVERS.done}</span> ${words}</p>` : nothing;
  }
  const decide = (/** @type {boolean} */ keep) => async () => {
    results.set(server.name, await backend.decideIdentity(server.name, suspended.found, keep));
    await reload();
    // If the program changes again, a new decision is needed.
    forget(`identity-keep:${server.name}`);
    forget(`identity-afresh:${server.name}`);
  };
  const change = changeWords(suspended);
  return html`
    <div class="decision" role="group" aria-label=${SERVERS.decideAbout(server.name)}>
      <h3 class="bad">${parts.icon("triangle-alert")} ${parts.foreign(server.name)} ${SERVERS.isChanged}</h3>
      <p class="says">${SERVERS.wouldGet}</p>
      <ul class="would-get">${wouldGet(suspended).map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>
      <dl>
        <dt>${SERVERS.oldProgram}</dt><dd class="mono">${suspended.before ?? SERVERS.unknown}</dd>
        <dt>${SERVERS.newProgram}</dt><dd class="mono">${suspended.now}</dd>
        ${change ? html`<dt>${SERVERS.whatChanged}</dt><dd>${change}</dd>` : nothing}
      </dl>
      <p class="says">${SERVERS.blocked}</p>
      <div class="both start">
        ${actButton({
          key: `identity-afresh:${server.name}`,
          ...SERVERS.startAfresh,
          label: SERVERS.startAfreshLabel(server.name),
          says: startAfreshWords(suspended, server.name),
          kind: "main",
          act: decide(false),
        })}
        ${actButton({
          key: `identity-keep:${server.name}`,
          ...SERVERS.keepAll,
          label: SERVERS.keepAllLabel(server.name),
          says: keepWords(suspended),
          kind: "stop",
          act: decide(true),
        })}
      </div>
    </div>`;
}
