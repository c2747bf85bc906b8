import assert from "node:assert/strict";
import { test } from "node:test";
import { grantSentence, putBackWords, removalWords } from "../../ui/sentences.js";

test("new permission summary names client, resource, server and lifetime", () => {
  const gift = { client: "/c", server: "fetch", kind: "folder", what: "", access: ["read"], lifetime: "always" };
  assert.equal(grantSentence(gift, "Zed"), "What you pick, Zed may read through fetch, until you revoke it. A folder includes everything in it.");
  assert.equal(grantSentence({ ...gift, access: [] }, "Zed"), "Choose what it may do.");
  assert.equal(grantSentence({ ...gift, kind: "tool", what: "now", lifetime: "hour" }, "Zed"), "Zed may use now of fetch without asking, whatever the call says, for 1 hour.");
  assert.match(grantSentence({ ...gift, kind: "tool" }, "Zed"), /^The effect of every tool of fetch depends on its arguments/);
  assert.equal(grantSentence({ ...gift, kind: "host", what: "a.example" }, "Zed"), "Zed may connect to a.example through fetch, and send it what it knows, until you revoke it.");
  assert.equal(grantSentence({ ...gift, kind: "host" }, "Zed"), "Enter the name of the host.");
});

test("restore warning says when the file runs and what happens to an existing file", () => {
  const file = { shown: "~/a/.envrc", when: "when you enter this folder", occupied: false };
  assert.equal(putBackWords(file), "~/a/.envrc is put back where it was, and runs when you enter this folder, with all your rights.");
  assert.match(putBackWords({ ...file, occupied: true }), /The file in its place goes to quarantine\.$/);
});

test("server removal summary names everything removed, kept or still referring to it", () => {
  const plan = { name: "git", entry: "{}", clients: [], profiles: [], data: null };
  assert.deepEqual(removalWords(plan, 0), ["Its entry is removed. \u201cPut back\u201d restores it."]);
  const all = removalWords({ ...plan, clients: ["Zed (its entry git)", "Cursor (its entry g)"], profiles: ["work"], data: "~/d" }, 2);
  assert.deepEqual(all.slice(1), [
    "It stops now for 2 sessions; calls in flight fail.",
    "Still set to start it: Zed (its entry git) and Cursor (its entry g). They will get an error; disconnect it under Clients.",
    "Still named by the profile work.",
    "Its data stays in ~/d.",
  ]);
});
