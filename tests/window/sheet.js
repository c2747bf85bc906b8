// Draws every component of `ui/parts.js` in all its states, for pictures and accessibility checks.

import { actButton } from "/action_button.js";
import { html, render } from "/html.js";
import { followKeys } from "/keyboard.js";
import { followMenus } from "/menu.js";
import * as parts from "/parts.js";
import { drawWith, redraw } from "/state.js";

const AGENTS = ["Claude Code", "Cursor", "Codex", "Zed", "Goose", "VS Code", "Gemini", "Windsurf", "\u05d0\u05d1\u05d2 agent"];
const MOODS = [["protecting", "Protected", "2 agents"], ["asking", "Protected", "2 agents \u00b7 1 asking"], ["part", "Partly protected", "2 agents"], ["lockdown", "Locked down", "1 agent"], ["open", "No agent connected", "0 agents"], ["degraded", "Something is wrong", "1 agent"]];
let isOpen = true;
let isOn = true;
let rules = ["deny-secrets", "work", "ask-before-writing"];

const never = () => new Promise(() => {});
const nothingDone = () => {};
const act = (key, more) => actButton({ key, ready: "Remove", going: "Removing\u2026", done: "Removed", failed: "Not removed", act: never, ...more });

const moved = (from, to) => {
  const [one] = rules.splice(from, 1);
  rules.splice(to, 0, one);
  redraw();
};

const sheet = () => html`
  <div class="page">
    ${parts.heading("Components", parts.button("main", "Main", nothingDone, { kind: "main" }))}
    ${parts.section("State")}
    <div class="examples">${MOODS.map((one) => parts.statePill(...one))}</div>
    ${parts.section("Agents")}
    <div class="examples">${AGENTS.map((name) => html`<span>${parts.agentIcon(name)} ${parts.foreign(name)}</span>`)}</div>
    <div class="examples">${parts.agentIcon("Claude Code", "small")}${parts.agentIcon("Claude Code")}${parts.agentIcon("Claude Code", "big")}</div>
    ${parts.section("Words")}
    <div class="examples">${["note", "good", "asks", "bad"].map((tone) => html`${parts.chip(tone, tone)}${parts.chip(tone, tone, "folder")}${parts.dot(tone, tone)}`)}</div>
    <div class="examples">${["allow", "deny", "escalate", null].map((one) => parts.badge(one, "started"))}${parts.accessChip(["read"])}${parts.accessChip(["read", "write"])}${parts.accessChip(["read", "write", "delete"])}</div>
    ${parts.warning("A warning")}${parts.problem("An error")}
    ${parts.section("Buttons")}
    <div class="examples">
      ${["", "main", "stop", "plain", "bare"].map((kind) => html`${parts.button(`b:${kind}`, kind || "usual", nothingDone, { kind })}${parts.button(`off:${kind}`, `${kind || "usual"}, off`, nothingDone, { kind, off: true })}`)}
      ${parts.button("busy", "Busy\u2026", nothingDone, { busy: true })}${parts.iconButton("icon", "funnel", "Filter", nothingDone)}
      ${parts.filterChip("chip:on", "Denied", isOn, () => { isOn = !isOn; redraw(); })}${parts.filterChip("chip:off", "Asked", false, nothingDone)}
      ${parts.switchBox("switch:on", "A switch", isOn, (to) => { isOn = to; redraw(); })}${parts.switchBox("switch:off", "Another switch", false, nothingDone)}${parts.switchBox("switch:locked", "A locked switch", true, nothingDone, true)}
      ${parts.tick("tick", "A check box", isOn, nothingDone)}${parts.select("select", "a", [["a", "First"], ["b", "Second"]], nothingDone, "A choice")}
      ${act("act", {})}
    </div>
    ${parts.section("Tabs")}
    ${parts.tabs("Servers", [["servers", "Installed", 3], ["servers/add", "Add"], ["servers/secrets", "Secrets"]], "servers")}
    ${parts.section("Rows")}
    ${parts.group(html`
      ${parts.row(html`${parts.title("Claude Code", parts.dot("good", "protected"))}${parts.facts("2 sessions", "148 calls")}`, html`${parts.button("pause", "Pause", nothingDone)}${parts.menu("menu:row", "More about Claude Code", () => html`${act("end", { ready: "End session" })}${act("sure", { ready: "Remove\u2026", says: "It is removed, and its permissions end.", kind: "stop" })}`)}`, parts.agentIcon("Claude Code"))}
      ${parts.row(html`${parts.title(parts.path("/home/ada/Documents/tax"), parts.accessChip(["read", "write"]))}${parts.facts("this session", "used 1 min ago")}`, parts.button("revoke", "Revoke", nothingDone), parts.icon("folder"))}
      ${parts.opening("open:git", "Details of git", isOpen, () => { isOpen = !isOpen; redraw(); }, { what: html`${parts.title("git", parts.chip("not sandboxed", "bad", "shield-off"))}${parts.facts("restarted 2 times")}`, before: parts.icon("box"), act: parts.button("protect", "Protect", nothingDone) }, () => html`<dl><dt>Starts</dt><dd>uvx mcp-server-git</dd></dl>`)}`)}
    ${parts.section("Rules")}
    ${parts.group(rules.map((name, at) => parts.row(html`${parts.title(name)}${parts.hitBar([3, 1204, 0][["deny-secrets", "work", "ask-before-writing"].indexOf(name)], 1204, `${[3, 1204, 0][["deny-secrets", "work", "ask-before-writing"].indexOf(name)]} calls this week`)}`, parts.badge("allow"), parts.dragHandle(`move:${name}`, `Move ${name}`, at, (to) => moved(at, to)))))}
    ${parts.section("Card")}
    <section class="card" aria-label="A card"><p>Free content.</p>${parts.field("Name", html`<input type="text" data-key="field">`, "A hint.")}</section>
    ${parts.section("Nothing here")}
    ${parts.group(parts.row(parts.emptyState("bot", "No agent has connected yet.", html`<a class="button main" href="#x">Connect an agent</a>`)))}
    ${parts.section("Details beside a list")}
    ${parts.sidePanel("Details", "Read tax/2026/summary.md", html`<dl><dt>Rule</dt><dd>work</dd><dt>Arguments</dt><dd><pre tabindex="0">{ "path": "a.md" }</pre></dd></dl>`, nothingDone)}
    <div class="tall examples">${parts.menu("menu:open", "More", () => html`${act("one", { ready: "Restart its server" })}${act("two", { ready: "Remove\u2026", says: "It is removed.", kind: "stop" })}`)}</div>
  </div>`;

drawWith(() => render(sheet(), document.querySelector("#page")));
followKeys();
followMenus();
redraw();
