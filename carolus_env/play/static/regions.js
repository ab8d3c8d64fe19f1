// The state of regions: a tip beside the one that is pointed at, and the whole board in words.

import { clanIcon, el, teamIcon } from "./dom.js";

/** A tip beside a piece of the board. */
export class Tip {
  constructor(stage) {
    this.stage = stage;
    this.place = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    stage.append(this.place);
  }

  /** `about`: `{territories, strengths, result}` of a region, or `{result}`; null: no tip. */
  show(piece, about) {
    if (about && this.about === about) return;
    this.about = about;
    this.aimed?.classList.remove("aimed");
    this.aimed = about ? piece : null;
    this.place.hidden = !about;
    if (!about) return;
    piece.classList.add("aimed");
    const strengths = (about.strengths ?? []).map((number, team) => el("span", {}, teamIcon(team), String(number)));
    this.place.replaceChildren(el("p", {}, about.territories && el("b", {}, about.territories), strengths), ...sums(about), el("p", {}, about.result));
    const outline = piece.matches(".region, .court") ? piece.querySelector("path, rect") : piece;
    const [whole, part] = [this.stage, outline].map((element) => element.getBoundingClientRect());
    const middle = (part.left + part.right) / 2 - whole.left;
    const half = this.place.offsetWidth / 2;
    const above = (part.top + part.bottom) / 2 > (whole.top + whole.bottom) / 2;
    this.place.style.left = `${Math.max(half, Math.min(middle, whole.width - half))}px`;
    this.place.style.top = `${above ? part.top - whole.top - this.place.offsetHeight - 6 : part.bottom - whole.top + 6}px`;
  }

  get isHidden() {
    return this.place.hidden;
  }

  hide() {
    this.show(null, null);
  }
}

/** How the strengths come about: a line for each team that has any. */
function sums({ reckoning = [] }) {
  return reckoning.flatMap((parts, team) => {
    const terms = parts.map(({ what, number }, k) => [k > 0 ? " + " : "", what === "castle" ? teamIcon(team) : clanIcon(what), ` ${number}`]);
    const total = parts.reduce((sum, { number }) => sum + number, 0);
    return parts.length ? [el("div", { class: "sum" }, teamIcon(team), `${total} = `, ...terms.flat())] : [];
  });
}

/** The same for a screen reader. */
export function spoken(about) {
  return about.powers ? `strength ${about.powers}; ${about.result}` : about.result;
}

/** A card that describes the whole board, for screen readers; `fill(view)` fills it. */
export function boardInWords() {
  const list = el("ul", {});
  const card = el("details", { class: "card words" }, el("summary", {}, "The board in words"), list);
  const fill = (view) => {
    const lines = view.words.map((text, k) => (k < view.regions.length ? `${text}. ${spoken(view.regions[k])}` : text));
    list.replaceChildren(...lines.map((line) => el("li", {}, line)));
  };
  return { card, fill };
}
