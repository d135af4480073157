// Dialogues: a form whose fields show what the server says of them, and a question that is answered by yes or no.

import { newKey, Problem } from "./api.js";
import { fill, h } from "./dom.js";

let forms = 0;

/**
 * Open a form. `send` gets the fields' values and a key under which the same values may be sent again;
 * what it refuses is shown at the field it is about. Fields that are empty are null.
 */
export function openForm({ title, intro, fields, submit, send, danger = false, explain = () => null }) {
  forms += 1;
  const parts = fields.map((field) => makeField(field, `form${forms}-${field.name}`));
  const fault = h("p", { class: "fault", role: "alert" });
  const button = h("button", { type: "submit", class: danger ? "danger" : "primary" }, submit);
  const dialog = h("dialog", { "aria-labelledby": `form${forms}-title` });
  const form = h("form", { novalidate: true },
    h("h2", { id: `form${forms}-title` }, title),
    intro && h("p", { class: "muted" }, intro),
    parts.map((part) => part.row),
    fault,
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button));
  const attempt = { said: null, key: null };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clear(parts, fault);
    if (!complete(parts)) return;
    const values = Object.fromEntries(parts.map((part) => [part.field.name, part.read()]));
    // A second click must not send the form twice.
    button.disabled = true;
    try {
      await send(values, keyFor(attempt, values));
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(parts, fault, explain(error) || { field: error.field, text: error.message });
    } finally {
      button.disabled = false;
    }
  });
  dialog.append(form);
  present(dialog);
  return dialog;
}

/** Ask a question before something is done that matters. */
export function confirm({ title, facts = [], submit, send, danger = true, fields = [], intro = null }) {
  const dialog = openForm({ title, intro, fields, submit, send, danger });
  if (facts.length) {
    const list = h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    dialog.querySelector("h2").after(list);
  }
  return dialog;
}

/** Show a dialogue; when it closes, it is gone and the focus is back where it was. */
export function present(dialog) {
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before && before.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  const first = dialog.querySelector("input:not([type=hidden]), select, textarea, button.primary, button.danger");
  if (first) first.focus();
}

/** The same values sent again are the same request; other values are another. */
function keyFor(attempt, values) {
  const said = JSON.stringify(values);
  if (attempt.said !== said) Object.assign(attempt, { said, key: newKey() });
  return attempt.key;
}

function makeField(field, id) {
  const told = h("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  const hint = field.hint && h("p", { class: "hint", id: `${id}-hint` }, field.hint);
  const control = makeControl(field, {
    id, name: field.name, required: field.required, "aria-describedby": `${id}-fault${hint ? ` ${id}-hint` : ""}`,
  });
  const label = h("label", { for: id }, field.label, field.required ? null : h("span", { class: "muted" }, " (optional)"));
  const row = field.type === "checkbox"
    ? h("div", { class: "field check" }, control, h("label", { for: id }, field.label), hint, told)
    : h("div", { class: "field" }, label, control, hint, told);
  return { field, row, control, told, read: () => readControl(field, control) };
}

function makeControl(field, common) {
  if (field.options) {
    const options = field.options.map(([value, text]) => h("option", { value, selected: value === field.value }, text));
    return h("select", common, options);
  }
  if (field.type === "checkbox") return h("input", { ...common, type: "checkbox", checked: field.value });
  return h("input", {
    ...common, type: field.type || "text", value: field.value || "", placeholder: field.placeholder,
    autocomplete: field.autocomplete || "off", spellcheck: "false", inputmode: field.inputmode,
    readonly: field.readonly,
  });
}

function readControl(field, control) {
  if (field.type === "checkbox") return control.checked;
  const text = control.value.trim();
  if (text === "") return null;
  return field.read ? field.read(text) : text;
}

function clear(parts, fault) {
  fill(fault);
  for (const part of parts) {
    fill(part.told);
    part.control.removeAttribute("aria-invalid");
  }
}

function complete(parts) {
  const missing = parts.filter((part) => part.field.required && !part.control.value.trim());
  for (const part of missing) accuse(part, `${part.field.label} is needed.`);
  if (missing.length) missing[0].control.focus();
  return missing.length === 0;
}

function accuse(part, text) {
  fill(part.told, text);
  part.control.setAttribute("aria-invalid", "true");
}

function showProblem(parts, fault, { field, text }) {
  const part = parts.find(({ field: known }) => field && (known.name === field || (known.also || []).includes(field)));
  if (!part) {
    fill(fault, text);
    return;
  }
  accuse(part, text.replace(`${field}: `, ""));
  part.control.focus();
}

/** Read labels as they are written in one line: team=shop, rack=4. */
export function readLabels(text) {
  const pairs = text.split(",").map((pair) => pair.trim()).filter(Boolean);
  return Object.fromEntries(pairs.map((pair) => {
    const [name, ...rest] = pair.split("=");
    return [name.trim(), rest.join("=").trim()];
  }));
}

/** Leave out what was not said. */
export function said(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
