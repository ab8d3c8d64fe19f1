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
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A new SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "value") element.value = value;
  else if (value === true) element.setAttribute(name, "");
  else element.setAttribute(name, String(value));
}

let icons = null;

/** Colours and shapes of clans and teams, from the server. */
export function setIcons(given) {
  icons = given;
}

export function teamLook(team) {
  return icons.teams[team];
}

/** The names of the clans, in their order. */
export function clanNames() {
  return icons.clans.map((clan) => clan.name);
}

/** A clan's shape, by its name. */
export function clanIcon(name) {
  return icon(icons.clans.find((clan) => clan.name === name));
}

/** A team's castle. */
export function teamIcon(team) {
  return icon(icons.teams[team]);
}

function icon({ path, fill, line }) {
  return svg(
    "svg",
    { class: "icon", viewBox: "-13 -13 26 26", "aria-hidden": "true" },
    svg("path", { d: path, fill, stroke: line, "stroke-width": "1.5", "stroke-linejoin": "round" }),
  );
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
