// Granting a folder or a file beforehand: who may do what with it and for how long. What is picked is what is granted.

import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw, say } from "./state.js";
import { list } from "./words.js";

/** @typedef {import("./types.js").KnownClient} KnownClient */
/** @typedef {import("./types.js").Access} Access */

/** @type {[import("./types.js").Lifetime, string][]} */
export const LIFETIMES = [["session", "this session"], ["quarter-hour", "15 minutes"], ["hour", "1 hour"], ["always", "until I take it back"]];
/** @type {Access[]} */
export const ACCESSES = ["read", "write", "delete"];

/** @type {import("./types.js").Gift} */
const gift = { client: "", server: "", kind: "folder", access: ["read"], lifetime: "hour" };
let picking = false;
let told = "";
let problem = "";

/** @param {import("./types.js").Snapshot} snapshot */
export function giftForm({ clients, home }) {
  const [first] = clients;
  if (!first) return nothing;
  const client = clients.find((one) => one.key === gift.client) ?? first;
  const server = client.servers.includes(gift.server) ? gift.server : (client.servers[0] ?? "");
  const live = client.live.includes(server);
  const lifetime = gift.lifetime === "session" && !live ? "hour" : gift.lifetime;
  const whole = { ...gift, client: client.key, server, lifetime };
  return html`
    <details class="card">
      <summary data-key="gift">Grant a folder or file beforehand</summary>
      <div class="form">
        ${parts.field("Agent", parts.select("gift-client", client.key, clients.map((one) => [one.key, one.name]), (to) => set({ client: to })), html`proved: ${parts.path(client.key)}`)}
        ${parts.field("Server", parts.select("gift-server", server, client.servers.map((name) => [name, name]), (to) => set({ server: to })))}
        ${parts.field("Lasts", parts.select("gift-lifetime", lifetime, LIFETIMES.filter(([value]) => live || value !== "session"), (to) => set({ lifetime: /** @type {any} */ (to) })))}
        ${accessTicks("gift", gift.access, ACCESSES, (access) => set({ access }))}
      </div>
      <p class="says">${says(whole, client)}</p>
      <div class="both start">
        ${parts.button("pick-folder", "Pick a folder\u2026", () => void pick({ ...whole, kind: "folder" }, home), { kind: "main", off: picking || gift.access.length === 0 })}
        ${parts.button("pick-file", "Pick a file\u2026", () => void pick({ ...whole, kind: "file" }, home), { off: picking || gift.access.length === 0 })}
      </div>
      ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
      ${problem ? parts.problem(`Not granted: ${problem}`) : nothing}
    </details>`;
}

/**
 * Boxes for what may be done.
 * @param {string} key
 * @param {Access[]} chosen
 * @param {Access[]} from
 * @param {(access: Access[]) => void} choose
 */
export const accessTicks = (key, chosen, from, choose) => html`
  <fieldset class="field"><legend class="name">May</legend>
    <div class="ticks">${from.map((one) =>
      parts.tick(`${key}:${one}`, one, chosen.includes(one), (on) => choose(from.filter((other) => (other === one ? on : chosen.includes(other))))),
    )}</div>
  </fieldset>`;

/**
 * @param {import("./types.js").Gift} whole
 * @param {KnownClient} client
 */
function says(whole, client) {
  if (whole.access.length === 0) return "Choose what it may do.";
  const how = whole.lifetime === "always" ? "until you take it back" : `for ${LIFETIMES.find(([value]) => value === whole.lifetime)?.[1]}`;
  return `What you pick, ${client.name} may ${list(whole.access)} through ${whole.server}, ${how}. A folder is granted with all that is below it.`;
}

/** @param {Partial<import("./types.js").Gift>} change */
function set(change) {
  Object.assign(gift, change);
  told = problem = "";
  redraw();
}

/**
 * @param {import("./types.js").Gift} whole
 * @param {string} home
 */
async function pick(whole, home) {
  picking = true;
  told = problem = "";
  redraw();
  try {
    const path = await backend.grantBeforehand(whole);
    if (path !== null) told = `Granted: ${path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path}`;
    if (told) say(told);
  } catch (failure) {
    problem = backend.sentence(failure);
  }
  picking = false;
  redraw();
}
