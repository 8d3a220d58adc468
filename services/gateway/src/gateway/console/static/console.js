// What every page does: follows its streams, says how current it is, and listens for keys.

import "./press.js";
import "./forms.js";
import "./list.js";
import { disarm } from "./approve.js";
import { openFrom } from "./close.js";
import { bar, key, sheet } from "./keys.js";
import { off } from "./press.js";
import { follow, followAll, isCurrent, isFollowing, leaveAll, on, retry } from "./stream.js";
import { serverSays } from "./time.js";

const body = document.body;
const live = document.getElementById("live");
const lost = document.getElementById("lost");
const tail = document.querySelector("[data-do=follow]");
const title = document.title.replace(/^\(\d+\) /, "");
const BANNER_AFTER_MS = 3000;
const DECIDES = "form[data-decides] button:not([type=button])";
let heard = Date.now();
let banner;
let missed = 0;

on("status", (status, heardAt) => {
  live.className = `live ${status === "on" ? "on" : "lost"}`;
  live.textContent = { on: "Live", lost: "Reconnecting", out: "Signed out" }[status];
  heard = heardAt;
  mayDecide();
  clearTimeout(banner);
  lost.hidden = true;
  if (status === "on") return;
  disarm();
  if (status === "out") out();
  else banner = setTimeout(show, BANNER_AFTER_MS - (Date.now() - heard));
});

// Until the page is current again, nothing is decided on it.
function mayDecide() {
  for (const button of document.querySelectorAll(DECIDES)) off(button, "stale", !isCurrent());
  bar();
}

function show() {
  lost.querySelector("b").textContent = "Reconnecting";
  lost.querySelector("span").textContent = `last heard of the gateway ${Math.round((Date.now() - heard) / 1000)} s ago. Deciding is off until this page is current.`;
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
  document.getElementById("main").replaceChildren(...[document.getElementById("unreal")].filter(Boolean), heading, lost, ...(typed.length ? [kept(typed)] : []));
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
  mayDecide();
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
  if (what === "keys") sheet();
});

const steps = () => [...document.querySelectorAll("[data-card], .q .row a")];

function step(event, by) {
  const all = steps();
  const here = all.findIndex((element) => element === document.activeElement || element.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, here + by))];
  // At the end, and in a text that scrolls by itself, the arrows scroll as they always do.
  if (!next || next === document.activeElement || event.target.closest("pre")) return false;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function press(name) {
  const element = document.querySelector(`[data-key=${name}]`);
  if (element.tagName !== "SUMMARY") return element.focus();
  openFrom(element.parentElement);
  element.parentElement.open = true;
  element.parentElement.querySelector("form button").focus();
}

const has = (selector) => () => document.querySelector(selector);
const focused = (selector) => () => document.activeElement?.matches(selector);

key("j", "next", (event) => step(event, 1), () => steps().length, ["ArrowDown"]);
key("k", "previous", (event) => step(event, -1), () => steps().length, ["ArrowUp"]);
key("Enter", "open, or do what has the focus", () => false, focused(".q .row a, .armed [data-do=approve], [data-key=t], .stop[open] button"));
key("t", "take over, then Enter", () => press("t"), has("[data-key=t]"));
key("s", "stop the run, then Enter", () => press("s"), has("[data-key=s]"));
key("End", "follow live", toEnd, () => tail && isFollowing());
key("g t", "tickets", () => location.assign("/tickets"));
key("g a", "approvals", () => location.assign("/approvals"));
if (document.querySelector('.nav a[href="/audit"]')) key("g u", "audit", () => location.assign("/audit"));
key("?", "all keys", sheet);
for (const kind of ["focusin", "focusout", "toggle"]) document.addEventListener(kind, () => setTimeout(bar), true);
bar();

// A page that leaves gives its streams back; one that comes back as it was is loaded anew.
addEventListener("pagehide", leaveAll);
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

fetch("/console/session", { cache: "no-store" }).then((answer) => serverSays(answer.headers.get("date"))).catch(() => {});
follow(body.dataset.inbox, Number(body.dataset.after));
followAll();
