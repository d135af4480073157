// Light or dark: as the system says, until the reader says otherwise.

import { byId, fill } from "./dom.js";

const KEY = "tenure.theme";
const NEXT = { auto: "dark", dark: "light", light: "auto" };
const SIGN = { auto: "◐ Auto", dark: "● Dark", light: "○ Light" };

/** Let the switch in the header choose, and remember it in this browser. */
export function watchTheme() {
  const button = byId("theme");
  show(button, localStorage.getItem(KEY) || "auto");
  button.addEventListener("click", () => {
    const wanted = NEXT[button.dataset.theme];
    localStorage.setItem(KEY, wanted);
    show(button, wanted);
  });
}

function show(button, wanted) {
  const theme = wanted in NEXT ? wanted : "auto";
  button.dataset.theme = theme;
  button.setAttribute("aria-label", `Colours: ${theme}. Change.`);
  fill(button, SIGN[theme]);
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}
