// Puts what the streams say onto the page: elements by id, replaced or added, never an older state over a newer one.

import { Source } from "./source.js";

const cursors = new Map(); // url -> the last sequence that this page has applied
const listeners = new Map(); // kind -> functions
const statuses = new Map();
const followed = new WeakSet(); // elements whose stream was joined for them
// A page that has heard nothing for so long is stale, whatever is in between: the worker, or a machine that slept.
const STALE_MS = 13_000;
let heardAt = Date.now();
let status = "";
const worker = connect();

export function on(kind, listener) {
  listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
}

function emit(kind, ...values) {
  for (const listener of listeners.get(kind) ?? []) listener(...values);
}

function connect() {
  if (typeof SharedWorker === "undefined") {
    // Without shared workers each page holds its own streams.
    const sources = new Map();
    return {
      join: (url, after) => {
        sources.get(url)?.stop();
        sources.set(url, new Source(url, after, (message) => heard({ url, ...message })));
      },
      leave: (url) => { sources.get(url)?.stop(); sources.delete(url); },
      retry: () => { for (const source of sources.values()) source.open(); },
    };
  }
  const { port } = new SharedWorker(new URL("./stream-worker.js", import.meta.url), { type: "module", name: "turngate" });
  port.onmessage = ({ data }) => heard(data);
  return {
    join: (url, after) => port.postMessage({ do: "join", url, after }),
    leave: (url) => port.postMessage({ do: "leave", url }),
    retry: () => port.postMessage({ do: "retry" }),
  };
}

// From `after` on: from further back than it was followed so far, if need be.
export function follow(url, after) {
  if (cursors.get(url) <= after) return;
  cursors.set(url, after);
  worker.join(url, after);
}

export function leaveAll() {
  for (const url of cursors.keys()) worker.leave(url);
}

export function retry() {
  worker.retry();
}

// Streams that elements on the page name for themselves. One that has just been put there may be older than what has been
// told meanwhile: that is told again.
export function followAll(root = document) {
  for (const element of root.querySelectorAll("[data-stream]")) {
    if (followed.has(element)) continue;
    followed.add(element);
    follow(element.dataset.stream, Number(element.dataset.after));
  }
}

function heard(message) {
  if (!cursors.has(message.url)) return;
  if (message.type === "status") {
    statuses.set(message.url, message.status);
    if (message.status === "on") heardAt = Date.now();
    return review();
  }
  heardAt = Date.now();
  if (message.type === "beat") return review();
  if (message.id) {
    if (message.id <= cursors.get(message.url)) return;
    cursors.set(message.url, message.id);
  }
  if (message.kind === "change") applyAll(message.data.changes);
  else if (message.kind === "text") write(message.data);
  else if (message.kind === "reset") location.reload();
  else {
    if (message.data?.changes) applyAll(message.data.changes);
    emit(message.kind, message.data);
  }
}

// The page is as current as the least current of its streams.
function review() {
  const all = [...statuses.values()];
  let now = ["out", "lost", "on"].find((one) => all.includes(one)) ?? "";
  if (now !== "out" && Date.now() - heardAt > STALE_MS) now = "lost";
  if (now === status) return;
  status = now;
  emit("status", status, heardAt);
}

setInterval(review, 1000);
document.addEventListener("visibilitychange", review);

// Whether people may decide by what this page shows: all that has happened is on it, or it has just been loaded.
export function isCurrent() {
  review();
  return status === "on" || status === "";
}

// Whether a run's stream goes on.
export const isFollowing = () => [...statuses].some(([url, one]) => url.includes("/runs/") && one !== "over");

function applyAll(changes) {
  for (const change of changes) apply(change);
  followAll();
  emit("applied", changes);
}

function apply({ id, html, to, opened }) {
  const there = document.getElementById(id);
  if (!html) return there?.remove();
  if (there) return replace(there, parse(html, there.parentElement));
  const place = to && document.getElementById(to);
  if (!place) return emit("unplaced", to, html);
  if (opened && opened <= Number(place.dataset.from ?? 0)) return;
  const fresh = parse(html, place);
  const live = place.querySelector(":scope > [id^=live-]");
  if (to === "cards") place.querySelector("#nothing")?.remove();
  if (to === "cards") (place.querySelector(".sect") ? place.insertBefore(fresh, place.querySelector(".sect")) : place.append(fresh));
  else place.insertBefore(fresh, live);
}

function parse(html, context) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return document.adoptNode(template.content.firstElementChild);
}

// Keeps what the person has open, typed and focused.
function replace(old, fresh) {
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const typed = new Map([...old.querySelectorAll("input:not([type=hidden]), textarea")].map((field) => [keyOf(field), field.value]));
  const open = [...old.querySelectorAll("details")].map((details) => details.open);
  old.replaceWith(fresh);
  for (const field of fresh.querySelectorAll("input:not([type=hidden]), textarea")) field.value = typed.get(keyOf(field)) ?? field.value;
  fresh.querySelectorAll("details").forEach((details, n) => { details.open = open[n] ?? details.open; });
  if (focus) refocus(again(fresh, focus) ?? fresh, focus);
  emit("replaced", old, fresh);
}

function refocus(element, focus) {
  element.focus({ preventScroll: true });
  if (element.value !== undefined && focus.selectionStart != null) element.setSelectionRange(focus.selectionStart, focus.selectionEnd);
}

function keyOf(field) {
  return `${field.id} ${field.name} ${field.form?.action}`;
}

function again(fresh, focus) {
  if (focus.id) return document.getElementById(focus.id);
  if (focus.name && focus.tagName !== "BUTTON") return fresh.querySelector(`${focus.tagName}[name="${focus.name}"]`);
  const href = focus.getAttribute("href");
  return href ? fresh.querySelector(`a[href="${CSS.escape(href)}"]`) : null;
}

function write({ id, add }) {
  document.getElementById(id)?.append(add);
  emit("applied", []);
}
