// The state of protection in words that are true. Pure functions.

import { count } from "./words.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

/**
 * What Home says: the curtain's look, a title and a sentence.
 * @param {Snapshot} snapshot
 * @returns {{ mood: "protecting" | "part" | "asking" | "lockdown" | "open" | "degraded", title: string, text: string }}
 */
export function truth({ status, sessions, waiting, clients, recent, changed_servers }) {
  if (status.protection === "degraded" && status.troubles.length === 0 && changed_servers.length > 0) {
    return { mood: "degraded", title: `${count(changed_servers.length, "server")} changed`, text: "Decide what happens to its permissions. Everything else is protected as before." };
  }
  if (status.protection === "degraded") {
    return { mood: "degraded", title: "Something is wrong", text: "What cannot be judged or put on record is denied until it is put right." };
  }
  if (status.lockdown) {
    return { mood: "lockdown", title: "Locked down", text: "Whatever needs your word is denied at once. What you granted and what the rules allow goes on." };
  }
  if (waiting.length > 0) {
    return { mood: "asking", title: `${count(waiting.length, "question")} for you`, text: "Nothing happens until you answer; no answer is a no." };
  }
  if (sessions.length === 0) {
    return clients.length === 0 && recent.length === 0
      ? { mood: "open", title: "Nothing is protected yet", text: "No agent has started a server through IronCurtain. Connect a client." }
      : { mood: "open", title: "No agent is connected", text: "There is nothing to protect just now. Agents that start their servers through IronCurtain are listed here." };
  }
  const open = sessions.filter((session) => !session.sandboxed && !session.remote).length;
  const who = `${count(sessions.length, "session")} connected.`;
  if (open > 0) {
    return { mood: "part", title: "Protecting in part", text: `${who} ${count(open, "server")} not sandboxed.` };
  }
  return { mood: "protecting", title: "Protecting", text: `${who} Agents reach what you granted and what your rules allow.` };
}

/**
 * The line at the foot of the navigation, with a shape of its own for each state.
 * @param {Snapshot} snapshot
 */
export function stateLine(snapshot) {
  const { mood, title } = truth(snapshot);
  if (mood === "asking") return `? ${count(snapshot.waiting.length, "question")} waiting`;
  return `${{ protecting: "\u2713", part: "\u26a0", lockdown: "\u2715", open: "\u25cb", degraded: "\u26a0" }[mood]} ${title}`;
}
