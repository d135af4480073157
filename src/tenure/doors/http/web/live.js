// The ledger's log, followed: by server-sent events, or by asking again and again where those do not come through.
// One tab of a browser does so for all of them (tabs.js); the others take what it tells, and read what they missed.
// Where tabs cannot share a stream, none has one: six streams take all connections that a browser opens to a server.

import { get, Problem } from "./api.js";
import { byId, fill } from "./dom.js";
import { canShare, join, leads, leave, tellTabs } from "./tabs.js";

const ASK_EVERY_MS = 3000;
const PAGE = 500;
// Listeners read and draw anew, so a burst of changes is handed on as one.
const GATHER_MS = 200;
const SILENT_MS = 5000;
const LOOK_MS = 5000;
// A short look at another tab changes nothing.
const HIDDEN_MS = 10000;

const listeners = new Set();
const state = {
  last: null, source: null, timer: null, gathered: [], flush: null, failing: null, paused: false,
  joined: false, turn: 0, wanted: 0, reading: false, shown: ["stale", "off"],
};

/** Tell a listener of every change from now on, several at once; none at all means: look again. */
export function listen(listener) {
  listeners.add(listener);
}

/** Begin to follow the log from its newest entry. */
export async function follow() {
  stop();
  const { turn } = state;
  try {
    state.last = (await get("/changes/last")).last;
    // stop() or another follow() came while the answer was on its way, so this call ends.
    if (turn !== state.turn) return;
  } catch (error) {
    if (turn !== state.turn) return;
    if (error.status === 403) {
      lookAgain();
      return;
    }
    if (error.status === 401) {
      loggedOut();
      return;
    }
    show("stale", "offline");
    state.timer = setTimeout(follow, ASK_EVERY_MS);
    return;
  }
  state.joined = true;
  if (!canShare()) {
    await poll();
    return;
  }
  join({ hear, lead: connect });
  tellTabs({ kind: "hello" }); // whoever leads says how things stand, and how far the log was read
}

/** Take what another tab tells. */
function hear(message) {
  if (message.kind === "hello") {
    if (leads()) tellState();
  } else if (!leads()) {
    if (message.kind === "state") show(...message.shown);
    if (message.after > state.last) catchUp(message.last);
    else if (message.changes) take(message.changes);
  }
}

function tellState() {
  tellTabs({ kind: "state", shown: state.shown, after: state.last, last: state.last });
}

/** Read what the leading tab has seen and this one has not: it came here later, or the leader before did not tell it. */
async function catchUp(last) {
  state.wanted = Math.max(state.wanted, last);
  // The reading that is under way goes on up to `wanted`.
  if (state.reading) return;
  state.reading = true;
  const { turn } = state;
  try {
    let more = true;
    while (more && turn === state.turn && state.last < state.wanted) more = (await readPage()) > 0;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 410 && turn === state.turn) {
      await follow();
      hand();
    } // else the next change that is told shows the gap again
  } finally {
    state.reading = false;
  }
}

/** Take the next entries of the log; return how many there were. */
async function readPage() {
  const page = await get("/changes", { after: state.last, limit: PAGE });
  take(page.items);
  state.last = Math.max(state.last, page.next);
  return page.items.length;
}

/** No longer follow the log. */
export function stop() {
  leave();
  if (state.source) state.source.close();
  clearTimeout(state.timer);
  clearTimeout(state.failing);
  Object.assign(state, { source: null, timer: null, failing: null, paused: false, joined: false, wanted: 0 });
  // A call that still waits for an answer sees another turn and ends.
  state.turn += 1;
  show("stale", "off");
}

/** A page that nobody sees leads no others, and browsers slow it down: it leaves the stream to one that is seen. */
export function rest() {
  let timer = null;
  document.addEventListener("visibilitychange", async () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(pause, HIDDEN_MS);
    } else if (state.paused) {
      await follow();
      hand();
    }
  });
}

function pause() {
  if (!state.joined && !state.timer) return;
  stop();
  state.paused = true;
}

function connect() {
  const source = new EventSource(`/api/v1/events?after=${state.last}`);
  state.source = source;
  source.addEventListener("open", () => {
    clearTimeout(state.failing);
    state.failing = null;
    show("live", "live");
  });
  source.addEventListener("change", (event) => take([JSON.parse(event.data)]));
  source.addEventListener("expired", follow);
  source.addEventListener("error", () => {
    // A browser gives up where the answer is no stream (a proxy's page, a refusal); else it connects again by itself.
    if (source.readyState === EventSource.CLOSED) poll();
    else waitForReturn();
  });
}

/** The browser connects again by itself; only if that takes long, the page says so and asks instead. */
function waitForReturn() {
  show("stale", "reconnecting");
  state.failing = state.failing || setTimeout(poll, SILENT_MS);
}

async function poll() {
  if (state.source) state.source.close();
  clearTimeout(state.failing);
  Object.assign(state, { source: null, failing: null });
  const { turn } = state;
  try {
    while ((await readPage()) === PAGE && turn === state.turn);
    if (turn !== state.turn) return;
    show("polling", "polling");
    // The stream is tried again after each reading: what was in its way may be gone.
    state.timer = setTimeout(canShare() ? connect : poll, ASK_EVERY_MS);
    return;
  } catch (error) {
    if (turn !== state.turn) return;
    if (error.status === 410) {
      await follow();
      return;
    }
    if (error.status === 401) {
      loggedOut();
      return;
    }
    show("stale", "offline");
  }
  state.timer = setTimeout(poll, ASK_EVERY_MS);
}

/** A login that is over does not come back by asking: look again when the page is looked at again. */
function loggedOut() {
  stop();
  state.paused = true;
  show("stale", "logged out");
}

/** Who may not read the log looks at what he may see, again and again. */
function lookAgain() {
  show("polling", "polling");
  state.timer = setTimeout(() => {
    hand();
    lookAgain();
  }, LOOK_MS);
}

function take(changes) {
  // An entry may come twice: by the stream, by a reading, and from another tab.
  const fresh = changes.filter((change) => change.seq > state.last);
  if (!fresh.length) return;
  const after = state.last;
  state.last = fresh[fresh.length - 1].seq;
  if (leads()) tellTabs({ kind: "changes", changes: fresh, after, last: state.last });
  state.gathered.push(...fresh);
  state.flush = state.flush || setTimeout(hand, GATHER_MS);
}

function hand() {
  const changes = state.gathered;
  Object.assign(state, { gathered: [], flush: null });
  for (const listener of [...listeners]) listener(changes);
}

const MEANS = {
  live: "Live: every change of the ledger shows here at once",
  polling: "Asking every few seconds: events do not come through, or tabs cannot share a stream of them on plain HTTP",
  stale: "Not following: what is shown may be old",
};

function show(kind, text) {
  state.shown = [kind, text];
  if (leads()) tellState();
  const badge = byId("live");
  badge.className = `badge ${kind}`;
  badge.title = MEANS[kind];
  fill(badge, text);
}
