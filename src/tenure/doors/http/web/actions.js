// What can be done: each asks in a dialogue first, and shows what the server says at the field it is about.

import { path, post, remove } from "./api.js";
import { confirm, openForm, readLabels, said } from "./forms.js";
import { tell } from "./toasts.js";
import { since } from "./words.js";

const OWNER = {
  name: "owner", label: "Owner", required: true, placeholder: "instance/web-0",
  hint: "kind/id, such as instance/web-0; realm:kind/id for one of another realm.",
};
const LABELS = { name: "labels", label: "Labels", placeholder: "team=shop, rack=4", read: readLabels };
const DESCRIPTION = { name: "description", label: "Description" };
const POLICIES = [
  ["", "as the pool says"], ["lowest", "lowest: the first free one"], ["random", "random"],
  ["hashed", "hashed: by the owner"], ["sticky", "sticky: the one this owner had"],
];

/** Give an address to an owner: the named one, or the next free one. */
export function allocate({ network, address = null, pools = [], done }) {
  const names = [...new Set(pools.map((pool) => pool.name).filter(Boolean))];
  const pool = { name: "pool", label: "Pool", options: [["", "any"], ...names.map((name) => [name, name])] };
  openForm({
    title: address ? `Allocate ${address}` : `Allocate an address in ${network}`,
    intro: address ? null : "Leave the address empty to get the next free one.",
    submit: "Allocate",
    fields: [
      OWNER,
      { name: "address", label: "Address", value: address, placeholder: "next free" },
      ...(address || !names.length ? [] : [pool]),
      ...(address ? [] : [{ name: "policy", label: "Policy", options: POLICIES }]),
      { name: "slot", label: "Slot", placeholder: "nic0/ip1", hint: "Only for an owner that holds several." },
      DESCRIPTION, LABELS,
    ],
    send: async (values, key) => {
      const holding = await post(path`/networks/${network}:allocate`, said(values), { key });
      tell(`${holding.address} is now held by ${holding.owner}.`);
      done(holding);
    },
  });
}

/** End a holding, after a look at what it is. */
export function release({ holding, done }) {
  confirm({
    title: `Release ${holding.address}?`,
    facts: [
      ["Network", holding.network], ["Owner", holding.owner + (holding.slot ? ` (${holding.slot})` : "")],
      ["State", holding.state], ["Since", since(holding.since)], ["Description", holding.description || "–"],
    ],
    submit: "Release",
    send: async (values, key) => {
      const { address, owner, generation, network } = holding;
      // With the generation: a holding that was released and granted anew meanwhile must stay.
      await post(path`/networks/${network}:release`, { address, owner, generation }, { key });
      tell(`${address} is released.`);
      done();
    },
  });
}

/** Keep a range away from picking. */
export function reserve({ network, range = null, done }) {
  confirm({
    title: range ? `Reserve ${range}?` : `Reserve a range in ${network}`,
    intro: "Nobody will be given what is reserved, unless it is named and the caller insists. What is held in it stays held.",
    danger: false,
    submit: "Reserve",
    fields: [
      { name: "range", label: "Range", required: true, value: range, placeholder: "192.0.2.20-192.0.2.50" },
      { name: "reason", label: "Reason", placeholder: "for whom, or what for" },
    ],
    send: async (values, key) => {
      await post(path`/networks/${network}/reserved`, said(values), { key });
      tell(`${values.range} is reserved.`);
      done();
    },
  });
}

/** Let a range be picked from again. */
export function unreserve({ network, range, reason = "", done }) {
  confirm({
    title: `Lift the reservation of ${range}?`,
    facts: [["Network", network], ["Reason", reason || "–"]],
    submit: "Lift it",
    send: async () => {
      await remove(path`/networks/${network}/reserved/${range}`);
      tell(`${range} is no longer reserved.`);
      done();
    },
  });
}

/** Add a network. */
export function addNetwork({ done }) {
  openForm({
    title: "Add a network",
    submit: "Add network",
    fields: [
      { name: "name", label: "Name", required: true, placeholder: "net1", also: ["network"] },
      { name: "space", label: "Space", hint: "Networks in one space never hold an address twice. Empty: a space of its own." },
      { name: "kind", label: "Kind", options: [["manual", "manual"], ["dynamic", "dynamic"], ["vip", "vip"]], value: "manual" },
      { name: "tags", label: "Tags", placeholder: "prod, berlin", read: readList },
      DESCRIPTION, LABELS,
    ],
    send: async (values, key) => {
      const network = await post("/networks", said(values), { key });
      tell(`Network ${network.name} is there.`);
      done(network);
    },
  });
}

/** Add a block to a network. */
export function addSubnet({ network, done }) {
  openForm({
    title: `Add a subnet to ${network}`,
    submit: "Add subnet",
    fields: [
      { name: "cidr", label: "Block", required: true, placeholder: "192.0.2.0/24" },
      { name: "gateway", label: "Gateway", placeholder: "192.0.2.1" },
      { name: "name", label: "Name" },
      { name: "dns", label: "DNS servers", placeholder: "192.0.2.2, 192.0.2.3", read: readList },
      { name: "unit", label: "Unit", inputmode: "numeric", read: readNumber, placeholder: "32",
        hint: "The prefix length that is handed out: empty is one address; 28 hands out /28s." },
      DESCRIPTION,
    ],
    send: async (values, key) => {
      const subnet = await post(path`/networks/${network}/subnets`, said(values), { key });
      tell(`Subnet ${subnet.cidr} is there.`);
      done(subnet);
    },
  });
}

/** Add a range to pick from. */
export function addPool({ network, subnet = null, done }) {
  openForm({
    title: `Add a pool to ${network}`,
    intro: "Addresses are picked from pools only; others are held by naming them.",
    submit: "Add pool",
    fields: [
      { name: "range", label: "Range", required: true, placeholder: subnet || "192.0.2.10-192.0.2.100" },
      { name: "name", label: "Name", hint: "A name that is there already gains a range." },
      { name: "policy", label: "Policy", options: POLICIES.slice(1), value: "lowest" },
      { name: "cooling_s", label: "Cooling", inputmode: "numeric", read: readNumber, placeholder: "0",
        hint: "Seconds until a released address is handed out again." },
    ],
    send: async (values, key) => {
      await post(path`/networks/${network}/pools`, said(values), { key });
      tell(`Pool ${values.name || values.range} is there.`);
      done();
    },
  });
}

/** Take a claim out of the line. */
export function withdraw({ claim, done }) {
  confirm({
    title: "Withdraw this claim?",
    facts: [["Network", claim.network], ["Owner", claim.owner], ["Place in line", claim.place], ["Since", since(claim.since)]],
    submit: "Withdraw",
    send: async (values, key) => {
      const { owner, slot, network } = claim;
      await post(path`/networks/${network}:withdraw`, { owner, slot }, { key });
      tell(`${owner} no longer waits.`);
      done();
    },
  });
}

function readList(text) {
  return text.split(/[,\s]+/).filter(Boolean);
}

/** A number that is none is sent as it was written: the server says what is wrong with it, at its field. */
function readNumber(text) {
  return /^\d+$/.test(text) ? Number(text) : text;
}
