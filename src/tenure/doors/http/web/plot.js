// How full a network was, over time: a line with its area, and axes that say what they mean.

import { timelineOf } from "./census.js";
import { fill, h, renew, svg } from "./dom.js";
import { number, time } from "./words.js";

const SPANS = [["1", "1 hour"], ["24", "24 hours"], ["168", "7 days"], ["744", "31 days"]];
const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [200, 60, 12, 12, 26];
const AGAIN_MS = 5000;

/** Shows the utilisation of a network over a time that can be chosen. */
export class Plot {
  constructor(network) {
    Object.assign(this, { network, read: 0, turn: 0 });
    this.span = h("select", { id: "plot-span", onchange: () => this.load(true) },
      SPANS.map(([hours, text]) => h("option", { value: hours, selected: hours === "24" }, text)));
    this.scale = h("select", { id: "plot-scale", onchange: () => this.draw() },
      h("option", { value: "seen" }, "scaled to what was held"), h("option", { value: "all" }, "scaled to all there is"));
    this.family = h("select", { id: "plot-family", hidden: true, onchange: () => this.draw() });
    this.frame = h("div", { class: "plot-frame" });
    this.width = 0;
    new ResizeObserver(([entry]) => this.resized(Math.floor(entry.contentRect.width))).observe(this.frame);
    this.node = h("div", {}, h("div", { class: "filters" },
      h("label", { for: "plot-span" }, "Held addresses over "), this.span,
      h("label", { class: "unseen", for: "plot-family" }, "Family"), this.family,
      h("label", { class: "unseen", for: "plot-scale" }, "Scale"), this.scale), this.frame);
  }

  /** Read the plot; seldom, while changes rush in. */
  async load(now = false) {
    if (!now && Date.now() - this.read < AGAIN_MS) return;
    this.read = Date.now();
    this.turn += 1;
    const { turn } = this;
    const line = await timelineOf(this.network, Number(this.span.value));
    // Another span was chosen meanwhile; an answer that comes late must not replace its answer.
    if (turn !== this.turn) return;
    this.line = line;
    this.offer(line.families.map((family) => family.name));
    this.draw();
  }

  /** Let the reader choose where there are several families. */
  offer(names) {
    const chosen = names.includes(this.family.value) ? this.family.value : names[0];
    renew(this.family, names.map((name) => h("option", { value: name }, name)));
    this.family.value = chosen || "";
    this.family.hidden = names.length < 2;
  }

  resized(width) {
    if (width === this.width) return;
    this.width = width;
    this.draw();
  }

  draw() {
    if (!this.line || !this.width) return;
    const { families, since } = this.line;
    const { points, capacity } = families.find((family) => family.name === this.family.value) || { points: [] };
    if (!points.length) {
      fill(this.frame, h("p", { class: "muted" }, "Nothing is known yet."));
      return;
    }
    const most = this.scale.value === "all" ? capacity : nice(Math.max(1, ...points.map((point) => point.held)));
    fill(this.frame, picture(points, most, capacity, this.width),
      since && new Date(since) > points[0].at && h("p", { class: "muted" }, `The log tells of the time since ${time(since)}.`));
  }
}

function picture(points, most, capacity, width) {
  const [first, last] = [points[0].at.getTime(), points[points.length - 1].at.getTime()];
  const across = (when) => LEFT + ((width - LEFT - RIGHT) * (when - first)) / Math.max(1, last - first);
  const up = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(value, most)) / most;
  const line = steps(points, across, up);
  const now = points[points.length - 1].held;
  const text = `From ${number(points[0].held)} to ${number(now)} held of ${number(capacity)}`;
  return svg("svg", { class: "plot", width, height: HEIGHT, role: "img", "aria-label": text },
    svg("title", {}, text),
    [0, 0.25, 0.5, 0.75, 1].map((part) => grid(part * most, up, width)),
    [0, 0.25, 0.5, 0.75, 1].map((part) => tick(first + part * (last - first), across, last - first, part)),
    svg("path", { class: "area", d: `${line} L ${across(last)} ${up(0)} L ${across(first)} ${up(0)} Z` }),
    svg("path", { class: "line", d: line }),
    svg("circle", { class: "now", cx: across(last), cy: up(now), r: 3.5 }));
}

/** Between two times the number is what it was at the first: it changes in steps. */
function steps(points, across, up) {
  return points.map((point, index) => {
    const [x, y] = [across(point.at.getTime()).toFixed(1), up(point.held).toFixed(1)];
    return index === 0 ? `M ${x} ${y}` : `H ${x} V ${y}`;
  }).join(" ");
}

function grid(value, up, width) {
  const y = up(value);
  return [svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
    svg("text", { class: "axis", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, Number.isInteger(value) || value > 1e9 ? number(value) : "")];
}

function tick(when, across, long, part) {
  const text = time(new Date(when).toISOString());
  const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
  return svg("text", { class: "axis", x: across(when), y: HEIGHT - 6, "text-anchor": anchor },
    long > 2 * 86400e3 ? text.slice(5, 10) : text.slice(11, 16));
}

/** The next number above that is easy to read, and has quarters. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return Math.max(4, [1, 2, 4, 8, 10].map((step) => step * power).find((step) => step >= value));
}
