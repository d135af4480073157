// What an entry of the log can have altered on a page: only that is read again.

import { parse } from "./addresses.js";

/** All parts of a network's page. */
export const PARTS = ["plan", "use", "claims", "map", "panel", "holdings", "plot"];
const OF_ADDRESSES = ["use", "map", "panel"];
const OF_PLAN = /^(network|subnet|pool|preallocation)\.|^(un)?reserve$/;
const OF_LINE = ["wait", "leave"];

/** Tell whether an entry is an edit of a plan. */
function editsPlan(change) {
  return OF_PLAN.test(change.verb);
}

/** Name the parts of a network's page that a change in its space may have altered; `waited`: whether claims are on show. */
export function partsTouched(change, network, waited) {
  const own = change.network === network;
  // Networks of one space share their addresses: another one's holdings and reservations show on the map, too.
  if (editsPlan(change)) return own ? PARTS : OF_ADDRESSES;
  if (OF_LINE.includes(change.verb)) return own ? ["claims"] : [];
  if (!change.address) return [];
  return own ? [...OF_ADDRESSES, "holdings", "plot", ...(waited ? ["claims"] : [])] : OF_ADDRESSES;
}

/** Tell whether a change is about a range; one without an address may be. */
export function meets(change, range) {
  const first = change.address && parse(change.address);
  if (!first || !range) return true;
  const last = change.last_address ? parse(change.last_address) : first;
  return first.width === range.width && first.value <= range.last && range.first <= last.value;
}

/** Tell whether a change is about an address. */
export function concerns(change, address) {
  const { value, width } = parse(address);
  return editsPlan(change) || (Boolean(change.address) && meets(change, { first: value, last: value, width }));
}
