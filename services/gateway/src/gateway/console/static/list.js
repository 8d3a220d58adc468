// Keeps the list of tickets complete and in order: it is loaded anew when a ticket comes, goes or changes its group, but
// does not move while a row has the focus or the pointer moves over it. Until then a button says that it has changed.

import { on } from "./stream.js";

const EVERY_MS = 2000;
const RESTS_MS = 2000; // a pointer that has not moved for so long is not about to click
const fresh = document.getElementById("fresh");
const list = () => document.getElementById("list");
let known = list()?.dataset.tickets; // the revision that was heard of last
let stale = false; // whether the page does not show what the server has
let timer;
let loaded = 0;
let pointed = 0;

function inUse() {
  return list().contains(document.activeElement) || (list().matches(":hover") && Date.now() - pointed < RESTS_MS);
}

function changed() {
  stale = true;
  timer ??= setTimeout(load, Math.max(0, loaded + EVERY_MS - Date.now()));
}

async function load() {
  timer = undefined;
  if (!stale || !list()) return;
  if (!inUse()) {
    loaded = Date.now();
    stale = false;
    if (await replaced()) fresh.hidden = true;
    else stale = true;
  } else {
    fresh.querySelector("span").textContent = "List has changed";
    fresh.hidden = false;
  }
  if (stale) timer ??= setTimeout(load, EVERY_MS);
}

// Whether the list of now is on the page.
async function replaced() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok || answer.redirected) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("list");
    if (!page || !list() || inUse()) return false;
    list().replaceWith(document.adoptNode(page));
    return true;
  } catch {
    return false;
  }
}

const groupOf = (html) => html.match(/data-group="(\w+)"/)?.[1];

function isElsewhere({ id }) {
  const row = document.getElementById(id);
  return row?.matches(".row") && row.dataset.group !== row.parentElement.dataset.group;
}

if (list()) {
  on("state", ({ tickets }) => {
    if (String(tickets) === known) return;
    known = String(tickets);
    changed();
  });
  on("unplaced", (to, html) => { if (to === "tickets" && list()?.dataset.groups.split(" ").includes(groupOf(html))) changed(); });
  on("applied", (changes) => { if (list() && changes.some(isElsewhere)) changed(); });
  document.addEventListener("pointermove", () => { pointed = Date.now(); }, { passive: true });
}
