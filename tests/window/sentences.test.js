import assert from "node:assert/strict";
import { test } from "node:test";
import { AGENTS } from "../../ui/texts/agents.js";
import { grantSentence } from "../../ui/texts/permissions.js";
import { changeWords, keepWords, removalWords, startAfreshWords, wouldGet } from "../../ui/texts/servers.js";

test("new permission summary names client, resource, server and lifetime", () => {
  const gift = { client: "/c", server: "fetch", kind: "folder", what: "", access: ["read"], lifetime: "always" };
  assert.equal(grantSentence(gift, "Zed"), "Zed may read what you pick, through fetch, until you revoke it. A folder includes everything in it.");
  assert.equal(grantSentence({ ...gift, access: [] }, "Zed"), "Choose what it may do.");
  assert.equal(grantSentence({ ...gift, kind: "tool", what: "now", lifetime: "hour" }, "Zed"), "Zed may use now of fetch without asking, with any arguments, for 1 hour.");
  assert.match(grantSentence({ ...gift, kind: "tool" }, "Zed"), /^The effect of every tool of fetch depends on its arguments/);
  assert.equal(grantSentence({ ...gift, kind: "host", what: "a.example" }, "Zed"), "Zed may connect to a.example through fetch, and send any data to it, until you revoke it.");
  assert.equal(grantSentence({ ...gift, kind: "host" }, "Zed"), "Enter the name of the host.");
});

test("restore warning says when the file runs and what happens to an existing file", () => {
  const file = { shown: "~/a/.envrc", when: "when you enter this folder", occupied: false };
  assert.equal(AGENTS.putBackSays(file), "~/a/.envrc is put back where it was, and runs when you enter this folder, with all your rights.");
  assert.match(AGENTS.putBackSays({ ...file, occupied: true }), /The file in its place goes to quarantine\.$/);
});

test("server removal summary names everything removed, kept or still referring to it", () => {
  const plan = { name: "git", entry: "{}", clients: [], profiles: [], data: null };
  assert.deepEqual(removalWords(plan, 0), ["Its entry is removed. \u201cPut back\u201d restores it."]);
  const all = removalWords({ ...plan, clients: ["Zed (its entry git)", "Cursor (its entry g)"], profiles: ["work"], data: "~/d" }, 2);
  assert.deepEqual(all.slice(1), [
    "It stops now for 2 sessions; calls in flight fail.",
    "Still set to start it: Zed (its entry git) and Cursor (its entry g). They will get an error; disconnect it under Agents.",
    "Still named by the profile work.",
    "Its data stays in ~/d.",
  ]);
});

test("the decision about a changed server says what each way means, the worst first", () => {
  const changed = { before: "/u/notes-1", now: "/u/notes-2", change: "its program was `/u/notes-1` and is `/u/notes-2`", grants: ["read, change everything in ~/plans", "send data to a.example:443"], data: "~/data", annotated: 2, secrets: ["key"], found: "" };
  assert.deepEqual(wouldGet(changed), ["read, change everything in ~/plans", "send data to a.example:443", "use your secret key", "read and change the data in ~/data", "have 2 tools count as reviewed"]);
  assert.equal(changeWords(changed), "", "the two names say it");
  assert.equal(changeWords({ ...changed, now: "/u/notes-1", change: "`/u/notes-1` was changed" }), "`/u/notes-1` was changed.");
  assert.equal(changeWords({ ...changed, change: "its arguments changed" }), "Its arguments changed.");
  assert.equal(keepWords(changed), "/u/notes-2 gets everything listed above.");
  assert.equal(startAfreshWords(changed, "notes"), "2 permissions are revoked. Its data folder is moved aside, not deleted. It loses access to its secrets. Its tools have to be reviewed again. notes can then start as a new server.");
  assert.equal(startAfreshWords({ ...changed, grants: [], data: null, secrets: [] }, "notes"), "Its tools have to be reviewed again. notes can then start as a new server.");
});
