// Servers that IronCurtain does not contain: those without a sandbox, and those that an agent starts without IronCurtain.
// The state, the map and the lists all show this one list. Pure functions.

import { bypassing } from "./agent_list.js";

/** @typedef {{ agent: string, server: string, how: "open" | "bypass", isRemote: boolean }} WayAround
 *   `bypass`: the agent starts it without IronCurtain. A remote server sees the data sent to it, and cannot reach
 *   anything on this computer. */

/**
 * Returns the ways around IronCurtain: each entry of an agent's settings, and each server without a sandbox once.
 * @param {import("./types.js").Session[]} sessions
 * @param {import("./types.js").FoundClient[]} found
 * @returns {WayAround[]}
 */
export function waysAround(sessions, found) {
  const open = sessions.filter((one) => !one.sandboxed && !one.remote).map((one) => /** @type {WayAround} */ ({ agent: one.client.name, server: one.server, how: "open", isRemote: false }));
  return [
    ...found.flatMap((one) => bypassing(one).map((entry) => /** @type {WayAround} */ ({ agent: one.name, server: entry.name, how: "bypass", isRemote: entry.remote }))),
    ...new Map(open.map((way) => [JSON.stringify(way), way])).values(),
  ];
}

/**
 * Groups ways by agent.
 * @param {WayAround[]} ways
 * @returns {{ agent: string, servers: string[] }[]}
 */
export const byAgent = (ways) =>
  [...new Set(ways.map((way) => way.agent))].map((agent) => ({ agent, servers: ways.filter((way) => way.agent === agent).map((way) => way.server) }));
