// Search: one field for addresses, owners, labels and names; what is found leads to its place.

import { get } from "./api.js";
import { parse, parseSpan } from "./addresses.js";
import { byId, h, link } from "./dom.js";
import { chip, notes, table } from "./parts.js";
import { to } from "./routes.js";

const MOST = 100;

/** Let the field in the header search. A whole address leads to its page at once. */
export function searchFor() {
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("search-text").value.trim();
    if (!text) return;
    const address = whole(text);
    location.hash = address ? to.address(address) : to.search(text);
  });
}

/** Complete what was written to an address: `.37` means the one in the block that is looked at. */
function whole(text) {
  if (parse(text)) return text;
  const block = byId("main").dataset.block;
  if (!block || !ends(text)) return null;
  const meant = block.replace(/\.\d+$/, text);
  return parse(meant) ? meant : null;
}

/** Show what fits a text. */
export async function showSearch(place) {
  const text = place.said.get("text") || "";
  const wanted = readWanted(text);
  const { items } = wanted ? await get("/search", { ...wanted, limit: MOST }) : { items: [] };
  byId("search-text").value = text;
  const note = h("p", { class: "muted" }, told(items.length, text));
  return { title: `Search: ${text}`, node: h("div", {},
    h("div", { class: "heading" }, h("h1", {}, "Search")), note,
    ends(text) && h("p", { class: "tip" }, "A number with a dot finds what is held. ",
      "For an address that nobody holds, open its network and choose its square, or write it whole."),
    h("section", { class: "panel", "aria-label": "Found" }, table("Found", ["What", "Where", "Name or owner", "Network", "Notes"],
      ranked(items, text).map(found), "Nothing fits. Parts of names, owners and descriptions are found, too."))) };
}

/** A label is written label:name=value, or just name=value. */
function readWanted(text) {
  const label = /^label:(.+)$/.exec(text) || /^([^\s=:]+=.*)$/.exec(text);
  if (label) return { label: label[1].trim() };
  return text.trim() ? { text: text.trim() } : null;
}

function ends(text) {
  return /^\.\d{1,3}$/.test(text.trim());
}

/** What ends as it was written comes first: .37 means 192.0.2.37 rather than 10.0.37.5. */
function ranked(items, text) {
  if (!ends(text)) return items;
  const last = (item) => ((item.address || "").endsWith(text.trim()) ? 0 : 1);
  return [...items].sort((one, other) => last(one) - last(other));
}

function told(many, text) {
  if (many === MOST) return `The first ${MOST} that fit “${text}”; write more of it to find less.`;
  return many === 1 ? `One thing fits “${text}”.` : `${many} things fit “${text}”.`;
}

function found(item) {
  const span = item.address && parseSpan(item.address);
  const at = span ? item.address.split(/[-/]/)[0] : null;
  const place = item.kind === "holding" ? to.address(at, item.network)
    : to.network(item.network, item.kind === "subnet" ? { subnet: item.address } : at ? { at } : {});
  return [
    [chip(item.kind), item.holding && [" ", chip(item.holding.state)]],
    link(place, item.address || item.network),
    item.kind === "holding" || item.kind === "preallocation" ? link(to.owner(item.name), item.name) : item.name || "–",
    link(to.network(item.network, at ? { at } : {}), item.network),
    notes(item),
  ];
}
