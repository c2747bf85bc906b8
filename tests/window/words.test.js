import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, listed, standing } from "../../ui/grant_list.js";
import { movedRule, names, ruleOf, rulesIn, ruleThat, withoutRule, withRule } from "../../ui/rule_draft.js";
import { stateLine, protectionState } from "../../ui/protection_state.js";
import { ago, count, folderOf, left, list, pathParts } from "../../ui/words.js";

const MINUTE = 60_000;

test("relative times change at most once a minute", () => {
  assert.equal(ago(0, 59_999), "just now");
  assert.equal(ago(0, 2 * MINUTE), "2 min ago");
  assert.equal(ago(0, 180 * MINUTE), "3 h ago");
  assert.equal(left(14 * MINUTE, 0), "14 min left");
  assert.equal(left(5_000, 0), "less than a minute left");
  assert.equal(left(0, 1), "ending");
});

test("numbers and lists are spelled out", () => {
  assert.deepEqual([count(1, "session"), count(2, "session"), count(1482, "entry"), count(41, "day")], ["1 session", "2 sessions", "1,482 entries", "41 days"]);
  assert.equal(list(["read", "write", "delete"]), "read, write and delete");
});

test("path emphasizes its last two names and abbreviates home to ~", () => {
  assert.deepEqual(pathParts("/home/ada/Documents/tax/2026/a.md", "/home/ada"), ["~/Documents/tax/", "2026/a.md"]);
  assert.deepEqual(pathParts("/home/ada", "/home/ada"), ["", "~"]);
  assert.deepEqual(pathParts("/home/adam/x/y", "/home/ada"), ["/home/adam/", "x/y"]);
  assert.equal(folderOf("/home/ada/notes.txt", "file"), "/home/ada");
  assert.equal(folderOf("/home/ada", "folder"), "/home/ada");
});

const snapshot = (/** @type {object} */ more) => ({ status: { protection: "protecting", troubles: [], other_home: null }, sessions: [], waiting: [], questions: { missed: [], denied: [] }, clients: [], recent: [], changed_servers: [], ...more });

test("protection is not claimed before a client has connected", () => {
  assert.equal(protectionState(snapshot({})).title, "Nothing is protected yet");
  assert.equal(stateLine(snapshot({})), "\u25cb Nothing is protected yet");
  assert.equal(protectionState(snapshot({ clients: [{}] })).title, "No agent is connected");
  assert.equal(protectionState(snapshot({ sessions: [{ sandboxed: true }] })).title, "Protecting");
  const part = protectionState(snapshot({ sessions: [{ sandboxed: true }, { sandboxed: false }] }));
  assert.deepEqual([part.title, part.text], ["Partly protected", "2 sessions connected. 1 server not sandboxed."]);
  const locked = { status: { protection: "lockdown", lockdown: true, troubles: [], other_home: null } };
  assert.deepEqual([protectionState(snapshot(locked)).mood, stateLine(snapshot({ ...locked, waiting: [{}] }))], ["lockdown", "\u2715 Locked down"]);
  assert.equal(protectionState(snapshot({ status: { protection: "degraded", troubles: ["x"] }, sessions: [{}] })).mood, "degraded");
});

test("changed server is named if nothing else is wrong", () => {
  const degraded = { protection: "degraded", troubles: [] };
  const changed = protectionState(snapshot({ status: degraded, changed_servers: ["notes"] }));
  assert.deepEqual([changed.mood, changed.title], ["degraded", "1 server changed"]);
  assert.equal(protectionState(snapshot({ status: { ...degraded, troubles: ["x"] }, changed_servers: ["notes"] })).title, "Something is wrong");
});

test("a grant of a changed server does not apply, and leads to the decision", () => {
  assert.deepEqual(standing({ suspended: null, server_changed: false }), { applies: true, words: "", decide: false });
  assert.deepEqual(standing({ suspended: "the server changed", server_changed: true }), { applies: false, words: "Suspended: the server changed", decide: true });
  assert.deepEqual(standing({ suspended: "it is a link now", server_changed: false }), { applies: false, words: "Does not apply now: it is a link now", decide: false });
});

const grant = (/** @type {string} */ id, /** @type {string} */ path, /** @type {object} */ more = {}) => ({ id, path, kind: "folder", client: "A", server: "s", lifetime: "always", access: ["read"], created_ms: 0, last_used_ms: null, expires_ms: null, ...more });

test("grants are searched, sorted and grouped by resource, not by its parent", () => {
  const all = [grant("1", "/h/b"), grant("2", "/h/a/f.txt", { kind: "file" }), grant("3", "/h/a/g.txt", { kind: "file", client: "B" }), grant("4", "x.example:443", { kind: "host" })];
  const view = { text: "", by: "folder", sort: "name" };
  const shown = grouped(listed(all, view), "folder").map(({ under, grants }) => [under, grants.map(({ id }) => id)]);
  assert.deepEqual(shown, [["/h/a", ["2", "3"]], ["", ["1"]], ["Hosts", ["4"]]]);
  assert.deepEqual(listed(all, { ...view, text: "F.TXT read" }).map(({ grant }) => grant.id), ["2"]);
  assert.deepEqual(grouped(listed(all, { ...view, by: "client" }), "client").map(({ under }) => under), ["A", "B"]);
  const timed = [grant("1", "/a"), grant("2", "/a", { expires_ms: 5 }), grant("3", "/a", { expires_ms: 3 })];
  assert.deepEqual(listed(timed, { ...view, sort: "ends" }).map(({ grant }) => grant.id), ["3", "2", "1"]);
});

test("rule from a call matches only it, comes first, and keeps existing rules", () => {
  const text = JSON.stringify({ schemaVersion: 1, rules: [{ name: "deny-filesystem-write-file" }] });
  const draft = { server: "filesystem", tool: "write_file", path: "/h/a/x.txt", then: "deny", reach: "path" };
  const rule = ruleOf(draft, names(text));
  assert.equal(rule.name, "deny-filesystem-write-file-2");
  assert.deepEqual(rule.if, { server: ["filesystem"], tool: ["write_file"], paths: { roles: ["read-path", "write-path", "delete-path"], within: "/h/a/x.txt" } });
  assert.equal(ruleOf({ ...draft, reach: "folder" }, []).if.paths.within, "/h/a");
  assert.equal(ruleOf({ ...draft, reach: "tool" }, []).if.paths, undefined);
  const after = JSON.parse(withRule(text, rule));
  assert.deepEqual([after.schemaVersion, names(JSON.stringify(after))], [1, ["deny-filesystem-write-file-2", "deny-filesystem-write-file"]]);
  assert.equal(withRule("{ no json", rule), null);
});

test("moving, removing or changing a rule leaves the others unchanged", () => {
  const text = JSON.stringify({ schemaVersion: 1, rules: [{ name: "a", then: "deny" }, { name: "b", description: "Allows work.", then: "allow", if: {} }, { name: "c" }] });
  assert.deepEqual(names(movedRule(text, "c", -1) ?? ""), ["a", "c", "b"]);
  assert.deepEqual(names(movedRule(text, "a", -1) ?? ""), ["a", "b", "c"]);
  assert.deepEqual(names(withoutRule(text, "b") ?? ""), ["a", "c"]);
  const denied = ruleThat(text, "b", "deny") ?? "";
  assert.deepEqual(JSON.parse(denied).rules[1], { name: "b", description: "Denies what it covers (was: Allows work.)", then: "deny", if: {} });
  assert.equal(JSON.parse(ruleThat(denied, "b", "escalate") ?? "").rules[1].description, "Asks about what it covers (was: Allows work.)");
  assert.deepEqual(rulesIn(text)?.map(({ name, then }) => [name, then]), [["a", "deny"], ["b", "allow"], ["c", "undefined"]]);
  assert.deepEqual([movedRule("[", "a", 1), rulesIn("[")], [null, null]);
});
