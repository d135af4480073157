// Asking the server: JSON in and out, problems as errors, the CSRF token where a cookie speaks for us.

const API = "/api/v1";
const session = { csrf: null };

/** What the server refused, and why; `field` names what was wrong, where one thing was. */
export class Problem extends Error {
  constructor(status, said) {
    super(said.detail || said.title || `the server answered ${status}`);
    this.status = status;
    this.code = said.code || "unknown";
    this.field = said.field || null;
    this.data = said.data || {};
    this.requestId = said.request_id || null;
  }
}

/** Write a path; every piece that is put in is one segment, whatever is in it. */
export function path(strings, ...pieces) {
  return strings.reduce((sum, text, index) => sum + encodeURIComponent(pieces[index - 1]) + text);
}

/** Tell which token proves that a change was asked for by this page. */
export function useCsrf(token) {
  session.csrf = token || null;
}

/** Make a key under which a request may be repeated and still takes effect once. */
export function newKey() {
  // Not crypto.randomUUID: browsers have it only over HTTPS and on loopback.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Write a query from what is said; what is null or empty is left out. */
export function query(said) {
  const pairs = Object.entries(said).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const flat = pairs.flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  return flat.length ? `?${new URLSearchParams(flat)}` : "";
}

/** Read something. */
export function get(where, said = {}, options = {}) {
  return ask("GET", where + query(said), { signal: options.signal });
}

/** Ask for a change. */
export function post(where, body, { key = newKey() } = {}) {
  return ask("POST", where, { body, headers: { "idempotency-key": key } });
}

/** Take something away, whatever it is by now. */
export function remove(where) {
  return ask("DELETE", where, { headers: { "if-match": "*" } });
}

async function ask(method, where, { body, headers = {}, signal } = {}) {
  const head = { accept: "application/json", ...headers };
  if (body !== undefined) head["content-type"] = "application/json";
  if (method !== "GET" && session.csrf) head["x-csrf-token"] = session.csrf;
  const answer = await reach(API + where, {
    method, headers: head, signal, credentials: "same-origin",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  const said = readable(text);
  if (!answer.ok) throw new Problem(answer.status, said || {});
  return said;
}

async function reach(where, options) {
  try {
    return await fetch(where, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "unreachable", detail: "The server cannot be reached; nothing is known of what it did." });
  }
}

function readable(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    // A proxy may answer with a page of its own; then the status says all that is known.
    return null;
  }
}
