// The log, newest first, as it grows.

import { get, Problem } from "./api.js";
import { h, renew } from "./dom.js";
import { changeList } from "./parts.js";

const AT_ONCE = 100;
const MOST = 1000;

/** Show the newest entries of the log. */
export async function showChanges() {
  const page = new ChangesPage();
  await page.begin();
  return page;
}

class ChangesPage {
  constructor() {
    Object.assign(this, { title: "Changes", changes: [], before: 0 });
    this.list = h("div", {});
    this.more = h("button", { type: "button", onclick: () => this.older() }, "Older");
    this.node = h("div", {}, h("div", { class: "heading" }, h("h1", {}, "Changes")),
      h("p", { class: "muted" }, "Every effect on the ledger, in order: what, who asked, when."),
      h("section", { class: "panel", "aria-label": "The log" }, this.list, this.more));
  }

  async begin() {
    Object.assign(this, { changes: [], before: (await get("/changes/last")).last });
    await this.older();
  }

  async older() {
    const after = Math.max(0, this.before - AT_ONCE);
    if (this.before > 0) {
      try {
        const { items } = await get("/changes", { after, limit: AT_ONCE });
        // Newer entries come by update(); without the filter they would be listed twice.
        this.changes.push(...items.filter((change) => change.seq <= this.before).reverse());
        this.before = after;
      } catch (error) {
        // 410: the log does not reach back that far, so there is nothing older to show.
        if (!(error instanceof Problem) || error.status !== 410) throw error;
        this.before = 0;
      }
    }
    this.show();
  }

  show() {
    renew(this.list, changeList(this.changes));
    this.more.hidden = this.before === 0;
  }

  async update(changes) {
    if (!changes.length) {
      await this.begin();
      return;
    }
    this.changes = [...[...changes].reverse(), ...this.changes].slice(0, MOST);
    this.show();
  }
}
