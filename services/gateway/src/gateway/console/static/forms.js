// Sends the page's forms without leaving it. What is refused is said where it was asked for.

import { disarm } from "./approve.js";
import { isShown } from "./quote.js";
import { isCurrent } from "./stream.js";

const ANSWERS_WITHIN_MS = 15_000;

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-send]");
  if (!form) return;
  event.preventDefault();
  if (form.dataset.decides !== undefined && !isCurrent()) return;
  if (form.dataset.quote && !isShown(form)) return;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  form.dataset.busy = "1";
  event.submitter?.setAttribute("aria-busy", "true");
  form.dataset.key ??= crypto.randomUUID?.() ?? String(Math.random());
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      body,
      headers: { Accept: "application/json", "Idempotency-Key": form.dataset.key },
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    });
    if (answer.ok) return done(form, await answer.json());
    if (answer.status === 401) return refused(form, { title: "Signed out", detail: "Nothing was done. Sign in again." });
    const problem = await answer.json();
    if (answer.status < 500) delete form.dataset.key;
    refused(form, problem);
  } catch {
    refused(form, { title: "No answer", detail: "It may have arrived or not. Send it again: it is done once, however often it arrives." });
  } finally {
    delete form.dataset.busy;
    event.submitter?.removeAttribute("aria-busy");
  }
});

function done(form, answer) {
  delete form.dataset.key;
  if (form.dataset.send === "decide") {
    const card = form.closest("[data-card]");
    disarm();
    card?.focus({ preventScroll: true });
    document.getElementById("said").textContent = "Your decision is recorded.";
  }
  if (form.dataset.send === "message") form.reset();
  if (answer.go) location.assign(answer.go);
}

function refused(form, { title, detail }) {
  const here = form.closest("[data-held]")?.querySelector(".refused") ?? document.getElementById("refused");
  here.querySelector("b").textContent = title;
  here.querySelector("span").textContent = detail;
  here.hidden = false;
  disarm();
}
