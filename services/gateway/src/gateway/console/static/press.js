// A press that does something has to be meant. It begins a moment after the press before it did something, and after
// what it is on came there: the second half of a double click, a second tap and a key that is held down do nothing, on
// this page or on the next one.

const MOMENT_MS = 600;
const AT = "pressed-at"; // when the last page was pressed, by the clock: this one may lie under the same finger
const SUBMITS = "form[method=post] button:not([type=button])";

const began = { pointer: -Infinity, key: -Infinity };
const down = new Set();
const came = new WeakMap(); // button -> since when it says what it says
let released = -Infinity;
let clicked = null; // the button whose click was meant and sends its form now
let last = { at: Number(sessionStorage.getItem(AT) ?? -Infinity) - performance.timeOrigin, by: null, other: false };

const isPress = (event) => event.key === "Enter" || event.key === " ";

addEventListener("pointerdown", (event) => begin("pointer", `pointer ${event.pointerId}`, event), true);
for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, (event) => end(`pointer ${event.pointerId}`, event), true);
addEventListener("keydown", (event) => {
  if (!event.repeat) return isPress(event) ? begin("key", event.code, event) : down.add(event.code);
  // A key that is held presses no button and sends no form, wherever the focus has gone meanwhile.
  if (isPress(event) && event.target.closest?.("button, summary, input, select")) event.preventDefault();
}, true);
addEventListener("keyup", (event) => end(event.code, event), true);
addEventListener("blur", () => down.clear());

function begin(kind, name, event) {
  down.add(name);
  began[kind] = event.timeStamp;
}

function end(name, event) {
  down.delete(name);
  released = event.timeStamp;
  if (last.by?.has(name)) last.at = event.timeStamp;
}

// This press did something. `other`: what it makes ready is done by another key, so that one may follow at once.
export function did(event, other = false) {
  last = { at: event.timeStamp, by: new Set(down), other };
  sessionStorage.setItem(AT, String(performance.timeOrigin + event.timeStamp));
}

function isMeant(event, button) {
  let start = Math.max(began.pointer, began.key);
  if (event.type === "click") start = event.detail ? began.pointer : began.key;
  // Assistive technology clicks without a key or a pointer: then the click is the press.
  if (event.type === "click" && !event.detail && !down.size && event.timeStamp - released > 100) start = event.timeStamp;
  if (start - (came.get(button) ?? -Infinity) < MOMENT_MS) return false;
  return start > last.at && (last.other || start - last.at >= MOMENT_MS);
}

// Why a button is off, in words of ours; it is on once none is left.
export function off(button, why, is) {
  const reasons = new Set((button.dataset.off ?? "").split(" ").filter(Boolean));
  if (is) reasons.add(why);
  else reasons.delete(why);
  button.dataset.off = [...reasons].join(" ");
  button.setAttribute("aria-disabled", String(reasons.size > 0));
}

export const isOff = (button) => button.getAttribute("aria-disabled") === "true";

const resting = new WeakMap(); // button -> the timer that ends its rest; a later rest ends later

function rest(buttons, ms) {
  for (const button of buttons) {
    off(button, "soon", true);
    clearTimeout(resting.get(button));
    resting.set(button, setTimeout(() => off(button, "soon", false), ms));
  }
}

// The buttons that the last press has brought up are off for the moment in which a second one would not count.
export function broughtUp(root) {
  const left = MOMENT_MS - (performance.now() - last.at);
  if (!last.other && left > 0) rest(root.querySelectorAll(SUBMITS), left);
}

// The button says something else from now on: whoever was about to press it has not read that.
export function saysAnew(button) {
  came.set(button, performance.now());
  rest([button], MOMENT_MS);
}

// What only makes ready to decide needs no second thought.
const makesReady = (button) => button.dataset.do === "approve" && !button.closest(".armed");

function refuse(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(SUBMITS);
  if (button && !makesReady(button)) {
    if (isOff(button) || !isMeant(event, button)) return refuse(event);
    clicked = button;
    setTimeout(() => { clicked = null; });
  }
  const details = event.target.closest?.("summary")?.parentElement;
  if (details && !details.open && details.querySelector("form")) did(event);
}, true);

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post") return;
  const button = event.submitter ?? form.querySelector("button:not([type=button])");
  if (form.dataset.busy || isOff(button) || !(clicked === button || isMeant(event, button))) return refuse(event);
  did(event);
  if (!form.dataset.send) form.dataset.busy = "1"; // it leaves the page, and once is enough
}, true);

document.addEventListener("toggle", (event) => {
  if (event.target.open) broughtUp(event.target);
}, true);

broughtUp(document);
