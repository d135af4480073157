// What is known of one address, and what can be done with it.

import { get, path } from "./api.js";
import { parse, writeRange } from "./addresses.js";
import { allocate, release, reserve, unreserve } from "./actions.js";
import { fill, h, link, renew } from "./dom.js";
import { chip, facts, labelList } from "./parts.js";
import { to } from "./routes.js";
import { actionButton, onlyNetworks } from "./session.js";
import { STATES, stateOf } from "./states.js";
import { since } from "./words.js";

/** Shows one address of a network beside the map. */
export class AddressPanel {
  constructor(network, done) {
    Object.assign(this, { network, done, address: null, turn: 0 });
    this.node = h("aside", { class: "panel address", "aria-live": "polite", "aria-label": "The chosen address" });
    this.rest();
  }

  /** Say what to do here while no address is chosen. */
  rest() {
    this.address = null;
    this.turn += 1;
    fill(this.node, h("h2", {}, "An address"),
      h("p", { class: "muted" }, "Choose a square to see who holds it, since when, and what can be done. ",
        "Squares that stand for many addresses open into smaller ones."));
  }

  /** Show an address. */
  async show(address, cell = null) {
    this.address = address;
    this.turn += 1;
    const { turn } = this;
    const findings = await this.findings(address, cell);
    if (turn === this.turn) renew(this.node, explain(address, findings, this.network, this.done, cell && rangeOf(address, cell)));
  }

  /** Ask why an address is what it is; who may see this network only gets what the map tells. */
  async findings(address, cell) {
    if (!onlyNetworks()) return (await get(path`/addresses/${address}/why`, { network: this.network })).findings;
    return cell ? [fromCell(this.network, cell)] : [];
  }

  /** Look at the same address again. */
  async refresh(cellAt) {
    if (this.address) await this.show(this.address, cellAt(this.address));
  }
}

function fromCell(network, cell) {
  const { holding } = cell;
  const state = stateOf(cell);
  const status = { outside: "outside pools", kept: "kept back", waiting: "pre-allocated" }[state] || state;
  return { network, status, text: STATES[state].text, holding, owner: holding && holding.owner, since: holding && holding.since,
    until: holding && holding.until, request: null, reason: cell.barrier || "", labels: holding ? holding.labels : {},
    description: holding ? holding.description : "" };
}

/** What is handed out may be a prefix: then it is reserved whole. */
function rangeOf(address, cell) {
  return cell.single ? writeRange(cell.first, cell.last, parse(address).width) : address;
}

function explain(address, findings, network, done, range) {
  const title = h("h2", {}, h("a", { href: to.address(address, network) }, address));
  if (!findings.length) return [title, h("p", {}, "It lies in no subnet of this network.")];
  return [title, findings.map((finding) => [findingFacts(finding), findingButtons(address, finding, done, range || address)]),
    h("p", {}, link(to.address(address, network), "History and changes"))];
}

/** Write what a network says of an address. */
export function findingFacts(finding) {
  const { holding } = finding;
  return [
    h("p", { class: "status" }, chip(finding.status), " ", h("span", { class: "muted" }, finding.text)),
    facts([
      ["Network", link(to.network(finding.network), finding.network)],
      ["Owner", finding.owner && link(to.owner(finding.owner), finding.owner)],
      ["Slot", holding && holding.slot ? holding.slot : null],
      ["Since", finding.since && since(finding.since)],
      ["Until", finding.until && since(finding.until)],
      ["Asked by", holding && holding.actor],
      ["Request", finding.request],
      ["Carrier", holding && holding.carrier],
      ["Plan", holding && holding.plan],
      ["Reason", finding.reason || null],
      ["Description", finding.description || null],
      ["Labels", Object.keys(finding.labels).length ? labelList(finding.labels) : null],
    ]),
  ];
}

/** Offer what can be done with an address as it is. */
export function findingButtons(address, finding, done, range = address) {
  const { network, holding, status, reason } = finding;
  const free = ["free", "outside pools"].includes(status);
  return h("div", { class: "buttons start" },
    free && actionButton("Allocate here", {
      need: "allocate", network, class: "primary", act: () => allocate({ network, address, done }) }),
    holding && holding.state !== "cooling" && actionButton("Release", {
      need: "allocate", network, class: "danger", act: () => release({ holding, done }) }),
    free && actionButton("Reserve", { need: "admin", act: () => reserve({ network, range, done }) }),
    status === "reserved" && actionButton("Lift reservation", {
      need: "admin", act: () => unreserve({ network, range, reason, done }) }));
}
