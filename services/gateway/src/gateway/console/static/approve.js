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
  } else if (button.dataset.do === "edit") {
    disarm();
    setTimeout(() => select(section.querySelector(".editing .input")));
  }
});

// While someone types a note the confirmation stays.
document.addEventListener("input", (event) => {
  if (event.target.closest(".armed")) clearTimeout(disarming);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  const form = event.target.closest("form[data-send]");
  const typed = event.target.matches("textarea, .editing .input");
  if (form && typed && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("[data-do=send-edited]"));
  } else if (form && event.target.matches(".editing .input")) {
    // Enter in a field does not decide: it goes to the button that says what would be done.
    event.preventDefault();
    form.querySelector("[data-do=send-edited]").focus();
  }
});

function select(field) {
  field?.focus();
  field?.select?.();
}

function back(section) {
  disarm();
  for (const open of section.querySelectorAll(".declining, .editing")) open.open = false;
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
key("e", "Approve with changes", () => {
  const editing = held()?.querySelector(".editing");
  if (!editing) return false;
  disarm();
  editing.open = true;
  select(editing.querySelector(".input"));
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
