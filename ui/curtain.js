// The curtain of the tray icon, drawn for the window: closed, with a question, or cracked.

const SVG = "http://www.w3.org/2000/svg";
const CLOSED =
  "M3 5.5H21V20C18.5 21.3 17 19.4 15 20.3 13.8 20.9 12.8 20.5 12 20 11.2 20.5 10.2 20.9 9 20.3 7 19.4 5.5 21.3 3 20Z";
const KEYHOLE = "M12 8.6a2.5 2.5 0 0 0-1.3 4.6L9.9 17H14.1L13.3 13.2A2.5 2.5 0 0 0 12 8.6Z";
const LEFT = "M3 5.5H10.5L8 10 10.8 13 8.2 17 9.6 20.5C7.4 19.4 5.5 21.3 3 20Z";
const RIGHT = "M21 5.500H13.200L11 9.700 13.800 12.800 11.200 16.800 12.600 20.400C15 19.400 18.500 21.300 21 20Z";
const RAIL = "M3.1 2.6H20.9a1.5 1.5 0 0 1 0 3H3.1a1.5 1.5 0 0 1 0-3Z";

export function curtain(mood) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const add = (d, fill) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    path.setAttribute("fill", fill);
    svg.append(path);
  };
  add(RAIL, "var(--ink)");
  if (mood === "degraded") {
    add(LEFT, "var(--bad)");
    add(RIGHT, "var(--bad)");
  } else {
    add(CLOSED, "var(--accent)");
    add(KEYHOLE, mood === "asking" ? "var(--asks)" : "var(--ground)");
  }
  return svg;
}
