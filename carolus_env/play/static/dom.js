// Elements from templates and from code, so that text is never read as HTML; and notices.

const SVG = "http://www.w3.org/2000/svg";

/**
 * A copy of a template of index.html: its parts by their names, and `all` of it.
 * @returns {Record<string, any>}
 */
export function copy(template) {
  const all = /** @type {HTMLTemplateElement} */ (document.getElementById(template)).content.cloneNode(true);
  const parts = /** @type {DocumentFragment} */ (all).querySelectorAll("[data-part]");
  return {
    all,
    ...Object.fromEntries(Array.from(parts, (/** @type {HTMLElement} */ part) => [part.dataset.part, part])),
  };
}

/** A new element: `el("button", {class: "x", onclick: f}, "text", child)`. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** A new SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  const isGiven = (value) => value !== null && value !== undefined && value !== false;
  for (const [name, value] of Object.entries(attributes).filter(([, value]) => isGiven(value))) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(isGiven));
  return element;
}

/** Names, colours and shapes of clans and teams, from the server. */
export const looks = { clans: [], teams: [] };

/** A clan's shape, by its name. */
export function clanIcon(name) {
  return icon(looks.clans.find((clan) => clan.name === name));
}

/** A team's castle. */
export function teamIcon(team) {
  return icon(looks.teams[team]);
}

function icon({ path, fill, line }) {
  const drawn = svg("path", { d: path, fill, stroke: line, "stroke-width": "1.5", "stroke-linejoin": "round" });
  return svg("svg", { class: "icon", viewBox: "-13 -13 26 26", "aria-hidden": "true" }, drawn);
}

/** Fill a select with strings; `chosen` is selected where it is among them, and `change(value)` called later. */
export function fill(select, values, chosen, change = (_) => {}) {
  select.append(...values.map((value) => el("option", { value }, value)));
  if (values.includes(chosen)) select.value = chosen;
  select.onchange = () => change(select.value);
}

/** A share of the win as a percentage. */
export function percent(share) {
  return `${(100 * share).toFixed(share < 0.095 ? 1 : 0)}%`;
}

/** Announce a text to screen readers. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

let hiding = 0;

/** Show a notice for a few seconds. */
export function notice(text) {
  const place = document.getElementById("notice");
  clearTimeout(hiding);
  place.textContent = text;
  place.classList.toggle("shown", text !== "");
  if (text) hiding = setTimeout(() => notice(""), 8000);
}

/** Whether a key press belongs to a form field, a dialog or the browser. */
export function isTyping(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const kind = event.target.tagName;
  const typed = kind === "INPUT" && !["radio", "checkbox", "range", "button"].includes(event.target.type);
  return typed || kind === "SELECT" || kind === "TEXTAREA" || document.querySelector("dialog[open]") !== null;
}
