// The board, drawn by the server as SVG.

const wide = matchMedia("(min-width: 1000px)");
const narrow = matchMedia("(max-width: 640px)");
const adopted = new Set();

/** The query that asks the server for the layout that fits the window and for the chosen theme. */
export function look() {
  return `layout=${wide.matches ? "wide" : narrow.matches ? "narrow" : "tall"}&theme=${document.documentElement.dataset.theme}`;
}

/** Call `redraw` when layout or theme change. */
export function onLook(redraw) {
  wide.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  document.addEventListener("theme", redraw);
}

/** The server's SVG as an element. Its style sheet is adopted, as the page's policy forbids inline styles. */
export function drawing(text) {
  const bare = text.replace(/<style>([^]*?)<\/style>/g, (_, css) => {
    adopt(css);
    return "";
  });
  const root = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (root.localName !== "svg") throw new Error("the drawing cannot be read");
  root.setAttribute("aria-label", root.querySelector("title").textContent);
  for (const title of root.querySelectorAll("title")) {
    if (title.parentNode !== root) title.parentNode.dataset.tip = title.textContent; // the page shows its own tips
    title.remove();
  }
  return document.adoptNode(root);
}

function adopt(css) {
  if (adopted.has(css)) return;
  adopted.add(css);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

/** Show a drawing in a place. */
export function show(place, text) {
  place.replaceChildren(drawing(text));
}

/** The piece of the board that an element belongs to, with its numbers; null: none. */
export function pieceAt(target) {
  const found = target?.closest?.(".carolus .disc, .carolus .token, .carolus .region, .carolus .step, .carolus .court");
  if (!found) return null;
  const kind = found.classList.contains("token")
    ? found.closest(".reserve") ? "reserve" : "supply"
    : [...found.classList].find((name) => ["disc", "region", "step", "court"].includes(name));
  const seat = found.dataset.seat ?? found.closest("[data-seat]")?.dataset.seat;
  const number = (text) => (text === undefined ? null : Number(text));
  return {
    element: found,
    kind,
    open: found.classList.contains("open"),
    action: number(found.dataset.action),
    seat: number(seat),
    clan: number(found.dataset.clan),
    region: number(found.dataset.region),
    territories: found.dataset.territories ?? "",
  };
}
