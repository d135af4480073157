// One network: its blocks, the map of one of them, what is in it, how full it was.

import { get, path, Problem } from "./api.js";
import { addPool, addSubnet, allocate, reserve } from "./actions.js";
import { useOf } from "./census.js";
import { byId, h, renew } from "./dom.js";
import { HoldingList } from "./holdings.js";
import { MapView } from "./mapview.js";
import { AddressPanel } from "./panel.js";
import { bar, chip, labelList, usage } from "./parts.js";
import { claimTable } from "./claims.js";
import { Plot } from "./plot.js";
import { poolTable, reservedTable, subnetTable } from "./plan.js";
import { to } from "./routes.js";
import { actionButton } from "./session.js";
import { concerns, meets, partsTouched, PARTS } from "./touched.js";
import { number } from "./words.js";

const REFRESH_MS = 500;

/** Show a network. */
export async function showNetwork(place) {
  const page = new NetworkPage(place.name);
  await page.load();
  await page.moveTo(place);
  return page;
}

class NetworkPage {
  constructor(name) {
    Object.assign(this, { name, title: name, timer: null, subnet: null, reading: false, stale: new Set() });
    const again = () => this.refresh();
    this.panel = new AddressPanel(name, again);
    this.map = new MapView(name, {
      go: (said) => this.go(to.network(name, said)),
      select: (address) => this.panel.show(address, this.map.cellAt(address)),
    });
    this.holdings = new HoldingList(name, again);
    this.plot = new Plot(name);
    this.parts = Object.fromEntries(["head", "subnets", "pools", "reserved", "claims"].map((key) => [key, h("div", {})]));
    this.mapPlace = h("div", { class: "map-split" }, this.map.node, this.panel.node);
    this.node = this.build();
  }

  build() {
    const section = (id, title, ...inside) => h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), ...inside);
    return h("div", {}, this.parts.head,
      section("subnets", "Subnets", this.parts.subnets),
      section("map", "Map", this.mapPlace),
      h("div", { class: "halves" }, section("pools", "Pools", this.parts.pools), section("reserved", "Reserved ranges", this.parts.reserved)),
      section("plot", "Utilisation over time", this.plot.node),
      section("holdings", "Holdings", this.holdings.node),
      section("claims", "Waiting claims", this.parts.claims));
  }

  /** Read the network, how it is used and who waits, as far as that is wanted. */
  async load(wanted = new Set(PARTS)) {
    const [network, use, waiting] = await Promise.all([
      wanted.has("plan") ? get(path`/networks/${this.name}`) : this.network,
      wanted.has("use") ? useOf(this.name) : this.use,
      wanted.has("claims") ? claimsOf(this.name) : this.waiting]);
    Object.assign(this, { network, use, waiting });
    if (this.space === undefined) this.space = await spaceNumber(use.space);
    this.describe();
  }

  describe() {
    const { network, use } = this;
    renew(this.parts.head, this.heading(), use.families.map((family) => summary(family, use.families.length > 1)));
    renew(this.parts.subnets, subnetTable(network, use, this.subnet), this.tools());
    renew(this.parts.pools, poolTable(network, use));
    renew(this.parts.reserved, reservedTable(network, () => this.refresh()));
    renew(this.parts.claims, claimTable(this.waiting, () => this.refresh()));
  }

  heading() {
    const { network } = this;
    const pools = network.subnets.flatMap((subnet) => subnet.pools);
    return [
      h("div", { class: "heading" }, h("h1", {}, network.name),
        h("div", { class: "buttons" },
          h("button", { type: "button", "data-key": "n", class: "primary", onclick: () => this.nextFree(), "aria-keyshortcuts": "n" }, "Next free"),
          actionButton("Allocate", { need: "allocate", network: this.name, "data-key": "a", "aria-keyshortcuts": "a",
            act: () => allocate({ network: this.name, pools, done: (holding) => this.arrive(holding) }) }))),
      h("p", { class: "muted" }, chip(network.kind), network.retired && [" ", chip("retired")], " ", network.description, " ",
        network.tags.map((tag) => h("span", { class: "label" }, tag)), labelList(network.labels)),
    ];
  }

  tools() {
    const again = () => this.refresh();
    const network = this.name;
    return h("div", { class: "buttons start" },
      actionButton("Add subnet", { need: "admin", act: () => addSubnet({ network, done: again }) }),
      actionButton("Add pool", { need: "admin", act: () => addPool({ network, subnet: this.subnet && this.subnet.cidr, done: again }) }),
      actionButton("Reserve a range", { need: "admin", act: () => reserve({ network, done: again }) }));
  }

  arrive(holding) {
    this.go(to.network(this.name, { at: holding.address }));
    this.refresh();
  }

  /** Go to a place; also where we are there already, for the reader may have looked elsewhere. */
  go(place) {
    if (location.hash === place) window.dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = place;
  }

  async nextFree() {
    await this.map.nextFree(this.network.subnets);
  }

  /** Go to another place of the same network: another block, another zoom, another address. */
  async moveTo({ said }) {
    const moved = await this.map.moveTo(this.network.subnets, Object.fromEntries(said));
    byId("main").dataset.block = this.map.around || "";
    if (moved.subnet !== this.subnet) {
      this.subnet = moved.subnet;
      this.describe();
    }
    if (moved.address) await this.panel.show(moved.address, this.map.cellAt(moved.address));
    else this.panel.rest();
  }

  shown() {
    this.holdings.load();
    this.plot.load();
  }

  update(changes) {
    if (this.gone) return;
    for (const part of changes.length ? changes.flatMap((change) => this.touched(change)) : PARTS) this.stale.add(part);
    if (this.stale.size) this.timer = this.timer || setTimeout(() => this.reload(), REFRESH_MS);
  }

  /** Name the parts that a change may have altered. Networks of one space share their addresses. */
  touched(change) {
    if (change.network !== this.name && ![null, change.space].includes(this.space)) return [];
    const seen = { map: () => meets(change, this.map.range), panel: () => this.panel.address && concerns(change, this.panel.address) };
    return partsTouched(change, this.name, this.waiting.length > 0).filter((part) => !seen[part] || seen[part]());
  }

  /** Read everything that is shown once more. */
  refresh() {
    for (const part of PARTS) this.stale.add(part);
    return this.reload();
  }

  /** Read what is stale: one reading at a time, and another if something came meanwhile. */
  async reload() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.reading) return;
    this.reading = true;
    try {
      while (this.stale.size) {
        const wanted = this.stale;
        this.stale = new Set();
        await this.reread(wanted);
      }
    } catch (error) {
      this.gone = error.status === 404;
      throw error;
    } finally {
      this.reading = false;
    }
  }

  async reread(wanted) {
    await this.load(wanted);
    if (wanted.has("plan") || !this.map.ground) {
      await this.map.again(this.network.subnets);
      this.subnet = this.map.subnet;
      this.describe();
    } else if (wanted.has("map")) {
      await this.map.refresh();
    }
    await Promise.all([
      wanted.has("panel") && this.panel.refresh((address) => this.map.cellAt(address)),
      wanted.has("holdings") && this.holdings.load(), wanted.has("plot") && this.plot.load()]);
  }

  leave() {
    clearTimeout(this.timer);
    delete byId("main").dataset.block;
  }
}

async function claimsOf(network) {
  return (await get(path`/networks/${network}/claims`)).items;
}

/** Write how a family is used; its name is only written where there are several. */
function summary(family, named) {
  const { name, held, kept, free } = family;
  return h("div", { class: "summary" }, bar(family), h("p", {}, named && `${name} `, h("b", {}, usage(family)),
    ` – ${number(held)} held, ${number(kept)} reserved or kept back, ${number(free)} free in pools`));
}

/** Find the number by which the log knows a space: null where we may not see it, and any change may matter. */
async function spaceNumber(name) {
  try {
    return (await get(path`/spaces/${name}`)).number;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return null;
  }
}
