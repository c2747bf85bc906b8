// Shows a server's resource limits, and changes them after a preview.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";
import { number } from "./words.js";

/** @typedef {import("./types.js").Server} Server */
/** @typedef {import("./types.js").ServerLimit} ServerLimit */

/** The planned change. @type {{ server: string, planned: import("./types.js").PlannedLimits } | null} */
let planned = null;
/** Typed values, by server and limit. @type {Map<string, Map<string, string>>} */
const typed = new Map();
/** @type {Map<string, string>} */
const results = new Map();

/**
 * @param {Server} server
 * @param {() => Promise<void>} reload
 */
export function limits(server, reload) {
  if (server.limits.length === 0) return nothing;
  const note = results.get(server.name);
  return html`
    <h3 class="some">${SERVERS.limits}</h3>
    ${note ? html`<p class="small good" role="status">${note}</p>` : nothing}
    ${planned?.server === server.name ? panel(server, planned.planned, reload) : form(server)}`;
}

/**
 * Returns the text of a field. The text is empty for the default.
 * @param {Server} server
 * @param {ServerLimit} one
 */
const textOf = (server, one) => typed.get(server.name)?.get(one.limit) ?? (one.own === null ? "" : String(one.own));

/**
 * Parses a typed number. Returns null for the default, and undefined if the number is invalid.
 * @param {string} text
 */
function valueOf(text) {
  const plain = text.replace(/[\s,]/g, "");
  if (plain === "") return null;
  return /^\d{1,12}$/.test(plain) ? Number(plain) : undefined;
}

/** @param {Server} server */
function form(server) {
  const wanted = server.limits.map((one) => /** @type {const} */ ([one.limit, valueOf(textOf(server, one))]));
  const isOff = wanted.some(([, value]) => value === undefined) || server.limits.every((one) => valueOf(textOf(server, one)) === one.own);
  return html`
    <p class="small quiet">${SERVERS.limitsText}</p>
    <div class="form limits">${server.limits.map((one) => field(server, one))}</div>
    <div class="both start">
      ${actButton({
        key: `limits-plan:${server.name}`,
        ...SERVERS.planning,
        ready: SERVERS.planLimits,
        label: SERVERS.planLimitsLabel(server.name),
        again: true,
        off: isOff,
        act: async () => {
          results.delete(server.name);
          planned = { server: server.name, planned: await planning("limits", () => backend.planLimits(server.name, Object.fromEntries(wanted))) };
        },
      })}
    </div>`;
}

/**
 * @param {Server} server
 * @param {ServerLimit} one
 */
function field(server, one) {
  const text = textOf(server, one);
  const type = (/** @type {Event} */ event) => {
    typed.set(server.name, new Map([...(typed.get(server.name) ?? []), [one.limit, parts.valueOf(event)]]));
    redraw();
  };
  return parts.field(
    one.name,
    html`<span class="amount"><input type="text" class="amount" inputmode="numeric" autocomplete="off" placeholder=${one.default === null ? SERVERS.noLimit : number(one.default)} data-key="limit:${server.name}:${one.limit}" .value=${live(text)} @input=${type}> ${one.unit}</span>`,
    valueOf(text) === undefined ? html`<span class="bad">${SERVERS.wholeNumber}</span>` : (SERVERS.limitHints[one.limit] ?? nothing),
  );
}

/**
 * @param {Server} server
 * @param {import("./types.js").PlannedLimits} change
 * @param {() => Promise<void>} reload
 */
const panel = (server, change, reload) =>
  planPanel(
    SERVERS.limitsOf(server.name),
    html`
      <ul>${change.differences.map((one) => html`<li class=${one.looser ? "asks" : ""}>${one.words}</li>`)}</ul>
      <pre tabindex="0" aria-label=${SERVERS.fileChange}>${change.diff}</pre>
      <p class="small quiet">${SERVERS.newSessions}</p>`,
    {
      key: `limits-write:${server.name}`,
      writes: "limits",
      ...SERVERS.save,
      label: SERVERS.saveLimitsLabel(server.name),
      act: async () => {
        results.set(server.name, await backend.writeLimits());
        planned = null;
        typed.delete(server.name);
        await reload();
      },
    },
    { key: `limits-leave:${server.name}`, text: SERVERS.cancel, press: () => { planned = null; redraw(); } },
  );
