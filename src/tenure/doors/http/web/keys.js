// The keyboard: a letter leads to a place, unless somebody is writing.

import { byId, h } from "./dom.js";
import { present } from "./forms.js";

const KEYS = [
  ["/", "search"],
  ["g n", "all networks"],
  ["g w", "waiting claims"],
  ["g c", "changes"],
  ["n", "next free address (in a network)"],
  ["a", "allocate (in a network)"],
  ["← ↑ → ↓", "move on the map"],
  ["Enter", "zoom in, or show the address"],
  ["- or Backspace", "zoom out"],
  ["Esc", "close a dialogue"],
  ["?", "these keys"],
];
const GO = { n: "#/", w: "#/claims", c: "#/changes" };
const GO_MS = 1200;
let went = 0;

/** Listen to keys that work everywhere. Buttons say in `data-key` which key presses them. */
export function watchKeys() {
  byId("keys").addEventListener("click", showKeys);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target)) return;
    if (act(event.key)) event.preventDefault();
  });
}

function writing(target) {
  return target.closest("input, select, textarea, dialog") !== null;
}

function act(key) {
  if (Date.now() - went < GO_MS && GO[key]) {
    went = 0;
    location.hash = GO[key];
    return true;
  }
  if (key === "g") went = Date.now();
  else if (key === "/") byId("search-text").focus();
  else if (key === "?") showKeys();
  else return press(key);
  return true;
}

function press(key) {
  // Only these keys may become part of a selector.
  const button = /^[a-z-]$/.test(key) ? document.querySelector(`button[data-key="${key}"]`) : null;
  if (!button || button.disabled) return false;
  button.click();
  return true;
}

function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = h("dialog", { "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h("dl", { class: "facts keys" }, KEYS.map(([key, means]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, means)])),
    h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close")));
  present(dialog);
}
