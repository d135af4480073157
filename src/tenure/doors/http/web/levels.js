// How far a map is zoomed: into how many squares a range is cut, and which range lies around another.

const MOST = { 32: 1024n, 128: 256n };
// Bits of a number as it is written: an octet of IPv4, a hexadecimal digit of IPv6.
const STEP = { 32: 8, 128: 4 };

/** Tell how many addresses one square of a range has: one unit, or else a block that ends with a written number. */
export function squareOf({ first, last, width, size }) {
  const all = last - first + 1n;
  if (all / size <= MOST[width]) return size;
  let bits = 0;
  while (all >> BigInt(bits) > MOST[width]) bits += STEP[width];
  const square = 1n << BigInt(bits);
  return square > size ? square : size;
}

/** The ranges that lead from a whole block to an address, each a square of the one before; the last has units. */
export function waysTo(block, value) {
  const ways = [block];
  for (;;) {
    const range = ways[ways.length - 1];
    const square = squareOf(range);
    if (square === block.size) return ways;
    const first = range.first + ((value - range.first) / square) * square;
    ways.push({ ...block, first, last: first + square - 1n });
  }
}

/** The range around another: the smallest on the way to it that is larger. */
export function around(block, range) {
  const larger = waysTo(block, range.first).filter((each) => each.last - each.first > range.last - range.first);
  return larger[larger.length - 1] || block;
}
