// Deciding: arm, then confirm; decline with a reason. What is sent is the page's own form.

import { key } from "./keys.js";

const ARMED_MS = 10_000;
let disarming;

const card = () => document.activeElement?.closest("[data-held], [data-card]") ?? document.querySelector("[data-held]");
const held = () => {
  const here = card();
  return here?.matches("[data-held]") ? here : here?.querySelector("[data-held]");
};

export function arm(section) {
  disarm();
  section.classList.add("armed");
  section.querySelector("[data-do=approve]").focus({ preventScroll: true });
  disarming = setTimeout(disarm, ARMED_MS);
}

export function disarm() {
  clearTimeout(disarming);
  const section = document.querySelector(".armed");
  section?.classList.remove("armed");
  return Boolean(section);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  const section = button?.closest("[data-held]");
  if (!section) return;
  if (button.dataset.do === "approve" && !section.classList.contains("armed")) {
    event.preventDefault();
    if (!document.body.classList.contains("waits")) arm(section);
  } else if (button.dataset.do === "back") {
    back(section);
  } else if (button.dataset.do === "decline") {
    disarm();
    setTimeout(() => section.querySelector(".declining textarea")?.focus());
  }
});

// While someone types a note the confirmation stays.
document.addEventListener("input", (event) => {
  if (event.target.closest(".armed")) clearTimeout(disarming);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  const form = event.target.closest("form[data-send]");
  if (form && event.target.tagName === "TEXTAREA" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

function back(section) {
  disarm();
  const declining = section.querySelector(".declining");
  if (declining) declining.open = false;
  (section.closest("[data-card]") ?? section.querySelector("[data-do=approve]"))?.focus({ preventScroll: true });
}

key("a", "Approve, then Enter", () => {
  const section = held();
  if (!section?.querySelector("[data-do=approve]") || document.body.classList.contains("waits")) return false;
  arm(section);
});
key("d", "Decline", () => {
  const declining = held()?.querySelector(".declining");
  if (!declining) return false;
  disarm();
  declining.open = true;
  declining.querySelector("textarea").focus();
});
key("o", "Open the run", () => {
  const link = card()?.querySelector("[data-do=open], header a, .t a");
  if (!link) return false;
  link.click();
});
key("Escape", "Back", () => {
  const section = document.activeElement?.closest("[data-held]") ?? document.querySelector(".armed");
  if (!section) return false;
  back(section);
});
