// Servers that IronCurtain does not contain: those without a sandbox, and those that an agent starts without IronCurtain.
// The state, the map and the lists all show this one list. Pure functions.

import { bypassing } from "./agent_list.js";

/** @typedef {{ agent: string, server: string, how: "open" | "bypass", isRemote: boolean }} Bypass
 *   `bypass`: the agent starts it without IronCurtain. A remote server sees the data sent to it, and cannot reach
 *   anything on this computer. */

/**
 * Finds the bypasses: each entry of an agent's settings that IronCurtain does not start, and each server without a sandbox once.
 * @param {import("./types.js").Session[]} sessions
 * @param {import("./types.js").FoundClient[]} found
 * @returns {Bypass[]}
 */
export function findBypasses(sessions, found) {
  const open = sessions.filter((one) => !one.sandboxed && !one.remote).map((one) => /** @type {Bypass} */ ({ agent: one.client.name, server: one.server, how: "open", isRemote: false }));
  return [
    ...found.flatMap((one) => bypassing(one).map((entry) => /** @type {Bypass} */ ({ agent: one.name, server: entry.name, how: "bypass", isRemote: entry.remote }))),
    ...new Map(open.map((bypass) => [JSON.stringify(bypass), bypass])).values(),
  ];
}

/**
 * Groups bypasses by agent.
 * @param {Bypass[]} bypasses
 * @returns {{ agent: string, servers: string[] }[]}
 */
export const byAgent = (bypasses) =>
  [...new Set(bypasses.map((bypass) => bypass.agent))].map((agent) => ({ agent, servers: bypasses.filter((bypass) => bypass.agent === agent).map((bypass) => bypass.server) }));
