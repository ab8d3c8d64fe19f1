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

let looks = null;

/** Colours and shapes of clans and teams, from the server. */
export function setLooks(given) {
  looks = given;
}

export function teamLook(team) {
  return looks.teams[team];
}

/** A clan by its name or its number: `{number, name, path, fill, line}`. */
export function clanLook(clan) {
  const number = looks.clans.findIndex((look, k) => k === clan || look.name === clan);
  return { number, ...looks.clans[number] };
}

export function clanNames() {
  return looks.clans.map((look) => look.name);
}

export function crownLook() {
  return looks.crown;
}

/** A clan's shape, by its name. */
export function clanIcon(name) {
  const look = clanLook(name);
  return shape(look.path, look.fill, look.line);
}

/** A team's castle. */
export function teamIcon(team) {
  const look = looks.teams[team];
  return shape(look.path, look.fill, look.line);
}

function shape(path, fill, line) {
  return svg(
    "svg",
    { class: "icon", viewBox: "-13 -13 26 26", "aria-hidden": "true" },
    svg("path", { d: path, fill, stroke: line, "stroke-width": "1.5", "stroke-linejoin": "round" }),
  );
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
