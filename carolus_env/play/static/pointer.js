// Decisions on the board itself: clicks and taps, and paladins that are dragged.

import { pieceAt } from "./board.js";
import { clanIcon, el } from "./dom.js";

const DRAG = 6; // pixels that a press moves before it is a drag

export class Pointer {
  /**
   * @param board the element that is clicked
   * @param game called back: `choose(piece, isTouch)`, `clanOf(piece)`, `takeInHand(clan)`,
   *   `placeAt(piece)` and `describePlace(piece)`
   */
  constructor(board, game) {
    this.game = game;
    this.ghost = el("div", { class: "ghost", hidden: true }); // the paladin that is dragged
    this.dragged = false;
    this.kind = "mouse"; // of the last press; not every browser reports it with the click
    board.addEventListener("pointerdown", (event) => this.press(event));
    board.addEventListener("click", (event) => this.dragged || game.choose(pieceAt(event.target), this.kind === "touch"));
  }

  press(event) {
    this.dragged = false;
    this.kind = event.pointerType;
    const piece = pieceAt(event.target);
    if (event.button !== 0 || piece?.kind !== "reserve" || !piece.open) return;
    const stop = new AbortController();
    const listen = (name, act) => document.addEventListener(name, act, { signal: stop.signal });
    const end = (last) => {
      stop.abort();
      this.drop(last);
    };
    listen("pointermove", (moved) => this.drag(event, moved, this.game.clanOf(piece)));
    listen("pointerup", end);
    listen("pointercancel", end);
    event.preventDefault();
  }

  drag(start, moved, clan) {
    if (!this.dragged && Math.hypot(moved.clientX - start.clientX, moved.clientY - start.clientY) < DRAG) return;
    if (!this.dragged) {
      this.dragged = true;
      this.game.takeInHand(clan);
      this.ghost.replaceChildren(clanIcon(clan));
      this.ghost.hidden = false;
    }
    this.ghost.style.translate = `${moved.clientX}px ${moved.clientY}px`;
    this.game.describePlace(placeUnder(moved));
  }

  drop(last) {
    this.ghost.hidden = true;
    this.game.describePlace(null);
    if (!this.dragged || last.type === "pointercancel") return;
    const place = placeUnder(last);
    if (place) this.game.placeAt(place);
    else this.game.takeInHand(null);
  }
}

/** The court or region under the pointer that may take a paladin; null: none. */
function placeUnder(event) {
  const piece = pieceAt(document.elementFromPoint(event.clientX, event.clientY));
  return piece?.open && ["court", "region"].includes(piece.kind) ? piece : null;
}
