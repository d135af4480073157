// Who we are: asked once, changed by login and logout; what we may do, and why not where we may not.

import { get, post, useCsrf, Problem } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { openForm } from "./forms.js";
import { tell } from "./toasts.js";

const state = { self: null };

/** Ask the server who we are; null where it knows nobody. */
export async function whoAmI() {
  try {
    state.self = await get("/self");
  } catch (error) {
    if (!(error instanceof Problem) || ![401, 403].includes(error.status)) throw error;
    state.self = null;
  }
  if (state.self && !state.self.read && !state.self.admin && state.self.networks.length === 0) state.self = null;
  useCsrf(state.self && state.self.csrf);
  showSession();
  return state.self;
}

/** Tell whether anybody is logged in, or everybody may read. */
export function known() {
  return state.self !== null;
}

/** Name the networks that are all we may see; null where we may see everything. */
export function onlyNetworks() {
  const { self } = state;
  return !self || self.read || self.admin || self.networks.includes("*") ? null : self.networks;
}

/** Tell why something may not be done: null where it may. */
function hindrance(need, network = null) {
  const self = state.self;
  if (!self) return "Log in to do this.";
  const networks = self.networks || [];
  const allowed = self.admin || (need === "allocate" && (networks.includes("*") || networks.includes(network)));
  if (allowed) return null;
  const scope = need === "allocate" && network ? `allocate on network “${network}”` : need;
  const who = self.anonymous ? "Who is not logged in" : `“${self.name}”`;
  return `${who} may not do this: it needs the scope ${scope}.`;
}

/** Make a button for something that not everybody may do; where it is forbidden, it says why. */
export function actionButton(text, { need, network, act, ...rest }) {
  const why = hindrance(need, network);
  if (!why) return h("button", { type: "button", onclick: act, ...rest }, text);
  // Not `disabled`: such a button takes neither focus nor click, and could not say why.
  return h("button", {
    ...rest, type: "button", "aria-disabled": "true", title: why, onclick: () => tell(why, "warning"),
  }, text);
}

function showSession() {
  const button = byId("session");
  const self = state.self;
  const out = self && !self.anonymous && self.csrf;
  fill(button, out ? ["Log out", h("span", { class: "who" }, ` ${self.name}`)] : "Log in");
  button.dataset.means = out ? "logout" : "login";
}

/** Let the button in the header log in and out; whatever is shown is then shown afresh. */
export function watchSession(changed) {
  byId("session").addEventListener("click", async (event) => {
    if (event.currentTarget.dataset.means === "logout") {
      await post("/logout", {});
      tell("Logged out.");
      await whoAmI();
      changed();
    } else {
      logIn(changed);
    }
  });
}

/** Ask for a token, and log in with it. */
export function logIn(changed) {
  openForm({
    title: "Log in",
    intro: "A token begins with tnr_. The server shows one at its first start; “tenure token add” makes more.",
    submit: "Log in",
    fields: [{ name: "token", label: "Token", type: "password", required: true, autocomplete: "current-password" }],
    send: async ({ token }) => {
      await post("/login", { token: token.trim() });
      const self = await whoAmI();
      if (!self) throw new Problem(401, { detail: "The browser did not keep the cookie.", field: "token" });
      tell(`Logged in as ${self.name}.`);
      changed();
    },
    explain: (problem) => (problem.status === 401
      ? { field: "token", text: "This token is not known, or no longer good." } : null),
  });
}
