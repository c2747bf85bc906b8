// Makes elements. Text is only ever set as text: no value becomes markup.

/**
 * An element: `el("button", { class: "main", onclick }, "Take back")`.
 * Properties that start with `on` are listeners, all others attributes; `false` and `null` leave one out.
 */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replaces what is in `place`, and gives the focus and the text cursor back to the control that had them. */
export function replace(place, children) {
  const active = document.activeElement;
  const key = active?.dataset?.key;
  const cursor = active?.selectionStart;
  place.replaceChildren(...children);
  const control = key && place.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!control) return;
  control.focus({ preventScroll: true });
  if (typeof cursor === "number") control.setSelectionRange(cursor, cursor);
}

/** Tells screen readers what just happened. */
export function say(text) {
  document.getElementById("said").textContent = text;
}
