// The map with what belongs to it: where we are, zoom, legend, and what the square under the pointer is.

import { format, parse, parseBlock, writeRange } from "./addresses.js";
import { groundOf } from "./census.js";
import { fill, h } from "./dom.js";
import { around, waysTo } from "./levels.js";
import { AddressMap, legend } from "./map.js";
import { tell } from "./toasts.js";
import { since } from "./words.js";

/** Shows one block of a network at a time. `go` changes the place, `select` shows an address. */
export class MapView {
  constructor(network, { go, select }) {
    Object.assign(this, { network, go, select, ground: null, subnet: null, range: null, at: null });
    this.map = new AddressMap({
      onzoom: (cell) => this.zoomTo(cell.first, cell.last),
      onselect: (cell) => this.chose(cell.first),
      onout: () => this.out(),
      ontell: (cell, text) => this.hint(cell, text),
    });
    this.where = h("span", { class: "where mono" });
    this.outButton = h("button", { type: "button", "data-key": "-", "aria-keyshortcuts": "-", onclick: () => this.out() }, "Zoom out");
    this.useButton = h("button", { type: "button", onclick: () => this.toUse() }, "Zoom to what is used");
    this.hintLine = h("p", { class: "hint-line", "aria-hidden": "true" });
    this.legend = h("div", {});
    this.node = h("div", { class: "map-view" },
      h("div", { class: "map-tools" }, this.where, this.outButton, this.useButton), this.hintLine, this.map.node, this.legend);
    this.hint(null);
  }

  /** Where an address that is written as `.37` would lie: the block on show, if it has no more than 256. */
  get around() {
    return this.range && this.range.last - this.range.first < 256n ? format(this.range.first, this.range.width) : null;
  }

  /** Show the place that is said: a subnet, a range in it, or an address. */
  async moveTo(subnets, said) {
    const address = said.at ? parse(said.at) : null;
    const subnet = pick(subnets, said.subnet, address);
    Object.assign(this, { subnet, said, at: address ? address.value : null });
    if (!subnet) {
      this.nothing();
      return { subnet: null, address: null };
    }
    const block = wholeOf(subnet);
    const [first, last] = [said.first, said.last].map((text) => text && parse(text));
    const inside = first && last && block.first <= first.value && first.value <= last.value && last.value <= block.last;
    if (inside) this.range = { ...block, first: first.value, last: last.value };
    else this.range = this.at === null ? block : waysTo(block, this.at).pop();
    this.block = block;
    await this.refresh();
    if (this.at !== null) this.map.point(this.at);
    return { subnet, address: said.at && address ? said.at : null };
  }

  /** Show the same place of a plan that changed. */
  async again(subnets) {
    const { at } = this;
    // Without `at`: moveTo would point at it and take the focus from wherever the reader is.
    const { at: _, ...said } = this.said || {};
    await this.moveTo(subnets, { ...said, ...this.spoken() });
    this.at = at;
    await this.refresh();
  }

  /** Say which range is on show. */
  spoken() {
    if (!this.range) return {};
    const { first, last, width } = this.range;
    return { subnet: this.subnet.cidr, first: format(first, width), last: format(last, width) };
  }

  nothing() {
    this.ground = null;
    fill(this.where, "No subnet yet: add one, then a pool.");
    for (const each of [this.outButton, this.useButton, this.map.node, this.hintLine, this.legend]) each.hidden = true;
  }

  /** Read and draw the range on show. */
  async refresh() {
    const wanted = this.range;
    if (!wanted) return;
    const ground = await groundOf(this.network, this.subnet.cidr, wanted);
    // The reader moved on while this range was read.
    if (wanted !== this.range) return;
    this.ground = ground;
    for (const each of [this.outButton, this.useButton, this.map.node, this.hintLine, this.legend]) each.hidden = false;
    const single = ground.cells.every((cell) => cell.single);
    fill(this.where, writeRange(ground.first, ground.last, ground.width), single ? "" : ` – each square is a ${sizeName(ground)}`);
    this.outButton.disabled = ground.first === this.block.first && ground.last === this.block.last;
    this.useButton.hidden = single;
    fill(this.legend, legend(single));
    this.map.show(ground, this.at);
  }

  hint(cell, text = null) {
    const held = cell && cell.holding;
    fill(this.hintLine, cell ? [h("b", {}, text), held && ` since ${since(held.since)}`, held && held.description && ` – ${held.description}`]
      : "Point at a square to see what it is.");
  }

  zoomTo(first, last) {
    const { width } = this.range;
    this.go({ subnet: this.subnet.cidr, first: format(first, width), last: format(last, width) });
  }

  out() {
    const { first, last } = around(this.block, this.range);
    if (first === this.block.first && last === this.block.last) this.go({ subnet: this.subnet.cidr });
    else this.zoomTo(first, last);
  }

  chose(value) {
    this.at = value;
    this.select(format(value, this.range.width));
  }

  /** Find the square of an address, if it is on show. */
  cellAt(address) {
    const found = parse(address);
    return (this.ground && this.ground.cells.find((cell) => cell.first <= found.value && found.value <= cell.last)) || null;
  }

  /** Go down while all that is held lies in one square. */
  async toUse() {
    await this.refresh();
    let ground = this.ground;
    for (;;) {
      const used = ground.cells.filter((cell) => cell.counts.held > 0);
      if (used.length === 0) {
        tell("Nothing is held in this block.");
        return;
      }
      if (ground !== this.ground && (used.length > 1 || used[0].single)) break;
      ground = await this.within(used[0]);
    }
    this.zoomTo(ground.first, ground.last);
  }

  within(cell) {
    return groundOf(this.network, this.subnet.cidr, { ...this.range, first: cell.first, last: cell.last });
  }

  /** Point to a free address: first in the block on show, then in the others. Returns it, or null where none is. */
  async nextFree(subnets) {
    const start = subnets.indexOf(this.subnet);
    for (const subnet of [...subnets.slice(start), ...subnets.slice(0, start)]) {
      const found = await this.freeIn(subnet);
      if (found) {
        this.go({ subnet: subnet.cidr, at: found });
        return found;
      }
    }
    tell("Nothing is free in the pools of this network. A claim can wait for an address.", "warning");
    return null;
  }

  async freeIn(subnet) {
    const block = wholeOf(subnet);
    let range = block;
    for (;;) {
      const { cells } = await groundOf(this.network, subnet.cidr, range);
      const cell = cells.find((each) => each.counts.free > 0);
      if (!cell) return null;
      if (cell.single) return format(cell.first, block.width);
      range = { ...block, first: cell.first, last: cell.last };
    }
  }
}

/** A subnet as a range, with the size of what it hands out. */
function wholeOf(subnet) {
  const block = parseBlock(subnet.cidr);
  return { ...block, size: 1n << BigInt(block.width - subnet.unit) };
}

function pick(subnets, wanted, address) {
  const holds = (subnet) => {
    const block = parseBlock(subnet.cidr);
    return block.width === address.width && block.first <= address.value && address.value <= block.last;
  };
  const inside = address && subnets.find(holds);
  return inside || subnets.find((subnet) => subnet.cidr === wanted) || subnets[0] || null;
}

function sizeName({ cells, width }) {
  const [cell] = cells;
  const size = cell.last - cell.first + 1n;
  return `/${width - (size.toString(2).length - 1)}`;
}
