// One owner: all that it holds.

import { get, path } from "./api.js";
import { release } from "./actions.js";
import { fill, h, renew } from "./dom.js";
import { holdingTable } from "./parts.js";
import { actionButton } from "./session.js";
import { count } from "./words.js";

/** Show an owner. */
export async function showOwner(place) {
  const page = new OwnerPage(place.name);
  await page.load();
  return page;
}

class OwnerPage {
  constructor(owner) {
    Object.assign(this, { owner, title: owner });
    this.told = h("p", { class: "muted" });
    this.list = h("section", { class: "panel", "aria-label": "Holdings" });
    this.node = h("div", {}, h("div", { class: "heading" }, h("h1", { class: "mono" }, owner)), this.told, this.list);
  }

  async load() {
    const { items } = await get(path`/owners/${this.owner}`);
    fill(this.told, `An owner with ${count(items.length, "holding")}.`);
    renew(this.list, holdingTable(items, { extra: (holding) => releaseButton(holding, () => this.load()) }));
  }

  async update(changes) {
    if (!changes.length || changes.some((change) => change.owner === this.owner)) await this.load();
  }
}

/** Offer to release a holding. */
export function releaseButton(holding, done) {
  if (holding.state === "cooling") return null;
  return actionButton("Release", {
    need: "allocate", network: holding.network, class: "small", "aria-label": `Release ${holding.address}`,
    act: () => release({ holding, done }) });
}
