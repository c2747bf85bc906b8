// The question page in the app's web engine with a fake app: the messages that it sends, and their order.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findsNothing } from "./axe.js";
import { Browser } from "./browser.js";

const [ENTER, ESCAPE, SPACE, ALT] = ["\ue007", "\ue00c", " ", "\ue00a"];

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 640, height: 620 })));
after(() => browser.close());

/** Returns all messages from the page, and checks that their numbers are in order. */
async function told() {
  const all = await browser.run(`made.calls.filter(([name]) => name === "consent_tell").map(([, values]) => values)`);
  assert.deepEqual(all.map(({ number }) => number), all.map((_, at) => at), "none is missing, none comes twice");
  return all.map(({ did }) => did).filter(({ did }) => did !== "moved");
}

/** Returns the page's last measurement of the current layout. */
const measured = async () => {
  await browser.settled();
  return (await told()).filter(({ did }) => did === "laid-out").at(-1);
};

/** Returns the messages that an action causes, without earlier pending messages. */
const since = async (act) => {
  await browser.settled();
  const before = (await told()).length;
  await act();
  await browser.settled();
  return (await told()).slice(before);
};

for (const theme of ["light", "dark"]) {
  test(`axe finds nothing, ${theme}, and foreign text never becomes an element`, async () => {
    await browser.question({ theme });
    await browser.run(`document.querySelectorAll("details").forEach((one) => { one.open = true; }); return true`);
    assert.equal(await browser.run(`document.querySelectorAll("img, b, script:not([src])").length`), 0);
    assert.match(await browser.run("document.body.innerText"), /requested as <img src=x onerror=alert\(1\)>/);
    await findsNothing(browser);
  });
}

test("press on Allow reports pointer arrival, press and release; other controls report a click", async () => {
  await browser.question();
  await browser.until(`made.calls.some(([, values]) => values?.did?.did === "laid-out")`);
  const told = await since(async () => {
    await browser.point("h1");
    await browser.point("#allow");
    await browser.point("#allow", { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 });
    await browser.point("h1", { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 });
  });
  const expected = [{ did: "down", by: "pointer" }, { did: "up", by: "pointer" }, { did: "off-allow" }, { did: "inside" }];
  assert.equal(told[0].did, "on-allow");
  assert.deepEqual(told.slice(1), expected);
});

test("required reading is measured after layout, scrolling and resizing", async () => {
  await browser.question();
  const first = await measured();
  assert.equal(first.above, 0);
  const [room, end] = await browser.run(`const upper = document.querySelector("#upper"); return [upper.clientHeight, document.querySelector("#reading").getBoundingClientRect().bottom - upper.getBoundingClientRect().top]`);
  assert.deepEqual([first.room, first.height], [room, end]);
  assert.ok(await browser.run(`[...document.querySelectorAll("h1, .lines, dl, section")].every((one) => document.querySelector("#reading").contains(one))`), "everything that approval permits is part of the required reading");
  await browser.run(`document.body.style.height = "420px"; return true`);
  await browser.until(`made.calls.filter(([, values]) => values?.did?.did === "laid-out").length > 1`);
  const less = await measured();
  assert.ok(less.room < first.room && Math.abs(less.height - first.height) < 1, JSON.stringify([first, less]));
  await browser.run(`document.querySelector("#upper").scrollTop = 30; return true`);
  await browser.until(`made.calls.some(([, values]) => values?.did?.above > 0)`);
  const down = await measured();
  assert.deepEqual([down.above, down.room, down.height], [30, less.room, less.height], "what has to be read is as tall as it was");
});

test("Enter and Space on Allow are reported as presses only, Alt+A allows, Escape denies", async () => {
  await browser.question();
  await browser.run(`document.querySelector("#allow").focus(); return true`);
  assert.deepEqual(await since(() => browser.keys(ENTER)), [{ did: "press" }, { did: "keyed", on: false }]);
  assert.equal(await browser.run("document.activeElement.id"), "deny");
  await browser.run(`document.querySelector("#allow").focus(); return true`);
  assert.deepEqual(await since(() => browser.keys(SPACE)), [{ did: "press" }, { did: "keyed", on: false }]);
  assert.deepEqual(await since(() => browser.keys(ESCAPE)), [{ did: "deny", note: "", reach: "call" }]);
  const chord = await since(() => browser.chord(ALT, "a"));
  assert.deepEqual(chord.slice(0, 2), [{ did: "down", by: "key" }, { did: "up", by: "key" }]);
});

test("changed choice and denial with reason are reported by index", async () => {
  await browser.question();
  assert.deepEqual(await since(() => browser.run(`document.querySelectorAll("input[name=choice]")[2].click(); return true`)), [{ did: "choose", offer: 1, lifetime: 0 }]);
  await browser.run(`document.querySelector("#noes").open = true; document.querySelector("#note").value = "not now"; document.querySelector("input[value=session]").click(); return true`);
  const no = await since(() => browser.run(`document.querySelector("#deny").click(); return true`));
  assert.deepEqual(no.at(-1), { did: "deny", note: "not now", reach: "session" });
});
