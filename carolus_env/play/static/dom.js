// Elements built from code, so that text is never read as HTML; notices, and dropped files.

const SVG = "http://www.w3.org/2000/svg";

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

/** A quiet button, with its key. */
export function button(text, key, onclick) {
  const label = key ? { "aria-keyshortcuts": key } : {};
  return el(
    "button",
    { type: "button", class: "quiet", onclick, ...label },
    el("span", {}, text),
    key ? el("kbd", { "aria-hidden": "true" }, key) : null,
  );
}

/** A select of strings; `chosen` where it is among them. */
export function select(attributes, values, chosen) {
  const field = el(
    "select",
    attributes,
    values.map((value) => el("option", { value }, value)),
  );
  if (values.includes(chosen)) field.value = chosen;
  return field;
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

/** Let a file be dropped anywhere on the page. */
export function onDrop(take) {
  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", event.type !== "dragleave");
  };
  for (const kind of ["dragenter", "dragover", "dragleave"]) document.addEventListener(kind, over);
  document.addEventListener("drop", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
}
