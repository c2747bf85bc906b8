// Hosts and folders that are permanently open to a server: lists, opens and closes them.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").Server} Server */

/** The planned opening. @type {{ server: string, what: string, words: string } | null} */
let planned = null;
/** Typed hosts, by server. @type {Map<string, string>} */
const hosts = new Map();
/** @type {Map<string, string>} */
const told = new Map();

/**
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function openings(server, reload) {
  if (!server.sandboxed || server.remote) return nothing;
  const note = told.get(server.name);
  return parts.row(html`
    <h3>Always allowed</h3>
    ${server.openings.length === 0 ? html`<p class="small quiet">Nothing extra.</p>` : html`
      <ul class="opened">${repeat(server.openings, (one) => `${one.opening.kind} ${one.opening.what}`, (one) => opened(server, one, reload))}</ul>`}
    ${note ? html`<p class="small good" role="status">${note}</p>` : nothing}
    ${planned?.server === server.name ? panel(server, planned, reload) : form(server)}`);
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
      ready: "Close",
      label: `Close ${one.opening.what} to ${server.name}`,
      going: "Closing\u2026",
      done: "Closed",
      failed: "Not closed",
      again: true,
      says: `${server.name} no longer always has access to ${one.opening.what}.${server.live.length > 0 ? ` It ends for ${count(server.live.length, "session")}, so that this holds at once.` : ""}`,
      act: async () => {
        told.set(server.name, await backend.closeOpening(server.name, one.opening));
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
    <details>
      <summary data-key="open-more:${server.name}">Allow a folder or host permanently\u2026</summary>
      <p class="small quiet">For what ${parts.foreign(server.name)} itself needs at all times, whichever agent uses it. A folder that an agent is to work in is better <a href="#permissions">granted</a>: that is for one agent, and can end by itself.</p>
      ${parts.field("Host", html`<input type="text" class="mono" autocomplete="off" spellcheck="false" placeholder="api.example.com" data-key="open-host:${server.name}" .value=${live(host)} @input=${type}>`, "A name; *.example.com for every host below it.")}
      <div class="both start">
        ${plan(server, "host", "Open this host\u2026", { kind: "host", host }, host.trim() === "")}
        ${plan(server, "read", "Pick a folder to read\u2026", { kind: "read" })}
        ${plan(server, "write", "Pick a folder to change\u2026", { kind: "write" })}
      </div>
    </details>`;
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
    going: "Looking\u2026",
    done: "Looked",
    failed: "Not possible",
    again: true,
    off,
    act: async () => {
      told.delete(server.name);
      const found = await backend.planOpening(server.name, wanted);
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
    `Opening ${one.what} to ${server.name}`,
    html`<p class="says">${parts.foreign(plain(one.words))}.</p><p class="small quiet">It stays allowed until you close it here.</p>`,
    {
      key: `open-now:${server.name}`,
      ready: "Allow it permanently",
      label: `Allow it permanently: ${one.what} to ${server.name}`,
      going: "Opening\u2026",
      done: "Opened",
      failed: "Not opened",
      act: async () => {
        told.set(server.name, await backend.writeOpening());
        planned = null;
        hosts.delete(server.name);
        await reload();
      },
    },
    { key: `open-leave:${server.name}`, text: "Cancel", press: () => { planned = null; redraw(); } },
  );
