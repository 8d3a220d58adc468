// Single keys: one registry feeds the handlers, the bar and the sheet. A bare key never decides.

const registry = new Map();
let pending = "";

// `live`: whether the key does something on this page now, for this person.
export function key(name, words, act, live = () => true, same = []) {
  for (const one of [name, ...same]) {
    if (registry.has(one)) throw new Error(`the key ${one} is taken`);
    registry.set(one, { words, act, live, names: [name, ...same] });
  }
}

const isOff = () => localStorage.getItem("keys") === "off";

// A box to tick takes no text: it keeps the focus for a moment when the sheet closes, and must not swallow the next key.
function typing(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key !== "Escape" && (typing(event.target) || isOff())) return;
  const name = pending + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
  pending = "";
  if (name === "g") {
    pending = "g ";
    setTimeout(() => { pending = ""; }, 1500);
    return;
  }
  const found = registry.get(name);
  if (found?.live() && found.act(event) !== false) event.preventDefault();
});

const SHOWN = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

function caps(name) {
  return name.split(" ").map((part) => {
    const textContent = SHOWN[part] ?? (part.length === 1 ? part.toUpperCase() : part);
    return Object.assign(document.createElement("kbd"), { textContent });
  });
}

const once = () => [...registry].filter(([name, { names }]) => name === names[0]);

// The bar names the keys that do something now.
export function bar() {
  document.body.classList.toggle("with-keys", !isOff());
  const place = document.getElementById("keys");
  const live = isOff() ? [] : once().filter(([name, { live }]) => name !== "?" && live());
  const text = live.map(([name]) => name).join("|");
  if (!place || place.dataset.live === text) return;
  place.dataset.live = text;
  place.replaceChildren(...live.map(([, { words, names }]) => {
    const one = document.createElement("span");
    one.append(...names.flatMap(caps), words);
    return one;
  }));
}

export function sheet() {
  const dialog = document.getElementById("sheet");
  const list = document.getElementById("sheet-keys");
  list.replaceChildren(...once().flatMap(([, { words, names }]) => {
    const [term, keys] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = words;
    keys.append(...names.flatMap(caps));
    return [term, keys];
  }));
  const box = document.getElementById("keys-off");
  box.checked = isOff();
  box.onchange = () => { localStorage.setItem("keys", box.checked ? "off" : "on"); bar(); };
  dialog.showModal();
}
