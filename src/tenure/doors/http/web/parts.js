// Pieces that several places show: bars, tables, lists of changes and holdings, labels.

import { h, link } from "./dom.js";
import { to } from "./routes.js";
import { ago, byText, labels, number, share, time } from "./words.js";

/** Draw how pools are used: held, kept away, free; each part also by its pattern and in words. */
export function bar({ name, inPools: { held, kept, free } }) {
  const whole = held + kept + free;
  const text = (name ? `${name}: ` : "") + (whole ? `Of the pools ${share(held, whole)} held, ${number(kept)} reserved, ${number(free)} free` : "no pool to pick from");
  const parts = [["held", held], ["kept", kept], ["free", free]].map(([kind, part]) => {
    const piece = h("span", { class: `part ${kind}` });
    // Set as properties: the page's policy forbids attributes of style.
    piece.style.flexGrow = whole ? part / whole : 0;
    piece.style.minWidth = part ? "3px" : "0";
    return piece;
  });
  return h("div", { class: "bar", role: "img", "aria-label": text, title: text }, parts);
}

/** Write a table; a cell is text or an element. On small screens each row becomes a card. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "muted none" }, empty);
  return h("div", { class: "table" }, h("table", {},
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, index) => h("td", { "data-name": columns[index] }, cell)))))));
}

/** Write labels; each leads to what else has it. */
export function labelList(said) {
  return labels(said).map((text) => h("a", { class: "label", href: to.search(`label:${text}`) }, text));
}

/** Write what is noted on something; nothing where nothing is. */
export function notes({ description, labels: said }) {
  const list = labelList(said);
  return description && list.length ? [description, " ", list] : description || list;
}

/** Write a time that says on hover when exactly it was. */
export function moment(text) {
  return text ? h("time", { datetime: text, title: time(text) }, ago(text)) : "–";
}

/** Write a state as a chip with its letter. */
export function chip(state) {
  return h("span", { class: `chip is-${state.replace(/[^a-z]/g, "-")}` }, state);
}

/** List holdings. */
export function holdingTable(holdings, { network = true, extra = () => [] } = {}) {
  const columns = ["Address", ...(network ? ["Network"] : []), "Owner", "State", "Since", "Notes", ""];
  return table("Holdings", columns, holdings.map((held) => [
    link(to.address(held.address, held.network), held.address === held.last_address ? held.address : `${held.address}/${held.unit}`),
    ...(network ? [link(to.network(held.network, { at: held.address }), held.network)] : []),
    [link(to.owner(held.owner), held.owner), held.slot && h("span", { class: "muted" }, ` ${held.slot}`)],
    chip(held.state), moment(held.since), notes(held), extra(held),
  ]), "Nothing is held here.");
}

/** List entries of the log, the newest first. */
export function changeList(changes, { empty = "No changes yet." } = {}) {
  if (!changes.length) return h("p", { class: "muted none" }, empty);
  return h("ol", { class: "changes", reversed: true }, changes.map((change) => h("li", { value: change.seq },
    h("span", { class: "seq" }, `#${change.seq}`), h("span", { class: "verb" }, change.verb),
    h("span", { class: "what" }, what(change)), h("span", { class: "who muted" }, byText(change.actor, change.request)), moment(change.at))));
}

function what(change) {
  const told = change.details || {};
  const place = told.range || told.cidr || told.pool || told.subnet || null;
  return [
    change.address ? link(to.address(change.address, change.network), change.address) : place,
    change.owner && [" ", link(to.owner(change.owner), change.owner)],
    told.to && ` to ${told.to}`,
    change.network && [" in ", link(to.network(change.network, change.address ? { at: change.address } : {}), change.network)],
  ];
}

/** Write facts as a list of names and values. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Write how much of the pools is held. */
export function usage({ held, inPools }) {
  const whole = inPools.held + inPools.kept + inPools.free;
  if (whole) return `${share(inPools.held, whole)} held`;
  return held ? `no pool, ${number(held)} held` : "no pool";
}
