// What an address can be: the word, the letter that stands for it, and how it is told from a cell of the map.

export const STATES = {
  held: { letter: "H", text: "held" },
  pending: { letter: "P", text: "pending (until confirmed)" },
  draining: { letter: "D", text: "draining" },
  cooling: { letter: "C", text: "cooling (released a while ago)" },
  reserved: { letter: "R", text: "reserved" },
  kept: { letter: "K", text: "kept back" },
  waiting: { letter: "W", text: "pre-allocated" },
  elsewhere: { letter: "E", text: "held in another network of the space" },
  retired: { letter: "T", text: "retired: no longer handed out" },
  free: { letter: "", text: "free" },
  outside: { letter: "·", text: "free, in no pool: only by naming it" },
};

/** Tell what the one address of a cell is. */
export function stateOf(cell) {
  return cell.state in STATES ? cell.state : "outside";
}
