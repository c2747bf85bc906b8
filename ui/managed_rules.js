// The organization's rules on the rules page. The user cannot change them.

import { html, nothing } from "./html.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { effect } from "./rule_row.js";
import { ORGANIZATION } from "./texts/organization.js";
import { RULES } from "./texts/rules.js";

/** @type {Record<string, import("./parts.js").Tone>} */
const TONES = { allow: "good", escalate: "asks", deny: "bad" };

/**
 * Returns the section, or nothing if there are no rules.
 * @param {import("./types.js").Rules["managed"]} managed
 */
export function managedRules(managed) {
  if (managed === null || managed.rules.length === 0) return nothing;
  const most = Math.max(...managed.rules.map((one) => one.decided));
  return html`
    ${parts.section(parts.foreign(ORGANIZATION.rules.section(managed.organization)))}
    <p class="lead-in quiet">${ORGANIZATION.rules.text}</p>
    ${parts.group(managed.rules.map((rule) => row(rule, most)))}
    ${parts.section(ORGANIZATION.rules.own)}`;
}

/**
 * @param {import("./types.js").Rule} rule
 * @param {number} most
 */
const row = (rule, most) =>
  openable(`source:${rule.name}`, RULES.sourceOf(rule.name), {
    what: html`
      ${parts.title(html`<code>${rule.name}</code>`, parts.chip(effect(rule.then), TONES[rule.then]))}
      <div class="says-what">${parts.foreign(rule.description || rule.reason)}</div>
      ${parts.hitBar(rule.decided, most, RULES.hits(rule.decided))}`,
    before: parts.icon("lock"),
  }, () => html`<pre tabindex="0" aria-label=${RULES.sourceOf(rule.name)}>${rule.text}</pre>`);
