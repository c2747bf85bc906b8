// The rendering library. Templates are our own; every value in them is set as text, never as markup.

export { html, nothing, render, svg } from "./vendor/lit-html/lit-html.js";
export { live } from "./vendor/lit-html/directives/live.js";
export { repeat } from "./vendor/lit-html/directives/repeat.js";
