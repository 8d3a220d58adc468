// What every page does: follows its streams, says how current it is, and listens for keys.

import "./approve.js";
import "./forms.js";
import "./list.js";
import { disarm } from "./approve.js";
import { key, sheet } from "./keys.js";
import { follow, followAll, leaveAll, on, retry } from "./stream.js";
import { serverSays } from "./time.js";

const body = document.body;
const live = document.getElementById("live");
const lost = document.getElementById("lost");
const tail = document.querySelector("[data-do=follow]");
const title = document.title.replace(/^\(\d+\) /, "");
let since = Date.now();
let banner;
let missed = 0;

on("status", (status) => {
  live.className = `live ${status === "on" ? "on" : "lost"}`;
  live.textContent = { on: "Live", lost: "Reconnecting", out: "Signed out" }[status];
  // Until it is current again, nothing is decided on this page.
  body.classList.toggle("waits", status !== "on");
  for (const button of document.querySelectorAll("[name=decision], .declining .btn.danger")) button.setAttribute("aria-disabled", status !== "on");
  clearTimeout(banner);
  if (status === "on") {
    since = Date.now();
    lost.hidden = true;
    return;
  }
  since = Date.now();
  disarm();
  if (status === "out") out();
  else banner = setTimeout(show, 3000);
});

function show() {
  lost.querySelector("b").textContent = "Reconnecting";
  lost.querySelector("span").textContent = `lost ${Math.round((Date.now() - since) / 1000)} s ago. Deciding is off until this page is current.`;
  lost.hidden = false;
  banner = setTimeout(show, 1000);
}

// Whoever sits here next shall find nobody's data and nothing to press: only the way in, and what the person typed.
function out() {
  const typed = [...document.querySelectorAll("main textarea, main input:not([type=hidden], [type=checkbox])")]
    .filter((field) => field.value.trim() && field.value !== field.defaultValue)
    .map((field) => field.value);
  leaveAll();
  document.title = "Signed out · Turngate";
  document.querySelector(".rail .foot .who")?.remove();
  for (const count of document.querySelectorAll("[data-count]")) count.textContent = "";
  for (const open of document.querySelectorAll("dialog[open]")) open.close();
  lost.querySelector("b").textContent = "Signed out";
  lost.querySelector("span").textContent = "What was on this page is gone from it. Nothing more is sent.";
  lost.querySelector("button").hidden = true;
  lost.querySelector("a").hidden = false;
  lost.querySelector("a").href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  lost.hidden = false;
  const heading = Object.assign(document.createElement("h1"), { className: "vh", textContent: "Signed out" });
  document.getElementById("main").replaceChildren(heading, lost, ...(typed.length ? [kept(typed)] : []));
}

function kept(typed) {
  const field = document.createElement("div");
  field.className = "field kept";
  const label = document.createElement("label");
  label.htmlFor = "kept";
  label.textContent = "What you had typed, not sent";
  const words = document.createElement("textarea");
  Object.assign(words, { id: "kept", className: "input", readOnly: true, rows: 4, value: typed.join("\n\n") });
  field.append(label, words);
  return field;
}

on("state", ({ counts }) => {
  for (const [name, count] of Object.entries(counts)) {
    for (const element of document.querySelectorAll(`[data-count=${name}]`)) element.textContent = count || "";
  }
  document.title = counts.waiting ? `(${counts.waiting}) ${title}` : title;
});

// Follows the end of a run while the end is in view.
const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 160;
let following = atEnd();
addEventListener("scroll", () => {
  following = atEnd();
  if (following && tail) { missed = 0; tail.hidden = true; }
}, { passive: true });
on("applied", (changes) => {
  disarmIfGone();
  if (body.dataset.page !== "tickets" || !tail) return;
  if (following) return toEnd();
  missed += changes.filter(({ to }) => to).length;
  if (!missed) return;
  tail.querySelector("span").textContent = missed === 1 ? "1 new step" : `${missed} new steps`;
  tail.hidden = false;
});

function disarmIfGone() {
  if (!document.querySelector(".armed")) disarm();
}

function toEnd() {
  following = true;
  missed = 0;
  if (tail) tail.hidden = true;
  window.scrollTo({ top: document.documentElement.scrollHeight });
}

document.addEventListener("click", (event) => {
  const what = event.target.closest("[data-do]")?.dataset.do;
  if (what === "retry") retry();
  if (what === "follow") toEnd();
});

function step(by) {
  const all = [...document.querySelectorAll("[data-card], .q .row a")];
  const here = all.findIndex((element) => element === document.activeElement || element.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, here + by))];
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function press(name) {
  const element = document.querySelector(`[data-key=${name}]`);
  if (!element) return false;
  element.focus();
  if (element.tagName !== "SUMMARY") return;
  element.parentElement.open = true;
  element.parentElement.querySelector("form button").focus();
}

key("j", "Next", () => step(1));
key("k", "Previous", () => step(-1));
key("t", "Take over, then Enter", () => press("t"));
key("s", "Stop the run, then Enter", () => press("s"));
key("End", "Follow live", () => (tail ? toEnd() : false));
key("g t", "Tickets", () => location.assign("/tickets"));
key("g a", "Approvals", () => location.assign("/approvals"));
if (document.querySelector('.nav a[href="/audit"]')) key("g u", "Audit", () => location.assign("/audit"));
key("?", "All keys", sheet);

// A page that leaves gives its streams back; one that comes back as it was is loaded anew.
addEventListener("pagehide", leaveAll);
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

fetch("/console/session", { cache: "no-store" }).then((answer) => serverSays(answer.headers.get("date"))).catch(() => {});
follow(body.dataset.inbox, Number(body.dataset.after));
followAll();
