// Computes what each agent's servers can reach, from the state. Pure functions.

import { list, named, short } from "./words.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {{ kind: "folder" | "computer" | "host" | "all" | "sent" | "scratch" | "more", text: string, full: string, access: string[], page: string }} Target `page` explains why it is reachable. */
/** @typedef {{ name: string, how: "sandboxed" | "open" | "remote" | "bypass", count: number, paused: boolean, stopped: boolean, page: string, targets: Target[] }} ServerNode
 *   Servers that bypass IronCurtain are one node: `count` is their number. */
/** @typedef {{ name: string, asks: boolean, reachesAll: boolean, servers: ServerNode[] }} AgentNode */

/** Value of `source` for the folder that every session has. */
const SCRATCH = "the session's own folder";
/** Value of `source` for the paths that a server's entry opens. */
const ENTRY = "the server's settings";
/** Maximum number of targets shown per server. The others are only counted. */
const MAX_ITEMS = 4;

/**
 * Returns the agents with their servers and targets. Sessions of the same agent with the same server are combined.
 * @param {Pick<import("./types.js").Snapshot, "sessions" | "waiting" | "grants" | "home">} snapshot
 * @param {import("./bypasses.js").Bypass[]} bypasses
 * @returns {AgentNode[]}
 */
export function reachModel({ sessions, waiting, grants, home }, bypasses) {
  /** @type {Map<string, Map<string, Session[]>>} */
  const agents = new Map();
  for (const session of sessions) {
    const servers = agents.get(session.client.name) ?? new Map();
    servers.set(session.server, [...(servers.get(session.server) ?? []), session]);
    agents.set(session.client.name, servers);
  }
  for (const { agent } of bypasses) if (!agents.has(agent)) agents.set(agent, new Map());
  // The map draws only the first agents, so those that need attention come first.
  const isExposed = (/** @type {[string, unknown]} */ [name]) => bypasses.some((bypass) => bypass.agent === name);
  const sorted = [...agents].sort((a, b) => Number(isExposed(b)) - Number(isExposed(a)));
  return sorted.map(([name, servers]) => {
    const own = bypasses.filter((bypass) => bypass.agent === name);
    return {
      name,
      asks: waiting.some(({ client }) => client === name),
      reachesAll: own.some((bypass) => !bypass.isRemote),
      servers: [...servers].map(([server, all]) => node(server, all, grantedPaths(grants, all), home)).concat(bypassNode(name, own)),
    };
  });
}

/**
 * Returns a node for the servers that an agent starts without IronCurtain.
 * @param {string} agent
 * @param {import("./bypasses.js").Bypass[]} bypasses
 * @returns {ServerNode[]}
 */
function bypassNode(agent, bypasses) {
  const past = bypasses.filter((bypass) => bypass.how === "bypass");
  if (past.length === 0) return [];
  const page = pageOf(agent);
  const kind = past.every((bypass) => bypass.isRemote) ? "sent" : "all";
  return [{ name: list(past.map((bypass) => named(bypass.server))), how: "bypass", count: past.length, paused: false, stopped: false, page, targets: [{ kind, text: "", full: "", access: [], page }] }];
}

/** Returns the page of an agent. @param {string} name */
const pageOf = (name) => `#agents/${encodeURIComponent(name)}`;

/**
 * Returns the files and folders granted to these sessions, in the format of roots. A run's folders are listed only here. A
 * granted file gives no access to the rest of its folder.
 * @param {import("./types.js").Grant[]} grants
 * @param {Session[]} sessions
 */
const grantedPaths = (grants, sessions) =>
  grants
    .filter(({ kind, suspended, client, server, session }) =>
      (kind === "file" || kind === "folder") && suspended === null && sessions.some((one) => one.client.name === client && one.server === server && (session === null || session === one.id)))
    .map(({ id, path, access }) => ({ path, access, grant: id, source: "" }));

/**
 * @param {string} name
 * @param {Session[]} sessions
 * @param {ReturnType<typeof grantedPaths>} files
 * @param {string} home
 * @returns {ServerNode}
 */
function node(name, sessions, files, home) {
  const isRemote = sessions.some((one) => one.remote);
  const how = isRemote ? "remote" : sessions.every((one) => one.sandboxed) ? "sandboxed" : "open";
  return {
    name,
    how,
    count: 1,
    page: `#servers/installed/${encodeURIComponent(name)}`,
    paused: sessions.every((one) => one.paused),
    stopped: sessions.every((one) => one.trouble !== null),
    targets: targets(how, sessions, files, home, pageOf(sessions[0]?.client.name ?? "")),
  };
}

/**
 * @param {ServerNode["how"]} how
 * @param {Session[]} sessions
 * @param {ReturnType<typeof grantedPaths>} files
 * @param {string} home
 * @param {string} page Page of the agent.
 * @returns {Target[]}
 */
function targets(how, sessions, files, home, page) {
  if (how === "open") return [{ kind: "all", text: "", full: "", access: [], page }];
  if (how === "remote") return [{ kind: "sent", text: "", full: "", access: [], page }];
  /** @type {Map<string, Target>} */
  const found = new Map();
  const open = sessions.flatMap((one) => [...one.roots, ...one.always]).filter(({ source, access }) => source !== SCRATCH && access.length > 0);
  const entryPage = `#servers/installed/${encodeURIComponent(sessions[0]?.server ?? "")}`;
  // The widest reach comes first, because only the first targets are drawn.
  for (const { path, access, grant, source } of [...open, ...files].sort((a, b) => Number(b.path === "/") - Number(a.path === "/"))) {
    const known = found.get(path)?.access ?? [];
    const isEntry = source === ENTRY;
    found.set(path, { kind: path === "/" ? "computer" : "folder", text: short(path, home), full: path === "/" ? "" : path, access: [...new Set([...known, ...access])], page: grant !== null ? `#permissions/${grant}` : isEntry ? entryPage : "#rules" });
  }
  for (const host of sessions.flatMap((one) => one.hosts)) found.set(host, { kind: "host", text: host, full: host, access: [], page: "#permissions" });
  const all = [...found.values()];
  if (all.length === 0) return [{ kind: "scratch", text: "", full: "", access: [], page }];
  if (all.length <= MAX_ITEMS) return all;
  return [...all.slice(0, MAX_ITEMS - 1), { kind: "more", text: String(all.length - MAX_ITEMS + 1), full: "", access: [], page }];
}

/**
 * Shortens a path or name in its middle, because its last two names matter most.
 * @param {string} text
 * @param {number} most Number of characters.
 */
export function fitted(text, most) {
  if ([...text].length <= most) return text;
  const last = text.split("/").slice(-2).join("/");
  const end = [...last].length + 2 <= most ? `\u2026/${last}` : `\u2026${[...text].slice(-(most - 1)).join("")}`;
  return end;
}
