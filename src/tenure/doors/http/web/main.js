// The page: it finds out who is there, shows the place that the # names, and follows the ledger.

import { get, Problem } from "./api.js";
import { showAddress } from "./address.js";
import { showChanges } from "./changes.js";
import { showClaims } from "./claims.js";
import { showDashboard } from "./dashboard.js";
import { byId, fill, h } from "./dom.js";
import { watchKeys } from "./keys.js";
import { follow, listen, rest, stop } from "./live.js";
import { showNetwork } from "./network.js";
import { showOwner } from "./owner.js";
import { readPlace, to } from "./routes.js";
import { searchFor, showSearch } from "./search.js";
import { known, logIn, onlyNetworks, watchSession, whoAmI } from "./session.js";
import { watchTheme } from "./theme.js";
import { tell } from "./toasts.js";
import { ago } from "./words.js";

const PLACES = {
  networks: (place) => (place.name ? showNetwork(place) : showDashboard(place)),
  addresses: showAddress,
  owners: showOwner,
  search: showSearch,
  claims: showClaims,
  changes: showChanges,
};
const SLOW_MS = 150;
const WAITING_MS = 1000;
const AGE_MS = 15000;

const shown = { page: null, turn: 0, place: null };

/** Show the place that the # names. A page is put in place whole, so that nothing jumps while it loads. */
async function show({ keepFocus = false } = {}) {
  shown.turn += 1;
  const turn = shown.turn;
  const place = readPlace(location.hash);
  if (shown.page && shown.page.moveTo && shown.place === `${place.noun}/${place.name}`) {
    await guarded(() => shown.page.moveTo(place));
    return;
  }
  // A progress bar that shows for a page that comes at once would only flicker.
  const slow = setTimeout(() => { byId("progress").hidden = false; }, SLOW_MS);
  const page = await load(place);
  clearTimeout(slow);
  if (turn !== shown.turn) {
    // The reader went elsewhere while this page was read; its timers must end with it.
    if (page.leave) page.leave();
    return;
  }
  byId("progress").hidden = true;
  if (shown.page && shown.page.leave) shown.page.leave();
  Object.assign(shown, { page, place: `${place.noun}/${place.name}` });
  fill(byId("main"), page.node);
  document.title = page.title ? `${page.title} – Tenure` : "Tenure";
  markPlace(place.noun);
  if (!keepFocus) settle();
  if (page.shown) page.shown();
}

function settle() {
  window.scrollTo(0, 0);
  // The focus goes to the heading, so that a screen reader begins with the new page.
  const heading = byId("main").querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

async function load(place) {
  if (!known()) return welcome();
  try {
    return await (PLACES[place.noun] || lost)(place);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 401) {
      await whoAmI();
      return welcome();
    }
    return failed(error);
  }
}

function lost() {
  return { title: "Nothing here", node: h("div", { class: "empty" },
    h("h1", {}, "Nothing here"), h("p", {}, "No place goes by that name. ", h("a", { href: to.networks() }, "All networks"))) };
}

function failed(error) {
  return { title: "Refused", node: h("div", { class: "empty" },
    h("h1", {}, error.status === 404 ? "Not found" : "That did not work"),
    h("p", {}, error.message),
    h("p", {}, h("a", { href: to.networks() }, "All networks"), " ",
      h("button", { type: "button", onclick: () => show() }, "Try again")),
    error.requestId && h("p", { class: "muted" }, `Request ${error.requestId}`)) };
}

function welcome() {
  return { title: "Log in", node: h("div", { class: "empty" },
    h("h1", {}, "Log in to see the ledger"),
    h("p", {}, "Who holds which address, since when, on whose word."),
    h("button", { type: "button", class: "primary", onclick: () => logIn(begin) }, "Log in with a token")) };
}

function markPlace(noun) {
  for (const each of document.querySelectorAll("[data-place]")) {
    if (each.dataset.place === noun) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

/** Show everything afresh: another may be there now. */
async function begin() {
  shown.place = null;
  if (known()) {
    await follow(); // first, so that nothing happens unseen between what a page reads and what it is told
    countWaiting();
  } else {
    stop();
  }
  await show();
}

async function countWaiting() {
  if (onlyNetworks()) return;
  try {
    const { items } = await get("/claims");
    const badge = byId("waiting");
    badge.hidden = items.length === 0;
    fill(badge, items.length);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}

async function guarded(act) {
  try {
    await act();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    tell(error.message, "warning");
  }
}

/** What was just now is so no longer. */
function age() {
  for (const each of document.querySelectorAll("time[datetime]")) fill(each, ago(each.dateTime));
}

function atMostEvery(pause, act) {
  let timer = null;
  return () => { timer = timer || setTimeout(() => { timer = null; act(); }, pause); };
}

async function start() {
  watchTheme();
  watchSession(begin);
  watchKeys();
  rest();
  searchFor();
  window.addEventListener("hashchange", () => show());
  // Handlers of clicks are not awaited; an error of the server in one of them is shown as a message.
  window.addEventListener("unhandledrejection", (event) => {
    const { reason } = event;
    if (reason instanceof Problem) {
      event.preventDefault();
      tell(reason.message, "warning");
    }
  });
  const recount = atMostEvery(WAITING_MS, countWaiting);
  listen((changes) => {
    // While claims are counted in the badge, any change may have served one of them.
    if (changes.some((change) => ["wait", "leave"].includes(change.verb)) || !byId("waiting").hidden) recount();
    if (shown.page && shown.page.update) guarded(() => shown.page.update(changes));
  });
  setInterval(age, AGE_MS);
  await guarded(whoAmI);
  await begin();
}

start();
