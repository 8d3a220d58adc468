// Approving with changes: what is typed is quoted while it is typed; the last answer wins, and only what it shows is sent.

import { off, saysAnew } from "./press.js";
import { on } from "./stream.js";

const PAUSE_MS = 150;
const asked = new WeakMap(); // form -> its latest question

const forms = () => document.querySelectorAll("form[data-quote]");
const changed = (form) => [...form.elements].some((field) => field.name.startsWith("argument.") && field.value !== first(field));
const first = (field) => (field.tagName === "SELECT" ? [...field.options].find((option) => option.defaultSelected)?.value : field.defaultValue);
const typed = (form) => String(new URLSearchParams(new FormData(form)));

// Whether what would be sent is what the page shows that it does.
export function isShown(form) {
  return form.dataset.shown === typed(form);
}

function later(form) {
  const question = { body: typed(form) };
  asked.get(form)?.stop?.abort();
  clearTimeout(asked.get(form)?.timer);
  asked.set(form, question);
  ready(form, false);
  if (!changed(form)) return show(form, null, "Change something to see what it would do.", "Approve with these changes");
  question.timer = setTimeout(() => quote(form, question), PAUSE_MS);
}

async function quote(form, question) {
  question.stop = new AbortController();
  let answer;
  try {
    const response = await fetch(form.dataset.quote, {
      method: "POST",
      body: new URLSearchParams(question.body),
      headers: { Accept: "application/json" },
      signal: question.stop.signal,
    });
    answer = await response.json();
    if (response.status === 401) answer = { title: "Signed out", detail: "Sign in again." };
  } catch {
    answer = { title: "Not quoted", detail: "The connection is lost. Type again to ask again." };
  }
  if (asked.get(form) !== question) return;
  if (answer.html === undefined) return show(form, null, `${answer.title}: ${answer.detail}`, "Approve with these changes");
  show(form, answer.html, "", answer.label);
  if (answer.can) ready(form, true, question.body);
}

function show(form, html, words, label) {
  const place = form.querySelector(".quoted");
  if (html === null) {
    const line = document.createElement("p");
    line.className = "soft";
    line.textContent = words;
    place.replaceChildren(line);
  } else {
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    place.replaceChildren(document.adoptNode(template.content));
  }
  form.querySelector("[data-label]").textContent = label;
}

function ready(form, is, body = "") {
  const button = form.querySelector("[data-do=send-edited]");
  form.dataset.shown = is ? body : "";
  off(button, "unquoted", !is);
  if (is) saysAnew(button);
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-quote]");
  if (form && event.target.name.startsWith("argument.")) later(form);
  else if (form?.dataset.shown) form.dataset.shown = typed(form); // a note changes nothing of what the call would do
});

// A card that came anew has lost its answer; what the person typed is still in it.
function again() {
  for (const form of forms()) {
    if (form.dataset.shown === undefined) {
      ready(form, false);
      if (changed(form)) later(form);
    }
  }
}

on("applied", again);
again();
