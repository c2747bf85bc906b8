// Shows a server's tools, and lets the user review them. The tool list is shown before it is saved.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import { closeMenu } from "./menu.js";
import { show } from "./opened.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** @type {Map<string, import("./types.js").Proposed>} */
const proposed = new Map();

/**
 * @param {Server} server
 * @param {string} key Key of its row.
 */
export const reviewButton = (server, key) =>
  actButton({
    key: `look:${server.name}`,
    ...SERVERS.review,
    ready: server.tools.length === 0 ? SERVERS.reviewTools : SERVERS.recheckTools,
    label: SERVERS.reviewLabel(server.name),
    again: true,
    says: SERVERS.reviewSays(server.name),
    act: async () => {
      proposed.set(server.name, await planning(`tools:${server.name}`, () => backend.reviewTools(server.name)));
      closeMenu();
      show(key);
      focusOn(`drop:${server.name}`);
    },
  });

/**
 * @param {Server} server
 * @param {(words: string) => Promise<void>} done
 */
export function tools(server, done) {
  const draft = proposed.get(server.name);
  return html`
    <h3 class="some">${SERVERS.toolsTitle}</h3>
    ${draft ? proposal(server, draft, done) : nothing}
    ${server.tools.length === 0
      ? parts.warning(SERVERS.noTools)
      : html`<details><summary data-key="tools:${server.name}">${SERVERS.tools(server.tools.length)}</summary>
          <ul class="tool-list">${server.tools.map((tool) => html`<li><code>${parts.foreign(tool.name)}</code> <span class="quiet small">${parts.foreign(tool.means)}</span></li>`)}</ul></details>`}`;
}

/**
 * Returns the panel with the proposed annotations of a server's tools.
 * @param {Server} server
 * @param {import("./types.js").Proposed} draft
 * @param {(words: string) => Promise<void>} done
 */
const proposal = (server, draft, done) =>
  planPanel(
    SERVERS.proposalOf(server.name),
    html`
      <h3>${draft.changes ? SERVERS.proposal : SERVERS.noChange}</h3>
      <ul class="tool-list">${draft.tools.map((tool) => html`
        <li><code>${parts.foreign(tool.name)}</code> <span class="badge note">${tool.change}</span>
          ${tool.differs.length > 0 ? html`<ul class="small asks">${tool.differs.map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>` : nothing}
          ${tool.left_out ? html`<div class="small asks">${parts.foreign(SERVERS.refused(tool.left_out))}</div>` : nothing}
          ${tool.arguments.map((one) => html`<div class="small">${parts.foreign(one.name)}: <b>${one.roles || SERVERS.noResource}</b> <span class="quiet">(${one.sure}: ${parts.foreign(one.reason)})</span></div>`)}
        </li>`)}</ul>
      ${draft.gone.length > 0 ? html`<p class="small">${SERVERS.gone(draft.gone)}</p>` : nothing}`,
    draft.changes ? {
      key: `keep:${server.name}`,
      writes: `tools:${server.name}`,
      ...SERVERS.save,
      says: SERVERS.saveToolsSays(server.name),
      act: async () => {
        const words = await backend.saveTools(server.name);
        proposed.delete(server.name);
        await done(words);
      },
    } : null,
    { key: `drop:${server.name}`, text: SERVERS.cancel, press: () => { proposed.delete(server.name); redraw(); } },
  );
