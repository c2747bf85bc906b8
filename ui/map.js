// The map: agents, their servers in a sandbox or without one, and what each can reach. Drawn from the state.
//
// - A connection without a sandbox has its own colour, a dashed double line and a warning sign.
// - Sentences give the same information to screen readers, and replace the picture in a narrow window.

import { html, nothing, svg } from "./html.js";
import { icon } from "./icon.js";
import { hue, initials } from "./initials.js";
import { fitted } from "./reach_model.js";
import { redraw } from "./state.js";
import { MAP } from "./texts/map.js";
import { cut } from "./words.js";

/** @typedef {import("./reach_model.js").AgentNode} AgentNode */
/** @typedef {import("./reach_model.js").ServerNode} ServerNode */
/** @typedef {import("./reach_model.js").Target} Target */

/** Columns of the map: the start of each, and the number of letters that fit. */
const WIDE = {
  width: 728,
  agent: { x: 16, size: 36, end: 186, letters: 15 },
  server: { x: 224, width: 176, letters: 18 },
  target: { x: 448, end: 712, letters: 32 },
};
/** @type {typeof WIDE} */
const NARROW = {
  width: 560,
  agent: { x: 16, size: 36, end: 150, letters: 11 },
  server: { x: 170, width: 166, letters: 15 },
  target: { x: 366, end: 548, letters: 20 },
};
/** Matches if the page is too narrow for the wide columns. */
const narrow = matchMedia("(max-width: 940px)");
narrow.addEventListener("change", redraw);
const LINE = 36;
const BOX = 44;
const GAP = 14;
/** Maximum number of agents shown. The others are only counted. */
const MOST_AGENTS = 6;

/**
 * Returns the map.
 * @param {AgentNode[]} all
 * @param {boolean} [isExample] True to draw narrow columns without links.
 */
export function map(all, isExample = false) {
  const columns = isExample || narrow.matches ? NARROW : WIDE;
  const node = isExample ? still : link;
  const agents = all.slice(0, MOST_AGENTS);
  let y = GAP;
  const placed = agents.map((agent) => {
    const top = y;
    const servers = agent.servers.map((server) => {
      const height = Math.max(BOX, server.targets.length * LINE);
      const at = { server, y, height };
      y += height + GAP;
      return at;
    });
    return { agent, servers, middle: (top + y - GAP) / 2 };
  });
  return html`
    <div class="map">
      <svg viewBox="0 0 ${columns.width} ${y}" role="group" aria-label=${MAP.label}>
        ${placed.map(({ agent, servers, middle }) => servers.map((one) => connections(columns, agent, middle, one)))}
        ${placed.map((one) => svg`${agentNode(columns, node, one.agent, one.middle)}${one.servers.map((at) => serverNodes(columns, node, at))}`)}
      </svg>
      <ul class="map-words">${agents.flatMap(sentences).map(({ text, isOpen }) => html`<li>${isOpen ? html`<span class="bad">${icon("triangle-alert")} ${text}</span>` : text}</li>`)}</ul>
      ${all.length > MOST_AGENTS ? html`<a class="map-more" href="#agents">${MAP.moreAgents(all.length - MOST_AGENTS)}</a>` : nothing}
    </div>`;
}

/** @typedef {(href: string, label: string, kind: string, content: unknown) => unknown} Node The label is its accessible name, also shown on hover. */

/** @type {Node} */
const link = (href, label, kind, content) => svg`<a class="node ${kind}" href=${href} data-key="map:${href}"><title>${label}</title>${content}</a>`;

/** @type {Node} */
const still = (_, __, kind, content) => svg`<g class="node ${kind}">${content}</g>`;

/**
 * @param {string} name
 * @param {number} x
 * @param {number} y
 * @param {number} [size]
 */
const drawn = (name, x, y, size = 16) =>
  svg`<svg class="sign" x=${x} y=${y} width=${size} height=${size} viewBox="0 0 24 24"><use href="#i-${name}"></use></svg>`;

/**
 * Returns the lines from an agent to a server, and from the server to its targets.
 * @param {typeof WIDE} columns
 * @param {AgentNode} agent
 * @param {number} from
 * @param {{ server: ServerNode, y: number, height: number }} at
 */
function connections({ agent, server: box, target }, { name, asks, reachesAll }, from, { server, y, height }) {
  const to = y + height / 2;
  const kind = `way ${serverClass(server)} ${server.paused || server.stopped ? "idle" : ""}`;
  const into = curve(nameEnd(agent, [name, ...agentStates(agent, asks, reachesAll)]), from, box.x, to);
  return svg`
    <path class=${kind} d=${into} />${isOpen(server) ? svg`<path class="core" d=${into} />` : nothing}
    ${server.targets.map((_, n) => svg`<path class=${kind} d=${curve(box.x + box.width, to, target.x - 8, middle(server, n, y, height))} />`)}`;
}

/** Returns the x coordinate at which an agent's texts end and its line starts. @param {typeof WIDE["agent"]} column @param {string[]} texts */
const nameEnd = ({ x, size, end, letters }, texts) => Math.min(end, x + size + 22 + Math.max(...texts.map((text) => [...cut(text, letters)].length)) * 7.8);

/**
 * Returns the lines below an agent's name.
 * @param {typeof WIDE["agent"]} column
 * @param {boolean} asks
 * @param {boolean} reachesAll
 */
const agentStates = ({ letters }, asks, reachesAll) => [
  ...(asks ? [MAP.asking] : []),
  ...(reachesAll ? (letters < WIDE.agent.letters ? MAP.reachesAllNarrow : [MAP.reachesAll]) : []),
];

/**
 * @param {number} x
 * @param {number} y
 * @param {number} toX
 * @param {number} toY
 */
const curve = (x, y, toX, toY) => `M${x} ${y}C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}`;

/**
 * Returns the y coordinate of a target's centre.
 * @param {ServerNode} server
 * @param {number} n
 * @param {number} y
 * @param {number} height
 */
const middle = (server, n, y, height) => y + (height - server.targets.length * LINE) / 2 + (n + 0.5) * LINE;

/**
 * @param {typeof WIDE} columns
 * @param {Node} node
 * @param {AgentNode} agent
 * @param {number} at
 */
function agentNode(columns, node, { name, asks, reachesAll }, at) {
  const { x, size, end, letters } = columns.agent;
  const y = at - size / 2;
  const states = agentStates(columns.agent, asks, reachesAll);
  const label = [name, asks ? MAP.asking : "", reachesAll ? MAP.reachesAll : ""].filter(Boolean).join(", ");
  return node(`#agents/${encodeURIComponent(name)}`, label, "agent", svg`
    <rect class="touch" x=${x - 6} y=${y - 6} width=${end - x + 6} height=${size + 12} rx="8" />
    ${asks ? svg`<rect class="pulse" x=${x - 4} y=${y - 4} width=${size + 8} height=${size + 8} rx="14" />` : nothing}
    <rect class="face ${hue(name)}" x=${x} y=${y} width=${size} height=${size} rx="10" />
    ${reachesAll ? svg`<rect class="exposed" x=${x - 4} y=${y - 4} width=${size + 8} height=${size + 8} rx="14" />` : nothing}
    <text class="initials" aria-hidden="true" x=${x + size / 2} y=${at + 5} text-anchor="middle">${initials(name)}</text>
    <text class="name" x=${x + size + 10} y=${at + 5 - 7 * states.length}>${cut(name, letters)}</text>
    ${states.map((state, n) => svg`<text class="sub ${state === MAP.asking ? "asks" : "exposed-words"}" x=${x + size + 10} y=${at + 21 - 7 * states.length + 15 * n}>${state}</text>`)}`);
}

/**
 * @param {typeof WIDE} columns
 * @param {Node} node
 * @param {{ server: ServerNode, y: number, height: number }} at
 */
function serverNodes(columns, node, { server, y, height }) {
  const { x, width, letters } = columns.server;
  const top = y + (height - BOX) / 2;
  const state = stateWords(server);
  const sign = isOpen(server) ? "triangle-alert" : server.how === "remote" ? "cloud" : "shield-check";
  return svg`
    ${node(server.page, [server.name, state, how(server)].filter(Boolean).join(", "), `server ${serverClass(server)}`, svg`
      <rect class="box" x=${x} y=${top} width=${width} height=${BOX} rx="8" />
      ${drawn(sign, x + 12, top + 13, 18)}
      <text class="name" x=${x + 40} y=${top + 19}>${cut(nameOf(server, letters), state ? letters - state.length : letters)}${state ? svg`<tspan class="sub" dx="6">${state}</tspan>` : nothing}</text>
      <text class="sub" x=${x + 40} y=${top + 35}>${how(server)}</text>`)}
    ${server.targets.map((target, n) => targetNode(columns, node, target, middle(server, n, y, height)))}`;
}

/** @param {ServerNode} server */
const stateWords = ({ paused, stopped }) => (stopped ? MAP.stopped : paused ? MAP.paused : "");

/** Returns `true` for a server that no sandbox contains. @param {ServerNode} server */
const isOpen = (server) => server.how === "open" || server.how === "bypass";

/** Returns the class of a server and of its lines. @param {ServerNode} server */
const serverClass = (server) => (isOpen(server) ? "open" : server.how);

/** @param {ServerNode} server */
const how = (server) => (server.how === "bypass" ? MAP.bypass(server.count) : MAP[server.how]);

/** Returns the names of a node's servers, or their number if the names do not fit. @param {ServerNode} server @param {number} letters */
const nameOf = (server, letters) => (server.count > 1 && [...server.name].length > letters ? MAP.servers(server.count) : server.name);

/** @param {ServerNode} server */
const howWords = (server) => [server.how === "bypass" ? MAP.bypassing : how(server), stateWords(server)].filter(Boolean).join(", ");

/** @type {Record<Target["kind"], string>} */
const SIGNS = { folder: "folder", computer: "folder", host: "globe", all: "triangle-alert", sent: "cloud", scratch: "folder", more: "ellipsis" };

/**
 * @param {typeof WIDE} columns
 * @param {Node} node
 * @param {Target} target
 * @param {number} at
 */
function targetNode(columns, node, target, at) {
  const { x, end, letters } = columns.target;
  const text = targetWords(target);
  const isPath = target.kind === "folder";
  const access = target.kind === "host" ? MAP.connect : MAP.access(target.access);
  const shown = isPath || target.kind === "host" ? fitted(text, letters) : text;
  return node(target.page, MAP.reaches(target.full || text, target.access), `target ${target.kind}`, svg`
    <rect class="touch" x=${x - 6} y=${at - 17} width=${end - x + 6} height="34" rx="6" />
    ${drawn(SIGNS[target.kind], x, at - 8)}
    <text class="name ${isPath ? "file" : ""}" x=${x + 24} y=${access ? at - 2 : at + 4}>${shown}</text>
    ${access ? svg`<text class="sub" x=${x + 24} y=${at + 13}>${access}</text>` : nothing}`);
}

/** @param {Target} target */
function targetWords({ kind, text }) {
  switch (kind) {
    case "folder":
    case "host": return text;
    case "computer": return MAP.computer;
    case "more": return MAP.more(text);
    case "all": return MAP.all;
    case "sent": return MAP.sent;
    case "scratch": return MAP.scratch;
  }
}

/** @param {AgentNode} agent */
const sentences = (agent) => [
  ...(agent.asks ? [{ text: `${MAP.asks(agent.name)}.`, isOpen: false }] : []),
  ...agent.servers.map((server) => ({
    text: MAP.sentence(agent.name, server.name, howWords(server), server.targets.map((one) => MAP.reaches(targetWords(one), one.access)).join("; ")),
    isOpen: isOpen(server),
  })),
];
