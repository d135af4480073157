// One address: why it is what it is, who held it, what happened to it.

import { get, path, Problem } from "./api.js";
import { fill, h, link } from "./dom.js";
import { findingButtons, findingFacts } from "./panel.js";
import { changeList, table } from "./parts.js";
import { to } from "./routes.js";
import { concerns } from "./touched.js";
import { byText, count, time } from "./words.js";

const LOOKED_AT = 10000;
const MOST = 1000;

/** Show one address, in one network or in all it lies in. */
export async function showAddress(place) {
  const page = new AddressPage(place.name, place.said.get("network"));
  await page.load();
  return page;
}

class AddressPage {
  constructor(address, network) {
    Object.assign(this, { title: address, address, network, changes: [], before: null, turn: 0 });
    this.why = h("div", {});
    this.history = h("div", {});
    this.log = h("div", {});
    this.node = h("div", {},
      h("div", { class: "heading" }, h("h1", { class: "mono" }, address)),
      h("section", { class: "panel", "aria-label": "Why" }, this.why),
      h("section", { class: "panel", "aria-labelledby": "history" }, h("h2", { id: "history" }, "History"), this.history),
      h("section", { class: "panel", "aria-labelledby": "log" }, h("h2", { id: "log" }, "Changes"), this.log));
  }

  async load() {
    this.turn += 1;
    const { turn } = this;
    const said = { network: this.network };
    const [why, history] = await Promise.all([
      get(path`/addresses/${this.address}/why`, said), get(path`/addresses/${this.address}/history`, said)]);
    if (turn !== this.turn) return;
    this.explain(why.findings);
    this.tell(history);
    const { last } = await get("/changes/last");
    // Read once more meanwhile, and by now perhaps listed.
    if (turn !== this.turn) return;
    Object.assign(this, { changes: [], before: last });
    await this.older();
  }

  explain(findings) {
    fill(this.why, findings.length === 0
      ? h("p", {}, "It lies in no subnet of any network.")
      : findings.map((finding) => h("div", { class: "finding" }, findingFacts(finding),
        findingButtons(this.address, finding, () => this.load()),
        h("p", {}, link(to.network(finding.network, { at: this.address }), `Show it on the map of ${finding.network}`)))));
  }

  tell(history) {
    const rows = [...history.tenures].reverse().map((each) => [
      [link(to.owner(each.owner), each.owner), each.slot && ` (${each.slot})`],
      each.network || `no. ${each.network_number}, which is gone`,
      time(each.since), each.until ? time(each.until) : "now",
      [each.ending, each.to && [" to ", link(to.owner(each.to), each.to)]],
      byText(each.actor, each.request || each.request_id) || "–",
      byText(each.ended_actor, each.ended_by || each.ended_request_id) || "–"]);
    const columns = ["Owner", "Network", "From", "Until", "Ending", "Begun by", "Ended by"];
    fill(this.history, table("Who held it", columns, rows, "Nobody ever held it, as far as the log reaches."),
      history.trimmed && h("p", { class: "muted" }, `The log was trimmed: it is complete since ${time(history.complete_since)}.`));
  }

  /** Look further back in the log, a piece at a time. */
  async older() {
    const { turn, before } = this;
    const after = Math.max(0, before - LOOKED_AT);
    try {
      const found = await this.between(after, before);
      if (turn !== this.turn) return;
      this.changes.push(...found.reverse());
      this.before = after;
    } catch (error) {
      // 410: the log does not reach back that far, so there is nothing older to show.
      if (!(error instanceof Problem) || error.status !== 410) throw error;
      this.before = 0;
    }
    this.list();
  }

  /** Read all entries about the address in a piece of the log: an answer has the oldest of them, and where to go on. */
  async between(after, before) {
    const found = [];
    for (let read = after; read < before;) {
      const { items, next } = await get("/changes", { after: read, range: this.address, limit: MOST });
      found.push(...items.filter((change) => change.seq <= before));
      if (next <= read) break;
      read = next;
    }
    return found;
  }

  list() {
    const fitting = this.changes.filter((change) => !this.network || change.network === this.network);
    fill(this.log, changeList(fitting, { empty: `Nothing in the last ${count(LOOKED_AT, "change")}.` }),
      this.before > 0 && h("button", { type: "button", onclick: () => this.older() }, "Look further back"));
  }

  async update(changes) {
    if (!changes.length || changes.some((change) => concerns(change, this.address))) await this.load();
  }
}

