// The plan of a network in tables: subnets, pools, reserved ranges.

import { unreserve } from "./actions.js";
import { h, link } from "./dom.js";
import { bar, chip, notes, table, usage } from "./parts.js";
import { to } from "./routes.js";
import { actionButton } from "./session.js";
import { number } from "./words.js";

/** List subnets; the one on the map is marked. */
export function subnetTable(network, use, current) {
  const rows = network.subnets.map((subnet) => {
    const counts = use.subnets.get(subnet.cidr);
    const here = current && current.cidr === subnet.cidr;
    return [
      h("a", { href: to.network(network.name, { subnet: subnet.cidr }), class: "mono", "aria-current": here ? "true" : null }, subnet.cidr),
      [subnet.name || "–", subnet.retired && [" ", chip("retired")]], subnet.gateway || "–",
      subnet.unit === (subnet.cidr.includes(":") ? 128 : 32) ? "address" : `/${subnet.unit}`,
      counts ? [bar(counts), h("span", { class: "muted" }, ` ${usage(counts)}, ${number(counts.free)} free`)] : "–",
      notes(subnet),
    ];
  });
  return h("div", { class: "bounded" }, table("Subnets", ["Block", "Name", "Gateway", "Unit", "Use", "Notes"], rows, "No subnet yet."));
}

/** List pools, range by range. */
export function poolTable(network, use) {
  const rows = network.subnets.flatMap((subnet) => subnet.pools.map((pool) => {
    const counts = use.pools.get(pool.range);
    return [
      link(to.network(network.name, { at: pool.range.split("-")[0] }), pool.range), pool.name || "–",
      [pool.policy, pool.cooling_s > 0 && `, cools ${number(pool.cooling_s)} s`, pool.retired && [" ", chip("retired")]],
      counts ? `${number(counts.free)} free` : "–",
    ];
  }));
  return h("div", { class: "bounded" }, table("Pools", ["Range", "Name", "Policy", "Free"], rows, "No pool yet: addresses can only be had by naming them."));
}

/** List reserved ranges, and offer to lift them. */
export function reservedTable(network, done) {
  const rows = network.subnets.flatMap((subnet) => subnet.reserved.map((each) => [
    link(to.network(network.name, { at: each.range.split("-")[0] }), each.range), each.reason || "–",
    notes(each),
    actionButton("Lift", { need: "admin", class: "small", "aria-label": `Lift the reservation of ${each.range}`,
      act: () => unreserve({ network: network.name, range: each.range, reason: each.reason, done }) }),
  ]));
  return h("div", { class: "bounded" }, table("Reserved ranges", ["Range", "Reason", "Notes", ""], rows, "Nothing is reserved by hand."));
}
