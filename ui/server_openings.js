// Lists, opens and closes the hosts and folders that are permanently open to a server.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** The planned opening. @type {{ server: string, what: string, words: string } | null} */
let planned = null;
/** Typed hosts, by server. @type {Map<string, string>} */
const hosts = new Map();
/** @type {Map<string, string>} */
const results = new Map();

/**
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function openings(server, reload) {
  if (!server.sandboxed || server.remote) return nothing;
  const note = results.get(server.name);
  return html`
    <h3 class="some">${SERVERS.always}</h3>
    ${server.openings.length === 0 ? html`<p class="small quiet">${SERVERS.nothingExtra}</p>` : html`
      <ul class="opened">${repeat(server.openings, (one) => `${one.opening.kind} ${one.opening.what}`, (one) => opened(server, one, reload))}</ul>`}
    ${note ? html`<p class="small good" role="status">${note}</p>` : nothing}
    ${planned?.server === server.name ? panel(server, planned, reload) : form(server)}`;
}

/**
 * @param {Server} server
 * @param {import("./types.js").ServerOpening} one
 * @param {() => Promise<void>} reload
 */
const opened = (server, one, reload) => html`
  <li><span class="small">${parts.foreign(plain(one.words))}.</span>
    ${actButton({
      key: `close:${server.name}:${one.opening.kind}:${one.opening.what}`,
      ...SERVERS.close,
      label: SERVERS.closeLabel(one.opening.what, server.name),
      again: true,
      says: SERVERS.closeSays(server.name, one.opening.what, server.live.length),
      act: async () => {
        results.set(server.name, await backend.closeOpening(server.name, one.opening));
        await reload();
      },
    })}
  </li>`;

/**
 * Removes backquotes around names, which are for terminals.
 * @param {string} words
 */
const plain = (words) => words.replaceAll("`", "");

/** @param {Server} server */
function form(server) {
  const host = hosts.get(server.name) ?? "";
  const type = (/** @type {Event} */ event) => {
    hosts.set(server.name, parts.valueOf(event));
    redraw();
  };
  return html`
    <div class="panel" role="group" aria-label=${SERVERS.allowMore}>
      <p class="small quiet">${SERVERS.allowMoreText} <a href="#permissions">${SERVERS.permissions}</a></p>
      ${parts.field(SERVERS.host, html`<input type="text" class="mono" autocomplete="off" spellcheck="false" placeholder="api.example.com" data-key="open-host:${server.name}" .value=${live(host)} @input=${type}>`, SERVERS.hostHint)}
      <div class="both start">
        ${plan(server, "host", SERVERS.openHost, { kind: "host", host }, host.trim() === "")}
        ${plan(server, "read", SERVERS.pickRead, { kind: "read" })}
        ${plan(server, "write", SERVERS.pickWrite, { kind: "write" })}
      </div>
    </div>`;
}

/**
 * @param {Server} server
 * @param {string} kind
 * @param {string} ready
 * @param {import("./types.js").WantedOpening} wanted
 * @param {boolean} [off]
 */
const plan = (server, kind, ready, wanted, off = false) =>
  actButton({
    key: `open-${kind}:${server.name}:plan`,
    ready,
    label: `${ready} ${server.name}`,
    ...SERVERS.planning,
    again: true,
    off,
    act: async () => {
      results.delete(server.name);
      const found = await planning("opening", () => backend.planOpening(server.name, wanted));
      if (found) planned = { server: server.name, ...found };
    },
  });

/**
 * @param {Server} server
 * @param {{ what: string, words: string }} one
 * @param {() => Promise<void>} reload
 */
const panel = (server, one, reload) =>
  planPanel(
    SERVERS.opening(one.what, server.name),
    html`<p class="says">${parts.foreign(plain(one.words))}.</p><p class="small quiet">${SERVERS.staysOpen}</p>`,
    {
      key: `open-now:${server.name}`,
      writes: "opening",
      ...SERVERS.open,
      label: SERVERS.openLabel(one.what, server.name),
      act: async () => {
        results.set(server.name, await backend.writeOpening());
        planned = null;
        hosts.delete(server.name);
        await reload();
      },
    },
    { key: `open-leave:${server.name}`, text: SERVERS.cancel, press: () => { planned = null; redraw(); } },
  );
