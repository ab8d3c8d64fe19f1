// A game on the server: requested, changed, and restored where the server has dropped it.

import { get, post } from "./api.js";
import { look } from "./board.js";
import { notice } from "./dom.js";
import { forget, keep, keptRecord } from "./store.js";

export class Client {
  /** `take(view, since)` shows the game as the server answers it, with the log from event `since` on. */
  constructor(key, take) {
    this.key = key;
    this.show = take;
    this.view = null; // the game as the server has it
    this.busy = false; // a decision is on its way
  }

  take(view, since = 0) {
    this.view = view;
    keep(this.key, view);
    this.show(view, since);
  }

  path(request = "") {
    return `games/${this.key}${request && `/${request}`}`;
  }

  /** Take the game; where the server has dropped it, hand it the record that the browser keeps. */
  async open() {
    try {
      this.take(await get(`${this.path()}?${look()}`));
    } catch (error) {
      const record = error.status === 404 ? (this.view?.record ?? keptRecord(this.key)) : null;
      if (record === null) throw error;
      const { agents, names, seed } = record;
      const game = await post(`games?${look()}`, { record, agents, names, seed });
      forget(this.key);
      this.key = game.key;
      history.replaceState(null, "", `/game/${game.key}`);
      this.take(game);
      notice("The server had dropped this game; it has been restored.");
    }
  }

  /** After an error: take the game as the server has it, or restore it; returns whether that worked. */
  async recover(error) {
    if (error.answer?.game) {
      this.take(error.answer.game);
      return true;
    }
    if (error.status !== 404) return false;
    return this.open().then(() => true, () => false);
  }

  /** Ask for the board in another look: `draw(svg)`; take the game if it has moved on elsewhere. */
  async refresh(draw) {
    const shown = this.view;
    if (!shown) return;
    try {
      const view = await get(`${this.path()}?${look()}`);
      if (this.view !== shown) await this.refresh(draw);
      else if (view.version !== shown.version) this.take(view);
      else draw((shown.svg = view.svg));
    } catch (error) {
      notice(error.message);
    }
  }

  /** Send a decision or an undo; returns whether the server accepted it. */
  async send(request, data) {
    if (this.busy) return false;
    this.busy = true;
    const { at, version } = this.view;
    try {
      this.take(await post(`${this.path(request)}?${look()}`, { ...data, version }), request === "undo" ? at - 1 : at);
      return true;
    } catch (error) {
      notice(error.message);
      await this.recover(error);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Ask the bot to move for one decision, and take it after `rest()`; returns whether to continue. */
  async askBot(rest) {
    const { at, version } = this.view;
    let next;
    try {
      next = await post(`${this.path("agent")}?${look()}`, { version });
    } catch (error) {
      if (this.view.version !== version) return true; // a seat has changed hands meanwhile
      if (await this.recover(error)) return true;
      notice(error.message);
      if (error.status !== 503) return false;
      await new Promise((resolve) => setTimeout(resolve, 1000)); // other bots are thinking
      return true;
    }
    await rest();
    this.take(next, at);
    return true;
  }
}
