// Counts, maps and plots as the server tells them, in the words that this page uses: held, kept away, free.

import { get, path } from "./api.js";
import { format, parse } from "./addresses.js";
import { squareOf } from "./levels.js";
import { onlyNetworks } from "./session.js";

const POINTS = 120;
const PAGE = 200;
// Blocks only help the reader to find a network; the reading ends after 5000 networks.
const MOST_PAGES = 25;
const TAKEN = ["held", "pending", "draining", "cooling"];
const KEPT = ["reserved", "kept_back", "preallocated", "elsewhere"];
const UNSAID = { slot: "", until: null, labels: {}, description: "" };
const FAMILIES = { ipv4: "IPv4", ipv6: "IPv6" };
const NAMES = { kept_back: "kept", preallocated: "waiting" };

/** Read how all networks that we may see are used. */
export async function allNetworks() {
  const only = onlyNetworks();
  // A token for some networks may read each of them, but not the list of all.
  if (only) return Promise.all(only.map(async (name) => summary(await get(path`/networks/${name}/utilisation`))));
  return (await get("/utilisation")).items.map(summary);
}

function summary(use) {
  const counted = use.counts !== null;
  return { families: byFamily(use.counts || {}), counted, name: use.network, space: use.space, waiting: use.waiting, retired: use.retired };
}

/** Read which blocks networks have, page by page; `take` gets them as they come. */
export async function readBlocks(take) {
  if (onlyNetworks()) return;
  let after = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next } = await get("/networks", { after, limit: PAGE });
    take(items.map((network) => [network.name, {
      blocks: network.subnets.map((subnet) => subnet.cidr),
      words: [network.description, ...network.tags, ...network.subnets.map((subnet) => subnet.name)].join(" ") }]));
    if (next === null) return;
    after = next;
  }
}

/** Read how one network is used, with its subnets and pools. */
export async function useOf(network) {
  const use = await get(path`/networks/${network}/utilisation`);
  const pools = use.subnets.flatMap((subnet) => subnet.pools);
  return { space: use.space, families: byFamily(use.counts),
    subnets: new Map(use.subnets.map((each) => [each.cidr, summed(each.counts)])),
    pools: new Map(pools.map((each) => [each.range, summed(each.counts)])) };
}

/** Count each family that a network has by itself: one address of IPv4 says nothing beside a /64 of IPv6. */
function byFamily(counts) {
  return Object.entries(FAMILIES).filter(([key]) => counts[key]).map(([key, name]) => ({ name, ...summed(counts[key]) }));
}

function sum(counts, names) {
  return names.reduce((all, name) => all + (counts[name] || 0), 0);
}

/**
 * Count what is held, kept away and free; and, as `inPools`, how the pools are used, which is what fills up.
 * The server counts pools: here, two numbers of a /64 that differ by a few are the same.
 */
function summed(counts) {
  const { free = 0, pooled_taken: held = 0, pooled_kept: kept = 0 } = counts;
  return { held: sum(counts, TAKEN), kept: sum(counts, KEPT), free, inPools: { held, kept, free } };
}

/** Read a stretch of a subnet as cells. */
export async function groundOf(network, subnet, range) {
  const { first, last, width } = range;
  const asked = squareOf(range);
  const drawn = await get(path`/networks/${network}/map`,
    { subnet, first: format(first, width), last: format(last, width), cells: Number((last - first + 1n) / asked) });
  const size = 1n << BigInt(width - drawn.cell_prefix);
  const single = drawn.cell_units === 1;
  const cells = drawn.cells.map((cell) => readCell(cell, size, single, drawn.cell_units));
  return { first: parse(drawn.first).value, last: parse(drawn.last).value, width, cells, prefix: drawn.cell_prefix };
}

function readCell(cell, size, single, units) {
  const first = parse(cell.first).value;
  const { held, kept, free } = summed(cell);
  return { first, last: first + size - 1n, single, units, counts: { held, reserved: kept, free },
    holding: cell.holding ? { ...UNSAID, ...cell.holding } : null,
    barrier: cell.barrier || null, state: single ? nameOf(cell) : null };
}

function nameOf(cell) {
  const found = [...TAKEN, ...KEPT, "retired", "free"].find((name) => cell[name]) || "outside";
  return NAMES[found] || found;
}

/** Read how many were held over some hours. */
export async function timelineOf(network, hours) {
  const line = await get(path`/networks/${network}/timeline`, { hours, points: POINTS });
  const families = Object.entries(FAMILIES).filter(([key]) => line[key]).map(([key, name]) => ({ name,
    points: line[key].points.map((point) => ({ at: new Date(point.at), held: point.held })), capacity: line[key].capacity }));
  return { families, since: line.complete_since };
}
