// The stage: the board, the tip beside its pieces, and the board in words.

import { pieceAt, show } from "./board.js";
import { el } from "./dom.js";
import { boardInWords, Tip } from "./regions.js";

export class Stage {
  /** `point(piece, event)` is called for the piece under the pointer, `leave()` when it leaves. */
  constructor({ point, leave }) {
    this.board = el("div", { class: "board" });
    this.element = el("section", { class: "stage", "aria-label": "Board" }, this.board);
    this.tip = new Tip(this.element);
    this.words = boardInWords();
    this.board.addEventListener("pointerover", (event) => {
      const piece = pieceAt(event.target);
      point(piece, event);
      this.tell(piece, event.target.closest("[data-tip]"));
    });
    this.board.addEventListener("pointerleave", (event) => event.pointerType === "touch" || leave());
  }

  /** Beside what is pointed at: what it is, where the page has no more to say of it. */
  tell(piece, element) {
    if (!element || !this.tip.isHidden || ["region", "step"].includes(piece?.kind)) return;
    this.tip.show(element, { result: element.dataset.tip });
  }

  /** Show a position. */
  show(view) {
    this.tip.hide();
    this.words.fill(view);
    this.draw(view.svg);
  }

  /** Only the drawing of the same position. */
  draw(svg) {
    show(this.board, svg);
  }

  clear() {
    this.tip.hide();
    this.board.replaceChildren();
  }

  /** The piece of the board that a paladin goes to: 0 is the court, 1 + k the region k. */
  destination(to) {
    return pieceAt(this.board.querySelector(to === 0 ? ".court.open" : `.region[data-region="${to - 1}"]`));
  }
}
