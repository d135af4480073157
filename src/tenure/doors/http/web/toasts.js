// Short messages that come and go, and are read out.

import { byId, h } from "./dom.js";

const SHOWN_MS = 6000;

/** Tell something for a while. */
export function tell(text, kind = "done") {
  const toast = h("div", { class: `toast ${kind}` }, h("span", {}, text));
  toast.append(h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => toast.remove() }, "×"));
  byId("toasts").append(toast);
  setTimeout(() => toast.remove(), SHOWN_MS);
}
