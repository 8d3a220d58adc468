// Deciding: arm, then confirm; decline with a reason. What is sent is the page's own form.

import { closeIn, openFrom } from "./close.js";
import { key } from "./keys.js";
import { broughtUp, did, isOff, saysAnew } from "./press.js";
import { isCurrent, on } from "./stream.js";

const ARMED_MS = 10_000;
let disarming;

const here = () => document.activeElement?.closest("[data-held], [data-card]");

// The button or summary of that name in the call that has the focus, else in the first one; null where none is to be had.
function offered(what) {
  const found = (here() ?? document).querySelector(`[data-do=${what}]`);
  return isCurrent() && found?.checkVisibility() ? found : null;
}

function arm(button, event, byLetter) {
  disarm();
  const section = button.closest("[data-held]");
  openFrom(section);
  section.classList.add("armed");
  did(event, byLetter);
  broughtUp(section);
  button.focus({ preventScroll: !byLetter });
  disarming = setTimeout(disarm, ARMED_MS);
}

export function disarm() {
  clearTimeout(disarming);
  document.querySelector(".armed")?.classList.remove("armed");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  const section = button?.closest("[data-held]");
  if (!section) return;
  if (button.dataset.do === "approve" && !section.classList.contains("armed")) {
    event.preventDefault();
    if (isCurrent() && !isOff(button)) arm(button, event, false);
  } else if (button.dataset.do === "back") {
    closeIn(section);
  } else if (button.dataset.do === "decline") {
    disarm();
    setTimeout(() => section.querySelector(".declining textarea")?.focus());
  } else if (button.dataset.do === "edit") {
    disarm();
    setTimeout(() => select(section.querySelector(".editing .input")));
  }
});

// What is decided on has changed under the finger: the button stands for something else than it did.
on("replaced", (old, fresh) => {
  const stood = new Set([...old.querySelectorAll("form[data-decides]")].map(standsFor));
  for (const form of fresh.querySelectorAll("form[data-decides]")) {
    if (!stood.has(standsFor(form))) saysAnew(form.querySelector("button:not([type=button])"));
  }
});

const standsFor = (form) => [...form.querySelectorAll("[type=hidden]")].map(({ value }) => value).join(" ");

// While someone types a note the confirmation stays.
document.addEventListener("input", (event) => {
  if (event.target.closest(".armed")) clearTimeout(disarming);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || event.repeat) return;
  const form = event.target.closest("form[data-send]");
  const typed = event.target.matches("textarea, .editing .input");
  if (form && typed && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("[data-do=send-edited]"));
  } else if (form && event.target.matches(".editing .input")) {
    // Enter in a field does not decide: it goes to the button that says what would be done.
    event.preventDefault();
    did(event);
    broughtUp(form);
    form.querySelector("[data-do=send-edited]").focus();
  }
});

function select(field) {
  field?.focus();
  field?.select?.();
}

function open(what, field) {
  const details = offered(what).parentElement;
  closeIn(details.closest("[data-held]"));
  openFrom(details);
  details.open = true;
  select(details.querySelector(field));
}

key("a", "approve, then Enter", (event) => arm(offered("approve"), event, true), () => offered("approve"));
key("d", "decline", () => open("decline", "textarea"), () => offered("decline"));
key("e", "approve with changes", () => open("edit", ".input"), () => offered("edit"));
key("o", "open the run", () => run().click(), () => run());

function run() {
  return (here() ?? document.querySelector("[data-card]"))?.querySelector("[data-do=open], header a, .t a");
}
