// Lists agents with their sessions, files to review and settings. Pure functions.

import { lookalike } from "./lookalikes.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").SessionRecord} SessionRecord */
/** @typedef {import("./types.js").FoundClient} FoundClient */
/** @typedef {{ name: string, sessions: Session[], ended: SessionRecord[], known: import("./types.js").KnownClient | null,
 *   found: FoundClient | null, programs: string[], looksLike: string | undefined }} Agent `programs`: verified programs that use this name.
 *   `looksLike`: another agent with a similar name. */

/**
 * Returns the agents that have connected or are set up. Agents that can reach everything come first, then connected agents.
 * @param {Pick<import("./types.js").Snapshot, "sessions" | "records" | "clients">} snapshot
 * @param {FoundClient[]} found
 * @returns {Agent[]}
 */
export function agentList({ sessions, records, clients }, found) {
  const here = found.filter((one) => one.state !== "missing");
  const ended = records.filter((one) => one.ended_ms !== null);
  const names = new Set([
    ...sessions.map((one) => one.client.name),
    ...ended.map((one) => one.client),
    ...clients.map((one) => one.name),
    ...here.filter((one) => one.state !== "not-connected" || bypassing(one).length > 0).map((one) => one.name),
  ]);
  /** @param {string} name */
  const isExposed = (name) => sessions.some((one) => one.client.name === name && !one.sandboxed && !one.remote) || here.some((one) => one.name === name && bypassing(one).some((entry) => !entry.remote));
  const sorted = [...names].sort((a, b) => Number(isExposed(b)) - Number(isExposed(a)));
  return sorted.map((name) => ({
    name,
    looksLike: lookalike(name, [...names]),
    sessions: sessions.filter((one) => one.client.name === name),
    ended: ended.filter((one) => one.client === name),
    known: clients.find((one) => one.name === name) ?? null,
    found: here.find((one) => one.name === name) ?? null,
    programs: [...new Set([...sessions.filter((one) => one.client.name === name).flatMap((one) => one.client.exe ?? []), ...clients.filter((one) => one.name === name).map((one) => one.key)])],
  }));
}

/**
 * Returns the installed agents that are not listed.
 * @param {Agent[]} agents
 * @param {FoundClient[]} found
 */
export const otherAgents = (agents, found) => found.filter((one) => one.state !== "missing" && !agents.some((agent) => agent.found === one));

/** @param {FoundClient | null} found */
export const bypassing = (found) => found?.entries.filter((entry) => entry.past) ?? [];
