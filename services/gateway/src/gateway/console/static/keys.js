// Single keys: one registry feeds the handlers and the sheet. A bare key never decides.

const registry = new Map();
let pending = "";

export function key(name, words, act) {
  if (registry.has(name)) throw new Error(`the key ${name} is taken`);
  registry.set(name, { words, act });
}

const off = () => localStorage.getItem("keys") === "off";

// A box to tick takes no text: it keeps the focus for a moment when the sheet closes, and must not swallow the next key.
function typing(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key !== "Escape" && (typing(event.target) || off())) return;
  const name = pending + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
  pending = "";
  if (name === "g") {
    pending = "g ";
    setTimeout(() => { pending = ""; }, 1500);
    return;
  }
  const found = registry.get(name);
  if (found && found.act(event) !== false) event.preventDefault();
});

export function sheet() {
  const dialog = document.getElementById("sheet");
  const list = document.getElementById("sheet-keys");
  list.replaceChildren(...[...registry].flatMap(([name, { words }]) => {
    const [term, keys] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = words;
    keys.append(...name.split(" ").map((part) => Object.assign(document.createElement("kbd"), { textContent: part.length === 1 ? part.toUpperCase() : part })));
    return [term, keys];
  }));
  const box = document.getElementById("keys-off");
  box.checked = off();
  box.onchange = () => localStorage.setItem("keys", box.checked ? "off" : "on");
  dialog.showModal();
}
