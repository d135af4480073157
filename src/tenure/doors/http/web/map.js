// A block of addresses as a picture: one square an address, or one square a smaller block, shaded by how it is used.
// What a colour says is said again by a pattern and a letter.

import { rowName, shortName, writeRange } from "./addresses.js";
import { fill, h, svg } from "./dom.js";
import { STATES, stateOf } from "./states.js";
import { brief, number, share } from "./words.js";

const GAP = 3;
const LABEL = 46;

/** Draws cells, lets them be walked through by keys, and tells what was chosen. */
export class AddressMap {
  constructor({ onzoom, onselect, onout, ontell }) {
    Object.assign(this, { onzoom, onselect, onout, ontell, cells: [], at: 0, columns: 16, chosen: null, pointing: false });
    this.picture = svg("svg", { class: "map", role: "grid", "aria-label": "Map of addresses" });
    this.node = h("div", { class: "map-frame" }, this.picture);
    this.picture.addEventListener("keydown", (event) => this.pressed(event));
    this.picture.addEventListener("pointerover", (event) => this.hinted(event));
    this.picture.addEventListener("focusin", (event) => this.hinted(event));
    this.picture.addEventListener("pointerleave", () => this.ontell(null));
    this.picture.addEventListener("click", (event) => this.clicked(event));
    this.width = 0;
    new ResizeObserver(([entry]) => this.resized(entry.contentRect.width)).observe(this.node);
  }

  /** Show other cells; where the range is the same, whoever walks through it stays where he is. */
  show(ground, chosen = null) {
    const same = this.ground && this.ground.first === ground.first && this.ground.last === ground.last;
    const hadFocus = this.picture.contains(document.activeElement);
    Object.assign(this, { ground, cells: ground.cells, chosen });
    if (!same) this.at = 0;
    // Before the first layout there is no width; the ResizeObserver draws then.
    if (this.width) this.draw();
    if (hadFocus) this.focus(this.at);
  }

  resized(width) {
    if (Math.abs(width - this.width) < 1) return;
    this.width = width;
    if (this.ground) this.draw();
  }

  /** Let an address be seen as the one that is meant: as soon as it is drawn. */
  point(value) {
    this.chosen = value;
    this.pointing = true;
    if (this.width && this.ground) this.draw();
  }

  draw() {
    const { columns, size } = this.layout();
    this.columns = columns;
    const rows = Math.ceil(this.cells.length / columns);
    const [width, height] = [LABEL + columns * (size + GAP), rows * (size + GAP) + GAP];
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("width", width);
    this.picture.setAttribute("height", height);
    this.picture.setAttribute("aria-rowcount", rows);
    fill(this.picture, patterns(), Array.from({ length: rows }, (_, row) => this.drawRow(row, size)));
    // A picture that is not in the page yet cannot take the focus.
    if (this.pointing && this.picture.isConnected) {
      this.pointing = false;
      this.focus(Math.max(0, this.cells.findIndex((cell) => cell.first <= this.chosen && this.chosen <= cell.last)));
    }
  }

  layout() {
    const count = this.cells.length;
    const room = this.width - LABEL;
    const wide = count > 256 ? 736 : 900;
    const columns = Math.min(count, room < 420 ? 8 : room < wide || count < 128 ? 16 : 32);
    const size = Math.max(20, Math.min(52, Math.floor(room / columns) - GAP));
    return { columns, size };
  }

  drawRow(row, size) {
    const cells = this.cells.slice(row * this.columns, (row + 1) * this.columns);
    const top = GAP + row * (size + GAP);
    const name = rowName(cells[0].first, cells[0].last, this.ground.width, this.ground);
    return svg("g", { role: "row" },
      svg("text", { role: "rowheader", class: "row-name", x: LABEL - 8, y: top + size / 2 }, name),
      cells.map((cell, column) => this.drawCell(cell, row * this.columns + column, LABEL + column * (size + GAP), top, size)));
  }

  drawCell(cell, index, left, top, size) {
    const chosen = this.chosen !== null && cell.first <= this.chosen && this.chosen <= cell.last;
    const state = cell.single ? stateOf(cell) : "block";
    return svg("g", {
      role: "gridcell", class: `cell is-${state}${chosen ? " chosen" : ""}`, transform: `translate(${left} ${top})`,
      tabindex: index === this.at ? 0 : -1, "data-index": index, "aria-label": this.describe(cell), "aria-selected": chosen,
      "data-range": writeRange(cell.first, cell.last, this.ground.width),
    }, cell.single ? this.single(cell, state, size) : this.block(cell, size));
  }

  single(cell, state, size) {
    const letter = size < 26 ? "" : STATES[state].letter;
    const name = shortName(cell.first, cell.last, this.ground.width).slice(1);
    const most = letter && size < 36 ? 11 : 13;
    return [
      svg("rect", { class: "ground", width: size, height: size, rx: 4 }),
      svg("rect", { class: "sign", width: size, height: size, rx: 4 }),
      svg("text", { class: "name", x: size / 2, y: size / 2 + (letter ? size / 9 : 1), "font-size": fit(name, size, most) }, name),
      letter && svg("text", { class: "letter", x: size - 3, y: size < 36 ? 6.5 : 9, "font-size": size < 36 ? 7 : 8.5 }, letter),
    ];
  }

  block(cell, size) {
    const { counts, units } = cell;
    const held = level(counts.held, units, size);
    const kept = Math.min(size - held, level(counts.reserved, units, size));
    const name = shortName(cell.first, cell.last, this.ground.width).slice(1);
    const used = counts.held ? brief(counts.held) : counts.reserved && !counts.free ? "–" : "";
    return [
      svg("rect", { class: `ground${counts.free ? " pooled" : ""}`, width: size, height: size, rx: 4 }),
      svg("rect", { class: "level kept", y: size - held - kept, width: size, height: kept, rx: 3 }),
      svg("rect", { class: "level held", y: size - held, width: size, height: held, rx: 3 }),
      svg("rect", { class: "edge", width: size, height: size, rx: 4 }),
      svg("text", { class: over(held, size * 0.62, "name"), x: size / 2, y: size * 0.34, "font-size": fit(name, size, 11) }, name),
      size >= 30 && svg("text", { class: over(held, size * 0.25, "used"), x: size / 2, y: size * 0.72, "font-size": fit(used, size, 10) }, used),
    ];
  }

  /** Say what a cell is, in one line: for who hovers, and for who listens. */
  describe(cell) {
    const where = writeRange(cell.first, cell.last, this.ground.width);
    const { counts, holding } = cell;
    if (cell.single) {
      const state = STATES[stateOf(cell)];
      const by = holding ? ` by ${holding.owner}${holding.slot ? ` (${holding.slot})` : ""}` : "";
      return `${where}: ${state.text}${by}${cell.barrier ? ` – ${cell.barrier}` : ""}`;
    }
    const kept = counts.reserved ? `, ${number(counts.reserved)} kept away` : "";
    return `${where}: ${number(counts.held)} held of ${number(cell.units)} (${share(counts.held, cell.units)})${kept}, `
      + `${number(counts.free)} free in pools`;
  }

  hinted(event) {
    const cell = this.cellOf(event);
    if (cell) this.ontell(cell, this.describe(cell));
  }

  clicked(event) {
    const cell = this.cellOf(event);
    if (!cell) return;
    this.at = this.cells.indexOf(cell);
    this.choose(cell);
  }

  choose(cell) {
    if (!cell.single) {
      this.onzoom(cell);
      return;
    }
    this.chosen = cell.first;
    this.draw();
    this.focus(this.cells.indexOf(cell));
    this.onselect(cell);
  }

  cellOf(event) {
    const found = event.target.closest(".cell");
    return found && this.cells[Number(found.dataset.index)];
  }

  pressed(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, Home: -this.at,
      End: this.cells.length - 1 - this.at }[event.key];
    if (step !== undefined) this.focus(Math.max(0, Math.min(this.cells.length - 1, this.at + step)));
    else if (event.key === "Enter" || event.key === " ") this.choose(this.cells[this.at]);
    else if (event.key === "Backspace") this.onout();
    else return;
    event.preventDefault();
  }

  focus(index) {
    this.at = index;
    // One cell at a time is reached by Tab; from there the arrow keys walk through the grid.
    for (const each of this.picture.querySelectorAll('.cell[tabindex="0"]')) each.setAttribute("tabindex", "-1");
    const found = this.picture.querySelector(`.cell[data-index="${index}"]`);
    if (!found) return;
    found.setAttribute("tabindex", "0");
    found.focus({ preventScroll: true });
    found.scrollIntoView({ block: "nearest" });
  }
}

/** How high a part of a square is: what is there is seen, however little it is. */
function level(part, whole, size) {
  if (!part) return 0;
  return Math.max(3, Math.min(size, (size * Number(part)) / Number(whole)));
}

/** Text that stands on the level of what is held has another colour, and one that stands half on it a rim. */
function over(level, height, name) {
  if (level > height * 1.3) return `${name} over`;
  return level > height * 0.85 ? `${name} half` : name;
}

function fit(text, size, most = 13) {
  return Math.max(7, Math.min(most, (size * 1.5) / Math.max(2, text.length)));
}

function patterns() {
  const lines = (id, turn, step, thick) => svg("pattern", {
    id, width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})`,
  }, svg("rect", { class: "stripe", width: thick, height: step }));
  const dots = svg("pattern", { id: "dots", width: 5, height: 5, patternUnits: "userSpaceOnUse" },
    svg("circle", { class: "stripe", cx: 2.5, cy: 2.5, r: 1.1 }));
  return svg("defs", {}, lines("hatch", 45, 6, 2), lines("bars", 90, 6, 2), lines("back", -45, 4, 1.4), dots);
}

/** Draw the legend: each state as the map shows it. */
export function legend(single) {
  const wanted = single ? Object.keys(STATES) : ["held", "reserved", "free"];
  return h("ul", { class: "legend", "aria-label": "Legend" }, wanted.map((state) => h("li", {}, sample(state, single),
    single ? STATES[state].text : { held: "held (level)", reserved: "reserved or kept back", free: "has free addresses" }[state])));
}

function sample(state, single) {
  const size = 16;
  const shape = single ? [svg("rect", { class: "ground", width: size, height: size, rx: 3 }),
    svg("rect", { class: "sign", width: size, height: size, rx: 3 }),
    STATES[state].letter && svg("text", { class: "name", x: 8, y: 9, "font-size": 10 }, STATES[state].letter)]
    : [svg("rect", { class: `ground${state === "free" ? " pooled" : ""}`, width: size, height: size, rx: 3 }),
      state !== "free" && svg("rect", { class: `level ${state === "held" ? "held" : "kept"}`, y: 6, width: size, height: 10 }),
      svg("rect", { class: "edge", width: size, height: size, rx: 3 })];
  return svg("svg", { class: "map sample", width: size, height: size, viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("g", { class: `cell is-${single ? state : "block"}` }, shape));
}
