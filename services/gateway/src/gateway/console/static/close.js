// Escape closes what is open, the nearest first, and the focus goes back to where it was.

import { key } from "./keys.js";

const from = new WeakMap(); // what was opened -> what had the focus then
const OPEN = ".armed, details[open]";

// Say this before something opens: where the focus is now.
export function openFrom(element) {
  from.set(element, document.activeElement);
}

function close(element) {
  const back = from.get(element);
  element.classList.remove("armed");
  if (element.tagName === "DETAILS") element.open = false;
  const target = back?.isConnected && back !== document.body ? back : element.querySelector("summary, [data-do=approve]");
  target?.focus({ preventScroll: true });
}

// Whatever is open in a call that waits for a decision.
export function closeIn(section) {
  for (const element of [section, ...section.querySelectorAll(OPEN)].filter((one) => one.matches(OPEN))) close(element);
}

// The one around the focus; else one that lies over the page or is about to decide; else the last that was opened.
function nearest() {
  const around = document.activeElement?.closest(OPEN);
  if (around) return around;
  const open = [...document.querySelectorAll(OPEN)];
  return open.find((one) => one.matches(".stop, .armed, .editing, .declining")) ?? open.at(-1);
}

key("Escape", "close, or back", () => close(nearest()), nearest);
