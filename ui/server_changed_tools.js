// Tools that a server changed or added: the changed words, and the decision about each tool.

import { actButton, forget } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */
/** @typedef {import("./types.js").ChangedTool} ChangedTool */
/** @typedef {(words: string) => Promise<void>} Done */

/**
 * Returns whether calls to one of this server's tools are refused until the user decides.
 * @param {Server} server
 */
export const hasSuspendedTools = (server) => server.changed_tools.some((one) => one.state === "suspended");

/**
 * Returns the section in a server's details, or nothing if no tool differs from what the user accepted.
 * @param {Server} server
 * @param {Done} done
 */
export const changedTools = (server, done) =>
  server.changed_tools.length === 0 ? nothing : html`
    <h3 class="some">${SERVERS.changedTools}</h3>
    ${hasSuspendedTools(server) ? html`<p class="small">${SERVERS.changedToolsText}</p>` : nothing}
    ${repeat(server.changed_tools, (one) => one.change, (one) => changedTool(server, one, done))}`;

/** @type {Record<ChangedTool["state"], import("./parts.js").Tone>} */
const TONES = { suspended: "bad", new: "asks", kept: "note", removed: "note" };

/**
 * @param {Server} server
 * @param {ChangedTool} one
 * @param {Done} done
 */
const changedTool = (server, one, done) => html`
  <div class="changed-tool" role="group" aria-label=${SERVERS.decideAbout(one.tool)}>
    <h4><code>${parts.foreign(one.tool)}</code> ${parts.chip(SERVERS.toolStates[one.state], TONES[one.state])}</h4>
    ${one.parts.map((part) => changedPart(one, part))}
    ${one.hints.length === 0 ? nothing : html`<ul class="small asks">${one.hints.map((hint) => html`<li>${parts.foreign(SERVERS.toolHint(hint))}</li>`)}</ul>`}
    <div class="both start">${decisions(server, one, done)}</div>
  </div>`;

/**
 * Returns a changed part. The arguments of a new tool are shown on demand.
 * @param {ChangedTool} one
 * @param {ChangedTool["parts"][number]} part
 */
function changedPart(one, { part, words }) {
  const text = html`<pre class="word-diff" tabindex="0" aria-label=${SERVERS.partOf(part, one.tool)}>${words.map(changedWords)}</pre>`;
  return part === "description" || one.state !== "new"
    ? html`<p class="small quiet">${part}</p>${text}`
    : html`<details><summary class="small" data-key="part:${one.change}:${part}">${part}</summary>${text}</details>`;
}

/** @param {ChangedTool["parts"][number]["words"][number]} words */
function changedWords({ is, text }) {
  if (is === "same") return text;
  return is === "added"
    ? html`<ins><span class="unseen">${SERVERS.addedWords} </span>${text}</ins>`
    : html`<del><span class="unseen">${SERVERS.removedWords} </span>${text}</del>`;
}

/**
 * Returns a button for each decision that would have an effect.
 * @param {Server} server
 * @param {ChangedTool} one
 * @param {Done} done
 */
function decisions(server, one, done) {
  const button = (/** @type {"update" | "keep" | "remove"} */ decision, /** @type {string} */ ready, kind = "") => {
    const key = `tool-${decision}:${server.name}:${one.change}`;
    return actButton({
      key,
      ready,
      ...SERVERS.deciding,
      label: SERVERS.decideLabel(ready, one.tool),
      kind,
      act: async () => {
        await done(await backend.decideTool(server.name, one.change, decision));
        // If the tool changes again, a new decision is needed.
        forget(key);
      },
    });
  };
  const update = { suspended: SERVERS.useNew, new: SERVERS.keepTool, kept: SERVERS.useNew, removed: SERVERS.useAgain }[one.state];
  return html`
    ${button("update", update)}
    ${one.state === "suspended" ? button("keep", SERVERS.useOld) : nothing}
    ${one.state === "removed" ? nothing : button("remove", SERVERS.removeTool, "stop")}`;
}
