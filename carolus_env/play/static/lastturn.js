// What the others did since one's own last turn: in a strip above the board, and shown again on it.

import { get } from "./api.js";
import { look } from "./board.js";
import { el, notice, say, teamIcon } from "./dom.js";

const PACE = 650; // milliseconds for each event that is shown again
const PAUSE = 450; // between events

export class LastTurn {
  /** `game` has `view`, `client`, `stage`, `motion` and `log`, and `redraw()` shows the present. */
  constructor(game) {
    this.game = game;
    this.showing = 0; // numbers the shows; 0: none
    this.list = el("ul", { tabindex: "0", "aria-label": "Since your last decision" });
    this.buttons = [this.button(), this.button()];
    this.strip = el("section", { class: "card strip", "aria-label": "What the others did", hidden: true }, this.list, this.buttons[0]);
    this.caption = el("p", { class: "caption", hidden: true });
    this.game.stage.element.append(this.caption);
  }

  button() {
    return el("button", { type: "button", class: "again", "aria-keyshortcuts": "L", onclick: () => this.again() }, el("span", {}), el("kbd", { "aria-hidden": "true" }, "L"));
  }

  /** The button beside the log. */
  get beside() {
    return this.buttons[1];
  }

  /** Tell the turns of a game as it stands. */
  show(view) {
    this.stop();
    const { turns, shown } = view.news;
    this.strip.hidden = turns.length === 0;
    this.list.replaceChildren(...turns.map((turn) => el("li", {}, teamIcon(view.teams[turn.seat]), el("b", {}, view.names[turn.seat]), " ", turn.words)));
    for (const button of this.buttons) button.disabled = shown.length === 0;
    this.label();
  }

  label() {
    const [short, long] = this.showing ? ["Stop", "Stop"] : ["Show again", "Show the last turn again"];
    this.buttons.forEach((button, k) => (button.firstElementChild.textContent = k ? long : short));
  }

  /** Show the events again, one after the other, or stop that. */
  async again() {
    const { view } = this.game;
    if (this.showing) {
      this.stop(true);
      return;
    }
    if (!view?.news.shown.length) {
      notice("The others have not had a turn yet.");
      return;
    }
    const number = (this.showing = ++this.shows);
    const isOld = () => this.showing !== number || this.game.view !== view;
    this.label();
    this.game.leave();
    this.game.stage.element.classList.add("past");
    try {
      await this.draw(view.news.shown[0]);
      for (const event of view.news.shown) {
        if (isOld()) return;
        await this.tell(event);
        if (isOld()) return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE + Math.max(PACE, this.game.motion.rest)));
      }
    } catch (error) {
      notice(error.message);
    }
    if (!isOld()) this.stop(true);
  }

  shows = 0;

  /** Show the board as it was before an event. */
  async draw(position) {
    const number = this.showing;
    const { svg } = await get(`${this.game.client.path(`positions/${position}`)}?${look()}`);
    if (number === this.showing) this.game.stage.draw(svg);
  }

  /** Show an event, with its words. */
  async tell(event) {
    const line = this.game.log.lines.find((found) => found.event === event);
    const text = `${this.game.view.names[line.seat]} ${line.words}`;
    this.caption.textContent = text;
    this.caption.hidden = false;
    say(text);
    const number = this.showing;
    const { svg } = await get(`${this.game.client.path(`positions/${event + 1}`)}?${look()}`);
    if (number !== this.showing) return;
    this.game.motion.remember();
    this.game.stage.draw(svg);
    this.game.motion.play([line], PACE);
  }

  /** Return to the present; `redraw`: draw it. */
  stop(redraw = false) {
    if (!this.showing) return;
    this.showing = 0;
    this.caption.hidden = true;
    this.game.stage.element.classList.remove("past");
    this.label();
    if (redraw) this.game.redraw();
  }
}
