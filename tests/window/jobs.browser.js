// Every job in the guide's page about the window takes at most three clicks on its page, besides entering text and choices.
// The jobs are done with the keyboard alone, where pressing a control counts as a click. Other tests use the pointer.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { QUESTION, key, steps } from "./steps.js";

const MOST_CLICKS = 3;
const [ENTER, SPACE, TAB, UP, DOWN, CONTROL] = ["\ue007", " ", "\ue004", "\ue013", "\ue015", "\ue009"];
const GUIDE = readFileSync(new URL("../../docs/guide/window.md", import.meta.url), "utf8");

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { made, reach } = steps(() => browser);

const entered = (field, text) => ({ field, text });
const chosen = (field, to) => ({ field, to });
const ticked = (field) => ({ field, isTick: true });
const asked = (wanted) => `= made.calls.findLast(([name]) => name === "activity")[1].wanted.${wanted}`;

/**
 * The jobs of each page: the guide's words, the steps, and the expected result. The result is the command that is sent, a
 * selector of an element that is shown, or a condition. A string step is the key or selector of a control to click.
 */
const JOBS = {
  Home: [
    ["see what each agent can reach", [], `.map .target`],
    ["answer", ["show"], "show_question"],
    ["dismiss", ["forget:q8"], "forget_question"],
    ["or undo what needs you", ["forget:q9"], "forget_question"],
    ["see the last 24 hours", [], `.strip .allow`],
  ],
  Activity: [
    ["find", [entered("find", "a.md")], asked(`text === "a.md"`)],
    ["filter", ["verdict:deny"], asked(`decision === "deny"`)],
    ["read every entry", [`#page .line[data-line="1479"]`], "call_details"],
    ["make a rule from one", [`#page .line[data-line="1479"]`, "rule:1479"], key("draft-then")],
    ["check", ["record", "check"], "check_log"],
    ["export the record", ["record", "export:csv"], "export_activity"],
  ],
  Agents: [
    ["connect", ["connect:cursor", "write:cursor"], "write_client"],
    ["disconnect agents", ["client:claude-code", "disconnect:claude-code", "write:claude-code"], "write_client"],
    ["protect servers that bypass IronCurtain", ["move:claude-code", "write:claude-code"], "write_client"],
    ["pause", ["pause:s1"], "pause_session"],
    ["end", ["more:s2", "end:s2"], "end_session"],
    ["restart sessions", ["more:s2", "restart:s2", "restart:s2:yes"], "restart_server"],
    ["undo a denial", ["undeny:q5"], "forget_question"],
    ["keep", ["review:s1", "keep:s1:/home/ada/src/app/Makefile"], "decide_file"],
    ["or quarantine files that run later", ["review:s1", "quarantine:s1:/home/ada/src/app/Makefile"], "decide_file"],
  ],
  Permissions: [
    ["revoke one", ["take-back:g1"], "revoke_grants"],
    ["several", ["take-back-of:Claude Code", "take-back-of:Claude Code:yes"], "revoke_grants"],
    ["or all", ["more-grants", "take-back-everything", "take-back-everything:yes"], "revoke_grants"],
    ["change", ["grant:g2", chosen("time:g2", "hour"), "terms:g2"], "change_grant"],
    ["restore", ["take-back:g2", "undo:g2", "undo:g2:yes"], "restore_grant"],
    ["add permissions", ["gift", "pick-folder"], "grant_beforehand"],
  ],
  Servers: [
    ["add", ["tab:servers/add", "add:time"], "add_server"],
    ["install", ["more:photos", "install:photos", "install:photos:yes"], "install_server"],
    ["update", ["more:fetch", "update:fetch", "take:fetch"], "check_for_update"],
    ["review", ["look:photos", "look:photos:yes", "keep:photos"], "review_tools"],
    ["remove servers", ["more:photos", "remove:photos", "remove-now:photos"], "remove_server"],
    ["their hosts", ["server:fetch", entered("open-host:fetch", "a.example"), "open-host:fetch:plan", "open-now:fetch"], "write_opening"],
    ["folders", ["server:fetch", "open-write:fetch:plan", "open-now:fetch"], "write_opening"],
    ["limits", ["server:fetch", entered("limit:fetch:memory", "512"), "limits-plan:fetch", "limits-write:fetch"], "write_limits"],
    ["secrets", ["tab:servers/secrets", entered("secret-name", "a"), entered("secret-value", "b"), "set-secret"], "set_secret"],
    ["profiles", ["tab:servers/profiles", "profile-new", entered("profile-name", "play"), ticked("profile-server:fetch"), "profile-save"], "change_profile"],
  ],
  Rules: [
    ["move", ["more:work", "later:work"], key("save-rules")],
    ["change, ", ["then:work", "then:work:deny"], key("save-rules")],
    ["add", ["add-rule"], key("draft-then")],
    ["remove rules", ["more:work", "remove:work"], key("save-rules")],
    ["try a call", ["try", "try-it"], "explain"],
    ["see what a change would have decided", ["more:work", "later:work", "dry-run"], "try_rules"],
  ],
  Settings: [
    ["questions", [chosen("deadline_seconds", "60")], "change_settings"],
    ["notifications", [chosen("notifications", "off")], "change_settings"],
    ["limits", [chosen("max_sessions", "10")], "change_settings"],
    ["the record", [chosen("keep_days", "30")], "change_settings"],
    ["its export", ["export", entered("export:url", "https://otel.example.com"), "export:sample"], "export_sample"],
    ["autostart", ["autostart"], "change_settings"],
    ["appearance", [chosen("appearance", "dark")], "change_settings"],
  ],
};

test("the jobs are those of the guide", () => {
  const rows = [...GUIDE.matchAll(/^\| ([A-Z][a-z]+) \| ([a-z].*) \|$/gm)].map(([, page, jobs]) => [page, jobs]);
  assert.deepEqual(rows.map(([page]) => page), Object.keys(JOBS));
  for (const [page, jobs] of rows) {
    const rest = JOBS[page].reduce((left, [words]) => {
      assert.ok(left.includes(words), `${page}: \`${words}\` is not in \`${left}\``);
      return left.replace(words, "");
    }, jobs);
    assert.match(rest, /^(?:[;, ]|and)*$/, page);
  }
});

const keys = {
  async click(step) {
    if (step.startsWith("#")) {
      await reach("log");
      return browser.keys(DOWN, ENTER);
    }
    await reach(step);
    await browser.keys((await browser.run(`document.activeElement.tagName === "A"`)) ? ENTER : SPACE);
  },
  async tick(field) {
    await reach(field);
    await browser.keys(SPACE);
  },
  async choose(field, to) {
    await reach(field);
    const isChosen = () => browser.run(`document.activeElement.value === ${JSON.stringify(to)}`);
    if (await browser.run(`document.activeElement.matches("select")`)) {
      const all = await browser.run(`document.activeElement.options.length`);
      for (const direction of [DOWN, UP]) for (let n = 0; n < all && !(await isChosen()); n += 1) await browser.keys(direction);
    } else {
      await browser.chord(CONTROL, "a");
      await browser.keys(...to);
    }
    assert.ok(await isChosen(), `${field} is ${to}`);
    await browser.keys(TAB);
  },
  async enter(field, text) {
    await reach(field);
    await browser.keys(...text);
  },
};

const does = (step) => {
  if (typeof step === "string") return keys.click(step);
  if ("isTick" in step) return keys.tick(step.field);
  return "to" in step ? keys.choose(step.field, step.to) : keys.enter(step.field, step.text);
};

for (const [page, jobs] of Object.entries(JOBS))
  for (const [words, todo, then] of jobs)
    test(`${page}: ${words.replace(/, $/, "")}`, async () => {
      const clicks = todo.filter((step) => typeof step === "string");
      assert.ok(clicks.length <= MOST_CLICKS, `${clicks.length} clicks`);
      await browser.go(page.toLowerCase());
      if (page === "Home") await made(QUESTION);
      for (const step of todo) {
        const control = typeof step === "string" ? (step.startsWith("#") ? step : key(step)) : key(step.field);
        await browser.until(`document.querySelector(${JSON.stringify(control)}) !== null`);
        await does(step);
        await browser.settled();
      }
      if (then.startsWith("= ")) await browser.until(then.slice(2));
      else if (/^[a-z_]+$/.test(then)) await browser.until(`made.calls.some(([name]) => name === "${then}")`);
      else await browser.until(`document.querySelector(${JSON.stringify(then)})?.checkVisibility() === true`);
    });
