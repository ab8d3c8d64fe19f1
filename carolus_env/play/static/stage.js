// The stage: the board as the server's SVG, the tip beside its pieces, and the board in words.

import { el, teamIcon } from "./dom.js";

const wide = matchMedia("(min-width: 1000px)");
const adopted = new Set();

/** The layout of the board that fits the window. */
export function layout() {
  return wide.matches ? "wide" : "narrow";
}

/** Call `redraw` when the layout changes. */
export function onLayout(redraw) {
  wide.addEventListener("change", redraw);
}

export class Stage {
  /** `point(piece)` is called for the piece under the pointer; it returns what to tell of it, or null. */
  constructor(parts, point) {
    this.board = parts.board;
    this.tip = parts.tip;
    this.words = parts.words;
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
    this.words.replaceChildren(...lines.map((line) => el("li", {}, line)));
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
    const [whole, part] = [this.board.parentElement, outline].map((one) => one.getBoundingClientRect());
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
  const round = view.round === 0 ? "Set-up" : `Round ${view.round}`;
  return view.outcome ?? `${round}: ${view.names[view.seat]}`;
}

/** What a region or a decision comes to, for a screen reader. */
export function spoken(about) {
  return about.powers ? `strength ${about.powers}; ${about.result}` : about.result;
}

/** The server's SVG as an element. Its style sheet is adopted, as the page's policy forbids inline styles. */
function drawing(text) {
  const style = /<style>([\s\S]*?)<\/style>/;
  const bare = text.replace(style, "");
  const css = style.exec(text)[1];
  if (!adopted.has(css)) {
    adopted.add(css);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
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

/** The piece of the board that an element belongs to, with its numbers; null: none. */
export function pieceAt(target) {
  const found = target?.closest?.(".carolus .disc, .carolus .token, .carolus .region, .carolus .step, .carolus .court");
  if (!found) return null;
  const own = ["disc", "region", "step", "court"].find((name) => found.classList.contains(name));
  const kind = own ?? (found.closest(".reserve") ? "reserve" : "supply"); // of a token
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
