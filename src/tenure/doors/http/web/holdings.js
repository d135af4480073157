// The holdings of a network, a page at a time: sixty thousand of them are never all here.

import { get, path } from "./api.js";
import { h, renew } from "./dom.js";
import { releaseButton } from "./owner.js";
import { holdingTable } from "./parts.js";

const PAGE = 25;
// The list is read when the writing pauses, not for each letter.
const PAUSE_MS = 250;

/** Shows one page of holdings, with a filter. */
export class HoldingList {
  constructor(network, done) {
    Object.assign(this, { network, done, before: [], after: null, next: null, timer: null, turn: 0 });
    this.text = h("input", { type: "search", id: "holding-text", placeholder: "Filter by owner or description", autocomplete: "off",
      oninput: () => this.later() });
    this.state = h("select", { id: "holding-state", onchange: () => this.begin() },
      ["any state", "held", "pending", "draining", "cooling"].map((word) => h("option", { value: word === "any state" ? "" : word }, word)));
    this.back = h("button", { type: "button", onclick: () => this.step(-1) }, "Back");
    this.on = h("button", { type: "button", onclick: () => this.step(1) }, "More");
    this.list = h("div", { class: "holding-list" });
    this.node = h("div", {},
      h("div", { class: "filters" }, h("label", { class: "unseen", for: "holding-text" }, "Filter holdings"), this.text,
        h("label", { class: "unseen", for: "holding-state" }, "State"), this.state),
      this.list, h("div", { class: "buttons start" }, this.back, this.on));
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.begin(), PAUSE_MS);
  }

  begin() {
    Object.assign(this, { before: [], after: null });
    return this.load();
  }

  step(way) {
    if (way > 0) {
      this.before.push(this.after);
      this.after = this.next;
    } else {
      this.after = this.before.pop() ?? null;
    }
    return this.load();
  }

  async load() {
    this.turn += 1;
    const { turn } = this;
    const said = { text: this.text.value.trim(), state: this.state.value, after: this.after, limit: PAGE };
    const { items, next } = await get(path`/networks/${this.network}/holdings`, said);
    // Another request was sent meanwhile; an answer that comes late must not replace its answer.
    if (turn !== this.turn) return;
    this.next = next;
    renew(this.list, items.length || next === null
      ? holdingTable(items, { network: false, extra: (holding) => releaseButton(holding, this.done) })
      : h("p", { class: "muted" }, "Nothing among the first of them; “More” looks further."));
    this.back.disabled = this.before.length === 0;
    this.on.disabled = next === null;
  }
}
