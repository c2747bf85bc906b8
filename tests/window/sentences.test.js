import assert from "node:assert/strict";
import { test } from "node:test";
import { giftWords, putBackWords, removalWords } from "../../ui/sentences.js";

test("new permission summary names client, resource, server and lifetime", () => {
  const gift = { client: "/c", server: "fetch", kind: "folder", what: "", access: ["read"], lifetime: "always" };
  assert.equal(giftWords(gift, "Zed"), "What you pick, Zed may read through fetch, until you take it back. A folder is granted with all that is below it.");
  assert.equal(giftWords({ ...gift, access: [] }, "Zed"), "Choose what it may do.");
  assert.equal(giftWords({ ...gift, kind: "tool", what: "now", lifetime: "hour" }, "Zed"), "Zed may use now of fetch without asking, whatever the call says, for 1 hour.");
  assert.match(giftWords({ ...gift, kind: "tool" }, "Zed"), /^Every tool of fetch is told in each call/);
  assert.equal(giftWords({ ...gift, kind: "host", what: "a.example" }, "Zed"), "Zed may reach a.example through fetch, and send it what it knows, until you take it back.");
  assert.equal(giftWords({ ...gift, kind: "host" }, "Zed"), "Write the name of the host.");
});

test("restore warning says when the file runs and what happens to an existing file", () => {
  const file = { shown: "~/a/.envrc", when: "when you enter this folder", occupied: false };
  assert.equal(putBackWords(file), "~/a/.envrc is put back where it was, and runs when you enter this folder, with all that you can do yourself.");
  assert.match(putBackWords({ ...file, occupied: true }), /What stands there now goes to quarantine in its place\.$/);
});

test("server removal summary names everything removed, kept or still referring to it", () => {
  const plan = { name: "git", entry: "{}", clients: [], profiles: [], data: null };
  assert.deepEqual(removalWords(plan, 0), ["Its entry goes. It is kept as it is, and \u201cPut back\u201d brings it back."]);
  const all = removalWords({ ...plan, clients: ["Zed (its entry git)", "Cursor (its entry g)"], profiles: ["work"], data: "~/d" }, 2);
  assert.deepEqual(all.slice(1), [
    "It ends now for 2 sessions; calls under way fail.",
    "Still set to start it: Zed (its entry git) and Cursor (its entry g). They will be told that there is no such server; disconnect it under Clients.",
    "Still named by the profile work.",
    "What it kept stays in ~/d.",
  ]);
});
