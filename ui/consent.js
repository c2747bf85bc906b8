// The consent page for systems without a native dialog. It draws what the app sends and reports its events in order. Only the
// app decides whether the user has given approval.

import * as app from "./backend.js";
import { html, nothing, render } from "./html.js";
import { DENIALS, QUESTION } from "./texts/question.js";

/** @typedef {import("./types.js").QuestionPage} QuestionPage */
/** @typedef {import("./types.js").QuestionChanges} QuestionChanges */

/** @param {import("./types.js").Span[]} spans */
const words = (spans) => spans.map(({ text, tone }) => html`<span class=${tone}>${text}</span>`);

/** @param {import("./types.js").QuestionLine} line */
const row = ({ words: said, note, notes }) => html`<li>${words(said)}${note ? html`<span class="quiet note">${note}</span>` : nothing}${notes.map(({ text, tone }) => html`<div class=${tone}>${text}</div>`)}</li>`;

/** @param {import("./types.js").QuestionText | null} block */
const block = (block) => (block ? html`<section><h2>${block.title}</h2><pre>${block.text}</pre></section>` : nothing);

/** @param {QuestionPage} page */
const drawn = (page) => html`
  <header>${[page.host, page.notice, page.band].map((band) => (band ? html`<p class="band">${band}</p>` : nothing))}</header>
  <main id="upper" tabindex="-1">
    <div id="reading">
    <h1>${words(page.headline)}</h1>
    <ul class="lines">${page.lines.map(row)}</ul>
    ${page.also.map((sentence) => html`<p class="also">${sentence}</p>`)}
    <dl>${page.facts.map(({ label, lines }) => html`<dt>${label}</dt><dd>${lines.map((line) => html`<div>${words(line)}</div>`)}</dd>`)}</dl>
    <ul class="lines">${page.with.map(row)}</ul>
    ${block(page.preview)}${block(page.rest)}
    </div>
    <details><summary>${QUESTION.details}</summary><pre>${page.details}</pre></details>
  </main>
  <form id="decision" aria-label=${QUESTION.answer}>
    ${page.choices.map((choice, offer) => html`
      <fieldset>
        <legend>${choice.label}</legend>
        ${(page.times[offer] ?? []).map((time, lifetime) => html`
          <label><input type="radio" name="choice" ?checked=${offer === 0 && lifetime === 0} @change=${() => report({ did: "choose", offer, lifetime })}> ${time}</label>`)}
      </fieldset>`)}
    <p id="outcome" role="status"></p>
    <details id="noes">
      <summary>${QUESTION.denials}</summary>
      <label>${QUESTION.note} <input id="note" autocomplete="off" maxlength="500"></label>
      ${DENIALS.map(([reach, words]) => html`<label><input type="radio" name="reach" value=${reach} ?checked=${reach === "call"}> ${words(page.denial)}</label>`)}
    </details>
  </form>
  <footer>
    <p id="hint" role="status"></p>
    <div class=${page.mirrored ? "buttons mirrored" : "buttons"}>
      <p id="clock"></p><p id="more"></p>
      <button id="deny" type="button" accesskey="d" @click=${deny}>${QUESTION.deny}</button>
      <button id="allow" type="button" aria-describedby="hint outcome">
        <svg viewBox="0 0 16 16" aria-hidden="true"><circle class="rail" cx="8" cy="8" r="6.5"/><circle id="ring" cx="8" cy="8" r="6.5" pathLength="1" stroke-dasharray="0 1"/></svg>
        <span id="words"></span>
      </button>
    </div>
  </footer>`;

/** @param {string} id */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} id @param {string} text */
function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

let next = 0;
/** Number of ignored presses of Allow that have been shown to the user. */
let ignored = 0;
/** @type {Promise<unknown>} */
let sent = Promise.resolve();
/** @type {number | undefined} */
let again;

/** Reports an event to the app after all earlier events. @param {import("./types.js").QuestionAct} did */
function report(did) {
  const number = next;
  next += 1;
  sent = sent.then(() => app.consentTell(number, did)).then(show, over);
}

/** @param {QuestionChanges} now */
function show(now) {
  say("hint", now.hint);
  say("clock", now.clock);
  say("more", now.more ? QUESTION.more(now.more) : "");
  say("outcome", QUESTION.outcome(now.outcome));
  say("words", now.allow);
  at("ring").setAttribute("stroke-dasharray", `${now.filled} 1`);
  at("allow").classList.toggle("armed", now.armed);
  if (now.ignored > ignored) flash();
  ignored = now.ignored;
  at("clock").setAttribute("role", now.soon ? "status" : "none");
  clearTimeout(again);
  again = setTimeout(() => app.consentChanging().then(show, over), Math.max(now.againMs, 50));
}

/** Shows that a press was ignored. */
function flash() {
  for (const id of ["hint", "allow"]) {
    const one = at(id);
    one.classList.remove("flash");
    // Reading a size in between restarts the animation.
    void one.offsetWidth;
    one.classList.add("flash");
  }
}

/** Handles a settled question; the app closes the window. */
function over() {
  clearTimeout(again);
}

function deny() {
  const open = /** @type {HTMLDetailsElement} */ (at("noes")).open;
  const note = /** @type {HTMLInputElement} */ (at("note")).value;
  const reach = /** @type {HTMLInputElement | null} */ (document.querySelector("input[name=reach]:checked"))?.value ?? "call";
  report({ did: "deny", note: open ? note : "", reach: /** @type {import("./types.js").Reach} */ (open ? reach : "call") });
}

/** @param {KeyboardEvent} event */
const isAllow = (event) => event.altKey && event.code === "KeyA";

/** @param {PointerEvent} event */
const means = (event) => (event.pointerType === "touch" ? "touch" : "pointer");

function listen() {
  const allow = at("allow");
  let byKey = false;
  /** True while a press that began on Allow is held. */
  let pressed = false;
  /** @param {Event} event */
  const onAllow = (event) => event.target instanceof Node && allow.contains(event.target);
  window.addEventListener("keydown", (event) => {
    byKey = event.key === "Tab";
    if (isAllow(event)) {
      event.preventDefault();
      report({ did: "down", by: "key" });
    } else if (event.key === "Escape") {
      report({ did: "deny", note: "", reach: "call" });
    } else if (!["Alt", "Shift", "Control", "Meta", "CapsLock"].includes(event.key)) {
      report({ did: "press" });
      // Enter and Space must not allow.
      if (onAllow(event) && ["Enter", " "].includes(event.key)) {
        event.preventDefault();
        at("deny").focus();
      }
    }
  }, true);
  window.addEventListener("keyup", (event) => {
    if (event.key === "Alt" || event.code === "KeyA") report({ did: "up", by: "key" });
  }, true);
  window.addEventListener("pointerdown", (event) => {
    byKey = false;
    pressed = onAllow(event);
    if (event.button !== 0) report({ did: "press" });
    else report(onAllow(event) ? { did: "down", by: means(event) } : { did: "inside" });
  }, true);
  window.addEventListener("pointerup", (event) => {
    if (onAllow(event) && event.button === 0) report({ did: "up", by: means(event) });
    else if (pressed) report({ did: "press" });
    pressed = false;
  }, true);
  window.addEventListener("pointercancel", () => report({ did: "press" }), true);
  window.addEventListener("contextmenu", (event) => event.preventDefault());
  let moved = 0;
  window.addEventListener("pointermove", (event) => {
    if (event.timeStamp - moved > 1000) {
      moved = event.timeStamp;
      report({ did: "moved" });
    }
  });
  let [x, y] = [NaN, NaN];
  /** @param {PointerEvent} event */
  const point = (event) => {
    // Touch cannot hover over Allow, and small movements are not reported.
    if (means(event) === "touch" || Math.max(Math.abs(event.screenX - x), Math.abs(event.screenY - y)) < 3) return;
    [x, y] = [event.screenX, event.screenY];
    report({ did: "on-allow", x: Math.round(x), y: Math.round(y) });
  };
  allow.addEventListener("pointerenter", point);
  allow.addEventListener("pointermove", point);
  allow.addEventListener("pointerleave", (event) => {
    [x, y] = [NaN, NaN];
    if (means(event) !== "touch") report({ did: "off-allow" });
  });
  // A press must not move the focus.
  allow.addEventListener("mousedown", (event) => event.preventDefault());
  allow.addEventListener("focus", () => report({ did: "keyed", on: byKey }));
  allow.addEventListener("blur", () => report({ did: "keyed", on: false }));
  const [upper, reading] = [at("upper"), at("reading")];
  // The page only measures; the app decides what the user has read.
  const measure = () => {
    const height = reading.getBoundingClientRect().bottom - upper.getBoundingClientRect().top + upper.scrollTop;
    report({ did: "laid-out", above: upper.scrollTop, room: upper.clientHeight, height });
  };
  upper.addEventListener("scroll", measure);
  const sizes = new ResizeObserver(measure);
  sizes.observe(upper);
  sizes.observe(reading);
  at("noes").addEventListener("toggle", () => report({ did: "changed" }));
  at("decision").addEventListener("submit", (event) => event.preventDefault());
}

const page = await app.consentPage();
render(drawn(page), document.body);
document.title = page.headline.map(({ text }) => text).join("");
listen();
at("deny").focus();
show(await app.consentChanging());
