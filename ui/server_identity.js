// A server whose program changed: its suspended grants, and the decision about them.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";

/** @typedef {import("./types.js").Server} Server */

/** @type {Map<string, string>} */
const told = new Map();

/**
 * Returns the panel in a server's card.
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function suspendedPanel(server, reload) {
  const suspended = server.suspended;
  if (!suspended) {
    const words = told.get(server.name);
    return words ? html`<p class="small" role="status">${words}</p>` : nothing;
  }
  const decide = (/** @type {boolean} */ keep) => async () => {
    told.set(server.name, await backend.decideIdentity(server.name, suspended.found, keep));
    await reload();
  };
  return html`
    ${parts.warning(`This is not the program that you allowed before: ${suspended.change}. Suspended: ${suspended.kept}.`)}
    ${actButton({
      key: `identity-keep:${server.name}`,
      ready: "Keep for the new program",
      label: `Keep for the new program: ${server.name}`,
      going: "Keeping\u2026",
      done: "Kept",
      failed: "Not kept",
      says: `The new program gets the old one's permissions: ${suspended.kept}.`,
      yes: "Keep it",
      act: decide(true),
    })}
    ${actButton({
      key: `identity-afresh:${server.name}`,
      ready: "Start afresh",
      label: `Start afresh: ${server.name}`,
      going: "Setting aside\u2026",
      done: "Set aside",
      failed: "Not set aside",
      says: `Its grants are revoked, and the rest is set aside: ${suspended.kept}.`,
      yes: "Set it aside",
      act: decide(false),
    })}`;
}
