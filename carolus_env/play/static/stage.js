// The stage: the board as the server's SVG, the tip beside its pieces, and the board in words.

import { el, teamIcon } from "./dom.js";

const wide = matchMedia("(min-width: 1000px)");
const adopted = new Set();

/** The query that asks the server for the layout that fits the window. */
export function layout() {
  return `layout=${wide.matches ? "wide" : "narrow"}`;
}

/** Call `redraw` when the layout changes. */
export function onLayout(redraw) {
  wide.addEventListener("change", redraw);
}

export class Stage {
  /** `point(piece)` is called for the piece under the pointer; it returns what to tell of it, or null. */
  constructor(point) {
    this.board = el("div", { class: "board" });
    this.tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = el("section", { class: "stage", "aria-label": "Board" }, this.board, this.tip);
    this.list = el("ul", {});
    this.words = el("details", { class: "card words" }, el("summary", {}, "The board in words"), this.list);
    this.board.addEventListener("pointerover", (event) => {
      const piece = pieceAt(event.target);
      const other = event.target.closest("[data-tip]");
      const about = point(piece);
      if (about) this.tell(piece.element, about);
      else this.tell(other, other && !["region", "step"].includes(piece?.kind) ? { result: other.dataset.tip } : null);
    });
    this.board.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.tell(null, null));
  }

  /** Show a position. */
  show(view) {
    this.tell(null, null);
    const lines = view.words.map((text, k) => (k < view.regions.length ? `${text}. ${spoken(view.regions[k])}` : text));
    this.list.replaceChildren(...lines.map((line) => el("li", {}, line)));
    this.board.replaceChildren(drawing(view.svg));
  }

  /** The piece of the board that a paladin goes to: 0 is the court, 1 + k the region k. */
  destination(to) {
    return pieceAt(this.board.querySelector(to === 0 ? ".court.open" : `.region[data-region="${to - 1}"]`));
  }

  /** The tip beside an element: `{territories, strengths, result}` of a region, or `{result}`; null: no tip. */
  tell(element, about) {
    this.aimed?.classList.remove("aimed");
    this.aimed = about ? element : null;
    this.tip.hidden = !about;
    if (!about) return;
    element.classList.add("aimed");
    const strengths = (about.strengths ?? []).map((number, team) => el("span", {}, teamIcon(team), String(number)));
    this.tip.replaceChildren(
      el("p", {}, about.territories && el("b", {}, about.territories), strengths),
      el("p", {}, about.result),
    );
    const outline = element.matches(".region, .court") ? element.querySelector("path, rect") : element;
    const [whole, part] = [this.element, outline].map((one) => one.getBoundingClientRect());
    const half = this.tip.offsetWidth / 2;
    const middle = (part.left + part.right) / 2 - whole.left;
    const isAbove = (part.top + part.bottom) / 2 > (whole.top + whole.bottom) / 2;
    this.tip.style.left = `${Math.max(half, Math.min(middle, whole.width - half))}px`;
    const top = isAbove ? part.top - this.tip.offsetHeight - 6 : part.bottom + 6;
    this.tip.style.top = `${top - whole.top}px`;
  }
}

/** The heading of a game: whose turn it is, or the outcome. */
export function heading(view) {
  if (view.outcome) return view.outcome;
  const name = view.names[view.seat];
  return view.round === 0 ? `Set-up: ${name}` : `Round ${view.round}: ${name}`;
}

/** What a region or a decision comes to, for a screen reader. */
export function spoken(about) {
  return about.powers ? `strength ${about.powers}; ${about.result}` : about.result;
}

/** The server's SVG as an element. Its style sheet is adopted, as the page's policy forbids inline styles. */
function drawing(text) {
  const bare = text.replace(/<style>([\s\S]*?)<\/style>/g, (_, css) => {
    adopt(css);
    return "";
  });
  const root = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (root.localName !== "svg") throw new Error("the drawing cannot be read");
  root.setAttribute("aria-label", root.querySelector("title").textContent);
  // The page shows its own tips.
  for (const title of root.querySelectorAll("title")) {
    if (title.parentElement !== root) title.parentElement.setAttribute("data-tip", title.textContent);
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

/** The piece of the board that an element belongs to, with its numbers; null: none. */
export function pieceAt(target) {
  const found = target?.closest?.(".carolus .disc, .carolus .token, .carolus .region, .carolus .step, .carolus .court");
  if (!found) return null;
  const kind = found.classList.contains("token")
    ? found.closest(".reserve")
      ? "reserve"
      : "supply"
    : [...found.classList].find((name) => ["disc", "region", "step", "court"].includes(name));
  const number = (text) => (text === undefined ? null : Number(text));
  return {
    element: found,
    kind,
    open: found.classList.contains("open"),
    action: number(found.dataset.action),
    clan: number(found.dataset.clan),
    region: number(found.dataset.region),
    territories: found.dataset.territories ?? "",
  };
}
