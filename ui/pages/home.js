// The state of protection at a glance: the map, what needs the user, the 24-hour chart, and recent calls.

import { cells } from "../activity_line.js";
import { currentBypasses, loadClients, uncheckedAgents } from "../agent_connect.js";
import { html, nothing, repeat } from "../html.js";
import { map } from "../map.js";
import { needs, needsYou } from "../needs_you.js";
import * as parts from "../parts.js";
import { protectionState } from "../protection_state.js";
import { reachModel } from "../reach_model.js";
import { strip, sums } from "../strip.js";
import { FRAME } from "../texts/frame.js";
import { HOME } from "../texts/home.js";
import { STRIP } from "../texts/strip.js";

/** @type {import("../app.js").Page} */
export const home = {
  id: "home",
  name: FRAME.pages.home,
  load: loadClients,
  count: (snapshot) => (needs(snapshot) > 0 ? "!" : 0),
  view(snapshot) {
    const { status, sessions, recent, day } = snapshot;
    const bypasses = currentBypasses(snapshot);
    const { title, text, warning } = protectionState(snapshot, bypasses, uncheckedAgents());
    return html`
      ${parts.heading(title)}
      ${text ? html`<p class="lead-in quiet">${text}</p>` : nothing}
      ${warning ? html`<p class="lead-in bad">${parts.foreign(warning)}</p>` : nothing}
      ${[status.other_home, ...status.troubles].map((one) => (one ? trouble(one) : nothing))}
      ${sessions.length + bypasses.length === 0 ? noAgent(snapshot) : map(reachModel(snapshot, bypasses))}
      ${needsYou(snapshot)}
      ${day === null ? nothing : lastDay(day)}
      ${recent.length === 0 ? nothing : html`
        ${parts.section(HOME.recent, html`<a class="more" href="#activity" data-key="all">${HOME.all}</a>`)}
        <ul class="lines">${repeat(recent, (call) => call.seq, (call) => html`<li><a class="line" href="#activity/${call.seq}" data-key="recent:${call.seq}">${cells(call)}</a></li>`)}</ul>`}`;
  },
};

/** Text before the command in the app's problem messages. */
const RUN = " Run: ";

/**
 * Returns a problem, with the command that solves it on a separate line.
 * @param {string} text
 */
function trouble(text) {
  const [what, command] = text.split(RUN);
  return html`
    <div class="card bad-card" role="alert">
      <p class="bad">${parts.icon("triangle-alert")} ${what}</p>
      ${command ? html`<p class="after">${HOME.remedy}</p><pre tabindex="0">${command}</pre>` : nothing}
    </div>`;
}

/**
 * Returns the row that leads to connecting the first agent.
 * @param {import("../types.js").Snapshot} snapshot
 */
function noAgent({ clients, recent }) {
  const isNew = clients.length === 0 && recent.length === 0;
  const link = isNew
    ? html`<a class="button main" href="#welcome" data-key="welcome">${HOME.firstSteps}</a>`
    : html`<a class="button main" href="#agents" data-key="connect">${HOME.connect}</a>`;
  return parts.group(parts.row(parts.emptyState("bot", isNew ? HOME.notProtectedText : HOME.noAgentText, link)));
}

/** @param {import("../types.js").Day} day */
function lastDay(day) {
  const [allowed = 0, asked = 0, denied = 0] = sums(day);
  const legend = html`<span class="legend">${parts.dot("good", STRIP.allowed(allowed))}${parts.dot("asks", STRIP.asked(asked))}${parts.dot("bad", STRIP.denied(denied))}</span>`;
  return html`${parts.section(HOME.lastDay, legend)}${strip(day, showActivity)}`;
}

/**
 * Shows the entries of a period on the Activity page.
 * @param {number} from
 * @param {number} to
 */
async function showActivity(from, to) {
  const { showTime } = await import("./activity.js");
  showTime(from, to);
}
