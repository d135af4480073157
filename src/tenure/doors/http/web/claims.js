// Who waits, in order of arrival.

import { get } from "./api.js";
import { withdraw } from "./actions.js";
import { h, link, renew } from "./dom.js";
import { moment, table } from "./parts.js";
import { to } from "./routes.js";
import { actionButton } from "./session.js";

/** Show all claims that wait. */
export async function showClaims() {
  const page = new ClaimsPage();
  await page.load();
  return page;
}

class ClaimsPage {
  constructor() {
    this.title = "Waiting claims";
    this.list = h("section", { class: "panel", "aria-label": "The line" });
    this.node = h("div", {}, h("div", { class: "heading" }, h("h1", {}, "Waiting claims")),
      h("p", { class: "muted" }, "A full pool is a waiting room: whoever waits is served in order of arrival, as soon as an address is free."),
      this.list);
  }

  async load() {
    const { items } = await get("/claims");
    renew(this.list, claimTable(items, () => this.load()));
  }

  async update(changes) {
    if (!changes.length || changes.some((change) => ["wait", "leave", "grant"].includes(change.verb))) await this.load();
  }
}

/** List claims that wait. */
export function claimTable(claims, done) {
  return table("Waiting claims", ["Place", "Network", "Owner", "Pool", "Waits since", "Gives up", ""], claims.map((claim) => [
    String(claim.place), link(to.network(claim.network), claim.network),
    [link(to.owner(claim.owner), claim.owner), claim.slot && ` (${claim.slot})`],
    claim.pool || claim.subnet || "any", moment(claim.since), claim.until ? moment(claim.until) : "never",
    actionButton("Withdraw", { need: "allocate", network: claim.network, class: "small",
      "aria-label": `Withdraw ${claim.owner}`, act: () => withdraw({ claim, done }) }),
  ]), "Nobody waits.");
}
