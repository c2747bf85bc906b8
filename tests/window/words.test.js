import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, listed, standing } from "../../ui/grant_list.js";
import { movedRule, names, ruleOf, rulesIn, ruleThat, withoutRule, withRule } from "../../ui/rule_draft.js";
import { lookalike } from "../../ui/lookalikes.js";
import { lines } from "../../ui/activity_runs.js";
import { hue, initials } from "../../ui/initials.js";
import { connectedLine, protectionState } from "../../ui/protection_state.js";
import { RULES } from "../../ui/texts/rules.js";
import { fitted, reachModel } from "../../ui/reach_model.js";
import { findBypasses } from "../../ui/bypasses.js";
import { ago, count, folderOf, list, pathParts, timeLeft } from "../../ui/words.js";

const MINUTE = 60_000;

test("relative times change at most once a minute", () => {
  assert.equal(ago(0, 59_999), "just now");
  assert.equal(ago(0, 2 * MINUTE), "2 min ago");
  assert.equal(ago(0, 180 * MINUTE), "3 h ago");
  assert.equal(timeLeft(14 * MINUTE, 0), "14 min left");
  assert.equal(timeLeft(5_000, 0), "less than a minute left");
  assert.equal(timeLeft(0, 1), "ending");
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

const snapshot = (/** @type {object} */ more) => ({ status: { protection: "protecting", troubles: [], other_home: null }, sessions: [], waiting: [], questions: { missed: [], denied: [] }, clients: [], recent: [], changed_servers: [], changed_tools: [], ...more });

test("protection is not claimed before an agent is connected", () => {
  const word = (/** @type {object} */ more, /** @type {object[]} */ bypasses = []) => protectionState(snapshot(more), bypasses, []).word;
  assert.equal(word({}), "Not protected");
  assert.equal(word({ clients: [{}] }), "No agent connected");
  const one = { sandboxed: true, server: "a", client: { name: "A" } };
  assert.equal(word({ sessions: [one] }), "Protected");
  assert.equal(word({ sessions: [{ ...one, sandboxed: false, remote: true }] }), "Protected", "a remote server has no sandbox to lack");
  const locked = { status: { protection: "lockdown", lockdown: true, troubles: [], other_home: null }, sessions: [one], waiting: [{}] };
  assert.deepEqual([protectionState(snapshot(locked), [], []).mood, word(locked)], ["lockdown", "Locked down"]);
  assert.equal(word({ status: { protection: "degraded", troubles: ["x"] }, sessions: [one] }), "Something is wrong");
});

test("the title, its sentence and the map show the same ways around IronCurtain", () => {
  const one = { server: "files", client: { name: "A" }, sandboxed: true, remote: false, paused: false, trouble: null, roots: [], always: [], hosts: [] };
  const open = { ...one, sandboxed: false, server: "photos", client: { name: "B" } };
  const entry = (/** @type {string} */ name, /** @type {object} */ more = {}) => ({ name, way: "", past: true, remote: false, ...more });
  const twice = { name: "A", entries: [entry("jira"), entry("jira")] };
  const found = { name: "A", entries: [entry("jira"), entry("maps"), entry("files", { past: false })] };
  const shown = (/** @type {object[]} */ sessions, /** @type {object[]} */ clients) => {
    const all = snapshot({ sessions, grants: [], home: "/h" });
    const bypasses = findBypasses(sessions, clients);
    const { word, title, text, warning } = protectionState(all, bypasses, []);
    const nodes = reachModel(all, bypasses).map((agent) => [agent.name, agent.reachesAll, agent.servers.filter((server) => server.targets.some(({ kind }) => kind === "all")).map((server) => [server.name, server.count])]);
    return [word, title, text || warning, nodes];
  };
  assert.deepEqual(shown([one, open, open], [found]), [
    "Partly protected",
    "Protected, except 3 servers",
    "jira and maps (A) and photos (B) can reach everything you can.",
    [["A", true, [["jira and maps", 2]]], ["B", true, [["photos", 1]]]],
  ]);
  assert.deepEqual(shown([one], []), ["Protected", "Protected", "", [["A", false, []]]], "without a way around");
  assert.deepEqual(shown([], [found]), ["Not protected", "2 servers bypass IronCurtain", "jira and maps (A) can reach everything you can.", [["A", true, [["jira and maps", 2]]]]]);
  assert.equal(shown([one], [twice])[1], "Protected, except 2 servers", "one for all projects and one for a project");
  const remote = { name: "A", entries: [entry("hub", { remote: true })] };
  assert.deepEqual(shown([one], [remote]), ["Partly protected", "Protected, except 1 server", "hub (A) is connected without IronCurtain, and sees what is sent to it.", [["A", false, []]]], "a remote server reaches nothing here");
});

test("protection is not claimed if agents' settings could not be read", () => {
  const one = { sandboxed: true, server: "a", client: { name: "A" } };
  const stateOf = (/** @type {string[] | null} */ unchecked, more = {}) => protectionState(snapshot({ sessions: [one], ...more }), [], unchecked);
  assert.deepEqual([stateOf([]).title, stateOf([]).warning], ["Protected", ""]);
  assert.deepEqual([stateOf(["Zed"]).word, stateOf(["Zed"]).mood, stateOf(["Zed"]).warning], ["Not fully checked", "part", "The settings of Zed could not be read, so servers there may bypass IronCurtain."]);
  assert.deepEqual([stateOf(null).title, stateOf(null).warning], ["Not fully checked", "Agents' settings could not be checked, so servers there may bypass IronCurtain."]);
});

test("a lockdown, a changed server and a problem do not hide the ways around IronCurtain", () => {
  const one = { sandboxed: true, server: "a", client: { name: "A" } };
  const bypasses = [{ agent: "A", server: "jira", how: "bypass", isRemote: false }];
  const reach = "jira (A) can reach everything you can.";
  const states = [{ status: { protection: "lockdown", lockdown: true, troubles: [] } }, { status: { protection: "degraded", troubles: [] }, changed_servers: ["notes"] }, { status: { protection: "degraded", troubles: ["x"] } }];
  for (const more of states) assert.equal(protectionState(snapshot({ sessions: [one], ...more }), bypasses, []).warning, reach, JSON.stringify(more));
});

test("a server's name cannot be read as part of a sentence", () => {
  const bypasses = [{ agent: "Claude Code", server: "x of A. Everything is safe", how: "bypass", isRemote: false }, { agent: "Claude Code", server: "a".repeat(10_000), how: "bypass", isRemote: false }];
  const { warning } = protectionState(snapshot({ sessions: [] }), bypasses, []);
  assert.equal(warning, `\u201cx of A. Everything is safe\u201d and ${"a".repeat(39)}\u2026 (Claude Code) can reach everything you can.`);
});

test("the line below the state counts agents, not sessions, and questions", () => {
  const one = { client: { name: "A" } };
  assert.equal(connectedLine({ sessions: [], waiting: [] }), "");
  assert.equal(connectedLine({ sessions: [one, one], waiting: [{}, {}] }), "1 agent \u00b7 2 asking");
});

test("changed server is named if nothing else is wrong", () => {
  const degraded = { protection: "degraded", troubles: [] };
  const stateOf = (/** @type {object} */ more) => protectionState(snapshot(more), [], []);
  const changed = stateOf({ status: degraded, changed_servers: ["notes"] });
  assert.deepEqual([changed.mood, changed.title], ["degraded", "1 server changed"]);
  assert.equal(stateOf({ status: degraded, changed_servers: ["notes"], changed_tools: ["notes"] }).word, changed.word, "one server");
  assert.equal(stateOf({ status: { ...degraded, troubles: ["x"] }, changed_servers: ["notes"] }).title, "Something is wrong");
});

test("what a server can reach is its folders with access and hosts, everything without a sandbox, or its scratch folder", () => {
  const root = (/** @type {string} */ path, /** @type {string[]} */ access, source = "rule `work`") => ({ path, source, grant: null, access });
  /** @type {object[]} */
  const grants = [];
  const session = { client: { name: "A" }, server: "s", sandboxed: true, remote: false, paused: false, trouble: null, hosts: [], always: [], roots: [root("/h/scratch", ["read"], "the session's own folder")] };
  const reach = (/** @type {object[]} */ ...sessions) => reachModel({ sessions: sessions.map((one) => ({ ...session, ...one })), waiting: [], grants, home: "/h" }, []).flatMap((agent) => agent.servers.map(({ targets }) => targets.map(({ kind, text, access }) => [kind, text, access.join("")])));
  assert.deepEqual(reach({}), [[["scratch", "", ""]]]);
  // A granted file is shown instead of its folder, which is only reported to the server.
  grants.push({ id: "g", kind: "file", client: "A", server: "s", session: null, suspended: null, path: "/h/a/x", access: ["read"] }, { id: "h", kind: "file", client: "B", server: "s", session: null, suspended: null, path: "/h/a/y", access: ["read"] });
  assert.deepEqual(reach({ roots: [root("/h/a", [])] }), [[["folder", "~/a/x", "read"]]]);
  grants.length = 0;
  assert.deepEqual(reach({ always: [root("/h/a", ["read"]), root("/", ["read"], "the server's settings")] }), [[["computer", "/", "read"], ["folder", "~/a", "read"]]], "what the server's entry opens, the widest first");
  // A run's roots have only its working folder.
  grants.push({ id: "g", kind: "folder", client: "A", server: "s", session: "1", suspended: null, path: "/h/b", access: ["read"] });
  assert.deepEqual([reach({ id: "1" }), reach({ id: "2" })], [[[["folder", "~/b", "read"]]], [[["scratch", "", ""]]]]);
  grants.length = 0;
  assert.deepEqual(reach({ sandboxed: false }), [[["all", "", ""]]]);
  assert.deepEqual(reach({ sandboxed: false, remote: true }), [[["sent", "", ""]]]);
  const two = [{ roots: [root("/h/a", ["read"])] }, { roots: [root("/h/a", ["write"])], hosts: ["x.example"] }];
  assert.deepEqual(reach(...two), [[["folder", "~/a", "readwrite"], ["host", "x.example", ""]]]);
  assert.deepEqual(reach({ roots: [1, 2, 3, 4, 5, 6].map((n) => root(`/h/${n}`, ["read"])) })[0].map(([kind, text]) => [kind, text]).slice(2), [["folder", "~/3"], ["more", "3"]]);
  // One session without a sandbox is enough to reach everything.
  assert.deepEqual(reach({}, { sandboxed: false }), [[["all", "", ""]]]);
  assert.deepEqual([fitted("~/a/b", 9), fitted("~/a/very/long/path/x.md", 14), fitted("a-very-long-name", 6)], ["~/a/b", "\u2026/path/x.md", "\u2026-name"]);
});

test("runs of at least three similar calls are one line, known by their oldest call", () => {
  const call = (/** @type {number} */ seq, /** @type {object} */ more = {}) => ({ seq, decision: "allow", client: "A", server: "s", verb: "read", reason: "r", outcome: "Done", tool: "t", paths: [`/h/a/${seq}`], ...more });
  const shown = (/** @type {object[]} */ calls, /** @type {number[]} */ open = []) => lines(calls, new Set(open)).map(({ key, calls }) => [key, calls.length]);
  assert.deepEqual(shown([call(5), call(4)]), [[5, 1], [4, 1]]);
  assert.deepEqual(shown([call(5), call(4), call(3), call(2, { paths: ["/h/b/x"] })]), [[-3, 3], [2, 1]]);
  assert.deepEqual(shown([call(6), call(5), call(4), call(3)]), [[-3, 4]], "a new call extends it");
  assert.deepEqual(shown([call(5), call(4), call(3)], [3]), [[-3, 3], [5, 1], [4, 1], [3, 1]]);
  for (const more of [{ decision: "deny" }, { client: "B" }, { verb: "write" }, { reason: "q" }, { outcome: null }]) {
    assert.equal(shown([call(5), call(4), call(3, more)]).length, 3, JSON.stringify(more));
  }
});

test("agents have initials and a colour that depends on the name alone", () => {
  assert.deepEqual(["Claude Code", "Cursor", "vs-code insiders", "\u{1f916}", ""].map(initials), ["CC", "Cu", "vc", "\u{1f916}", "?"]);
  assert.equal(hue("Claude Code"), hue("Claude Code"));
  assert.ok(new Set(["Claude Code", "Cursor", "Codex", "Zed", "Goose", "VS Code"].map(hue)).size > 3);
});

test("names that look alike are found, but not other spellings of the same name", () => {
  const names = ["Claude Code", "\u0441laude-code", "Cursor", "cursor", "Zed", "Ze\u200bd"];
  assert.deepEqual(names.map((name) => lookalike(name, names)), ["\u0441laude-code", "Claude Code", undefined, undefined, "Ze\u200bd", "Zed"]);
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

test("a rule without calls says so", () => {
  assert.deepEqual([0, 1, 1204].map(RULES.hits), ["not used this week", "1 call", "1,204 calls"]);
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
