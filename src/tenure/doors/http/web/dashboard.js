// All networks: how full they are, who waits, what happened last.

import { get } from "./api.js";
import { addNetwork } from "./actions.js";
import { allNetworks, readBlocks } from "./census.js";
import { fill, h, link, renew } from "./dom.js";
import { bar, changeList, usage } from "./parts.js";
import { to } from "./routes.js";
import { actionButton, onlyNetworks } from "./session.js";
import { count, number } from "./words.js";

const AT_ONCE = 60;
const RECENT = 12;
const REFRESH_MS = 1000;
const ORDERS = {
  name: (one, other) => one.name.localeCompare(other.name, "en", { numeric: true }),
  fullest: (one, other) => fullest(other) - fullest(one) || ORDERS.name(one, other),
  free: (one, other) => least(other) - least(one) || ORDERS.name(one, other),
  waiting: (one, other) => other.waiting - one.waiting || ORDERS.name(one, other),
};

/** A network is as full as the fuller of its families: the IPv4 that ran out counts, not the /64 beside it. */
function fullest({ families }) {
  return Math.max(0, ...families.map(({ inPools: { held, kept, free } }) => (held + kept + free ? held / (held + kept + free) : 0)));
}

/** It has so much free as the scarcer of its families. */
function least({ families }) {
  return families.length ? Math.min(...families.map((family) => family.free)) : 0;
}

// Outside the page object: a reader that comes back sees the blocks at once.
const known = new Map();

/** Show all networks. */
export async function showDashboard() {
  const [networks, changes] = await Promise.all([allNetworks(), recent()]);
  return new Dashboard(networks, changes);
}

async function recent() {
  if (onlyNetworks()) return [];
  const { last } = await get("/changes/last");
  // More than is shown, because logins and the like are left out below.
  const { items } = await get("/changes", { after: Math.max(0, last - 4 * RECENT), limit: 4 * RECENT });
  return items.filter(ofAddresses).reverse().slice(0, RECENT);
}

/** Logins and what else doors write down for themselves are no news here; the log has them. */
function ofAddresses(change) {
  return !change.verb.startsWith("paper.");
}

class Dashboard {
  constructor(networks, changes) {
    this.title = "Networks";
    Object.assign(this, { networks, changes, shownRows: 0, timer: null });
    this.filter = h("input", {
      type: "search", id: "filter", placeholder: "Filter by name, block, tag", oninput: () => this.list(), autocomplete: "off",
    });
    this.order = h("select", { id: "order", onchange: () => this.list() },
      h("option", { value: "name" }, "by name"), h("option", { value: "fullest" }, "fullest first"),
      h("option", { value: "free" }, "most free first"), h("option", { value: "waiting" }, "most waiting first"));
    this.totals = h("div", { class: "totals" });
    this.rows = h("ul", { class: "networks" });
    this.more = h("div", { class: "more" });
    this.log = h("div", {});
    this.node = this.build();
    this.watcher = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && this.extend());
    this.watcher.observe(this.more);
    this.total();
    this.list();
    this.changed();
  }

  build() {
    return h("div", {},
      h("div", { class: "heading" }, h("h1", {}, "Networks"),
        actionButton("Add network", { need: "admin", class: "primary", act: () => addNetwork({
          done: (network) => { location.hash = to.network(network.name); } }) })),
      this.totals,
      h("p", { class: "tip" }, "A free address: open a network and press ", h("b", {}, "Next free"),
        ". Who holds an address: type it, or its end such as .37, into the search above."),
      h("div", { class: "split" },
        h("section", { class: "panel wide", "aria-label": "All networks" },
          h("div", { class: "filters" }, h("label", { class: "unseen", for: "filter" }, "Filter networks"), this.filter,
            h("label", { class: "unseen", for: "order" }, "Order"), this.order,
            h("span", { class: "keyline", "aria-hidden": "true" },
              ["held", "kept", "free"].map((kind) => [h("i", { class: `swatch ${kind}` }), kind === "kept" ? "reserved" : kind]))),
          this.rows, this.more),
        h("section", { class: "panel narrow", "aria-labelledby": "recent" },
          h("h2", { id: "recent" }, "Recent changes"), this.log, h("p", {}, link(to.changes(), "All changes")))));
  }

  total() {
    const sum = (list, name) => list.reduce((all, each) => all + Number(each[name]), 0);
    const counts = this.networks.flatMap((network) => network.families);
    const names = [...new Set(counts.map((family) => family.name))].sort();
    const tile = (value, name, place = null) => h(place ? "a" : "div", { class: "tile", href: place },
      h("b", {}, number(value)), h("span", {}, name));
    fill(this.totals, tile(this.networks.length, "networks"), names.map((name) => {
      const family = counts.filter((each) => each.name === name);
      return [tile(sum(family, "held"), `${name} held`), tile(sum(family, "kept"), `${name} reserved or kept back`),
        tile(sum(family, "free"), `${name} free in pools`)];
    }), tile(sum(this.networks, "waiting"), "waiting claims", to.claims()));
  }

  wanted() {
    const words = this.filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (network) => words.every((word) => wordsOf(network).includes(word));
    return this.networks.filter(fits).sort(ORDERS[this.order.value]);
  }

  list(least = AT_ONCE) {
    this.found = this.wanted();
    this.shownRows = 0;
    fill(this.rows);
    this.extend(least);
  }

  /** Show some more rows: two thousand networks are in the page only as far as somebody scrolls. */
  extend(most = AT_ONCE) {
    const next = this.found.slice(this.shownRows, this.shownRows + most);
    this.shownRows += next.length;
    this.rows.append(...next.map(row));
    const left = this.found.length - this.shownRows;
    fill(this.more, this.networks.length === 0 ? "No network yet: add one, then a subnet and a pool."
      : this.found.length === 0 ? "No network fits." : left ? `${count(left, "more network")} below` : "");
  }

  /** Learn the blocks of all networks behind the reader's back, and write them where he looks. */
  async shown() {
    await readBlocks((found) => {
      for (const [name, about] of found) known.set(name, about);
      for (const each of this.rows.querySelectorAll("[data-network]")) {
        const about = known.get(each.dataset.network);
        if (about) fill(each.querySelector(".blocks"), about.blocks.join(", "));
      }
      if (this.filter.value) this.list(Math.max(AT_ONCE, this.shownRows));
    });
  }

  changed() {
    renew(this.log, changeList(this.changes));
  }

  async update(changes) {
    if (!changes.length) this.changes = await recent();
    this.changes = [...changes.filter(ofAddresses).slice(-RECENT).reverse(), ...this.changes].slice(0, RECENT);
    this.changed();
    if (changes.length && !changes.some(ofAddresses)) return;
    // The server counts by networks: the more there are, the less often all are read.
    this.timer = this.timer || setTimeout(() => this.refresh(), REFRESH_MS * Math.max(1, this.networks.length / 250));
  }

  async refresh() {
    this.timer = null;
    const networks = await allNetworks();
    // The reader went elsewhere while the answer was on its way.
    if (!this.node.isConnected) return;
    this.networks = networks;
    this.total();
    this.found = this.wanted();
    this.shownRows = Math.min(this.found.length, Math.max(AT_ONCE, this.shownRows));
    renew(this.rows, this.found.slice(0, this.shownRows).map(row));
    this.extend(0);
  }

  leave() {
    clearTimeout(this.timer);
    this.watcher.disconnect();
  }
}

function wordsOf(network) {
  const about = known.get(network.name) || { blocks: [], words: "" };
  return `${network.name} ${network.space} ${about.blocks.join(" ")} ${about.words}`.toLowerCase();
}

function row(network) {
  return h("li", {}, h("a", { class: "network", href: to.network(network.name), "data-network": network.name },
    h("span", { class: "name" }, network.name, network.retired && h("em", { class: "muted" }, " retired")),
    h("span", { class: "blocks muted" }, (known.get(network.name) || { blocks: [] }).blocks.join(", ")),
    h("span", { class: "uses" }, network.families.map((family) => [bar(family),
      h("span", { class: "numbers" }, network.families.length > 1 && `${family.name} `, h("b", {}, usage(family)), ` ${number(family.free)} free`)]),
      network.families.length === 0 && h("span", { class: "numbers only" }, network.counted ? "no subnet" : "being counted"),
      network.waiting > 0 && h("span", { class: "numbers only" }, h("span", { class: "count" }, `${number(network.waiting)} waiting`)))));
}
