// Places of this page: what stands behind the # says where we are, so that every place can be kept and sent on.

import { query } from "./api.js";

/** Write the place of something. */
export const to = {
  networks: () => "#/",
  network: (name, said = {}) => `#/networks/${encodeURIComponent(name)}${query(said)}`,
  address: (address, network = null) => `#/addresses/${encodeURIComponent(address)}${query({ network })}`,
  owner: (owner) => `#/owners/${encodeURIComponent(owner)}`,
  search: (text) => `#/search${query({ text })}`,
  claims: () => "#/claims",
  changes: () => "#/changes",
};

/** Read a place as { noun, name, said }. */
export function readPlace(hash) {
  const [path, written] = hash.replace(/^#\/?/, "").split("?");
  const [noun, ...rest] = path.split("/");
  return { noun: noun || "networks", name: decoded(rest.join("/")), said: new URLSearchParams(written || "") };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
