// One stream for all tabs of a browser, which opens only six connections to a server: the tab that has a lock leads, reads
// the stream and tells the others. When it is closed or rests, the browser gives the lock to the next tab. Browsers have locks
// only over HTTPS and on loopback; elsewhere tabs cannot agree on a leader, so no tab leads and each asks for itself.

const NAME = "tenure-events";
const tab = { channel: null, leave: null, leads: false };

/** Return whether the tabs of this browser can share a stream. */
export function canShare() {
  return Boolean(navigator.locks && window.BroadcastChannel);
}

/** Join the other tabs: `hear` takes what they tell, `lead` is called when this tab is the one to read the stream. */
export function join({ hear, lead }) {
  leave();
  const channel = new BroadcastChannel(NAME);
  channel.addEventListener("message", (event) => hear(event.data));
  tab.channel = channel;
  take(lead);
}

/** Wait for the lock, and hold it until this tab leaves; a tab that leaves before it has the lock no longer wants it. */
function take(lead) {
  const waiting = new AbortController();
  const left = new Promise((resolve) => {
    tab.leave = () => {
      waiting.abort();
      resolve();
    };
  });
  const led = navigator.locks.request(NAME, { signal: waiting.signal }, () => {
    // The lock may be given in the very moment in which the tab leaves.
    if (waiting.signal.aborted) return null;
    tab.leads = true;
    lead();
    return left;
  });
  led.catch((error) => {
    // leave() aborts a request that still waits for the lock.
    if (error.name !== "AbortError") throw error;
  });
}

/** Leave the others; if this tab led, the next one does. */
export function leave() {
  if (tab.leave) tab.leave();
  if (tab.channel) tab.channel.close();
  Object.assign(tab, { channel: null, leave: null, leads: false });
}

/** Tell whether this tab is the one that reads the stream. */
export function leads() {
  return tab.leads;
}

/** Tell the other tabs something. */
export function tellTabs(message) {
  if (tab.channel) tab.channel.postMessage(message);
}
