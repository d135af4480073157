// Elements from plain values. Text only ever becomes text: nothing here can make markup of it.

const FOCUSABLE = "a[href], button, input, select";
const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `on…` are listeners, `class` and the rest attributes; null, false and undefined are left out. */
export function h(tag, given = {}, ...children) {
  return furnish(document.createElement(tag), given, children);
}

/** Make an element of a drawing. */
export function svg(tag, given = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), given, children);
}

function furnish(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    // A property, because the attribute is only what an input begins with, and a select has none.
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Put other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Put other children into an element unless they are the same; whoever had the focus in it keeps his place. */
export function renew(element, ...children) {
  const fresh = element.cloneNode(false);
  append(fresh, children);
  // Equal nodes stay: replacing them would drop a selection, and screen readers would read them once more.
  if (fresh.isEqualNode(element)) return;
  const place = [...element.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  element.replaceChildren(...fresh.childNodes);
  const found = place < 0 ? null : element.querySelectorAll(FOCUSABLE)[place];
  if (found) found.focus({ preventScroll: true });
}

/** Find the one element of an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Make a link to a place of this page. */
export function link(place, ...children) {
  return h("a", { href: place }, ...children);
}
