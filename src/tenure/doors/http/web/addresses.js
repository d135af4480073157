// Addresses as numbers: parsed, written, counted on. IPv4 and IPv6 are told apart by their width.

/** Read an address as { value, width }, or null where the text is none. */
export function parse(text) {
  const said = String(text).trim();
  return said.includes(":") ? parse6(said) : parse4(said);
}

function parse4(text) {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return null;
  return { value: parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n), width: 32 };
}

function parse6(text) {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half) => (half ? half.split(":") : []));
  const missing = 8 - head.length - (tail ? tail.length : 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = tail === undefined ? head : [...head, ...Array(missing).fill("0"), ...tail];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
  return { value: groups.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n), width: 128 };
}

/** Write a number as an address. */
export function format(value, width) {
  return width === 32 ? format4(value) : format6(value);
}

function format4(value) {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".");
}

function format6(value) {
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 65535n).toString(16));
  const run = longestZeros(groups);
  if (run.length < 2) return groups.join(":");
  return `${groups.slice(0, run.start).join(":")}::${groups.slice(run.start + run.length).join(":")}`;
}

function longestZeros(groups) {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start += 1) {
    let end = start;
    while (end < groups.length && groups[end] === "0") end += 1;
    if (end - start > best.length) best = { start, length: end - start };
  }
  return best;
}

/** Read a block in CIDR form as { first, last, width, length }, or null. */
export function parseBlock(text) {
  const [address, written] = String(text).split("/");
  const found = parse(address);
  if (!found || !/^\d{1,3}$/.test(written || "") || Number(written) > found.width) return null;
  const host = BigInt(found.width - Number(written));
  const first = (found.value >> host) << host;
  return { first, last: first + (1n << host) - 1n, width: found.width, length: Number(written) };
}

/** Read one address, a block, or first-last, as { first, last, width }, or null. */
export function parseSpan(text) {
  const said = String(text).trim();
  if (said.includes("/")) return parseBlock(said);
  const [first, last] = said.split("-").map(parse);
  const end = last === undefined ? first : last;
  return first && end && first.width === end.width ? { first: first.value, last: end.value, width: first.width } : null;
}

/** Tell how many bits of a range stay the same where it is a block; null where it is none. */
function prefixOf(first, last, width) {
  const size = last - first + 1n;
  if ((size & (size - 1n)) !== 0n || first % size !== 0n) return null;
  return width - (size.toString(2).length - 1);
}

/** Write a range as shortly as it can be: an address, a block, or first-last. */
export function writeRange(first, last, width) {
  if (first === last) return format(first, width);
  const prefix = prefixOf(first, last, width);
  return prefix === null ? `${format(first, width)}-${format(last, width)}` : `${format(first, width)}/${prefix}`;
}

/** Write what tells a block from its neighbours: the last number of it that its size leaves. */
export function shortName(first, last, width) {
  const prefix = prefixOf(first, last, width) ?? width;
  if (width === 32) {
    const octet = Math.max(0, Math.ceil(prefix / 8) - 1);
    return `.${format4(first).split(".")[octet]}`;
  }
  const group = Math.max(0, Math.ceil(prefix / 16) - 1);
  return `:${((first >> BigInt(112 - 16 * group)) & 65535n).toString(16)}`;
}

/** Write what tells a row of a map from the others: all numbers that differ within the map. */
export function rowName(first, last, width, around) {
  if (width !== 32) return shortName(first, last, width);
  const from = Math.floor((prefixOf(around.first, around.last, width) ?? 24) / 8);
  const to = Math.max(from + 1, Math.ceil((prefixOf(first, last, width) ?? 32) / 8));
  return `.${format4(first).split(".").slice(Math.min(from, 3), to).join(".")}`;
}
