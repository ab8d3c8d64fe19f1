// Who plays on: a search is stopped, and a bot or a person takes over a seat.

import { post } from "./api.js";
import { look } from "./board.js";
import { el, notice } from "./dom.js";

const PERSON = "";

export class Seats {
  /** @param game called back: `client`, `view`, `bots` */
  constructor(menu, game) {
    this.game = game;
    this.stopButton = el("button", { type: "button", class: "quiet", onclick: () => this.stop() }, "Stop");
    this.seat = el("select", { "aria-label": "Seat" });
    this.agent = el(
      "select",
      { "aria-label": "Who takes over" },
      menu.levels.map((level) => el("option", { value: `level ${level.name}` }, level.name)),
      menu.agents.map((agent) => el("option", { value: agent.spec }, agent.spec)),
      el("option", { value: PERSON }, "a person"),
    );
    this.levels = Object.fromEntries(menu.levels.map((level) => [`level ${level.name}`, level.agents]));
    this.button = el("button", { type: "button", onclick: () => this.replace() }, "Replace");
    this.element = el("details", { class: "replace" }, el("summary", {}, "Replace a player"), el("div", { class: "tools" }, this.seat, this.agent, this.button), el("p", {}, el("small", {}, menu.limits)));
  }

  /** Offer the seats of the game as it stands; `isThinking`: whether a bot is. */
  show(view, isThinking) {
    this.stopButton.disabled = !isThinking;
    this.element.hidden = view.turn === "over";
    if (this.shown?.names.join("\n") === view.names.join("\n") && this.shown.seat === view.seat) return;
    this.shown = view;
    this.seat.replaceChildren(...view.names.map((name, seat) => el("option", { value: seat }, name)));
    const bot = view.agents.findIndex((agent) => agent !== null);
    this.seat.value = view.turn === "agent" ? view.seat : Math.max(bot, 0);
  }

  /** End the search of the bot that thinks; the game is paused. */
  async stop() {
    this.game.bots.hold();
    try {
      await post(this.game.client.path("stop"), {});
    } catch (error) {
      notice(error.message);
    }
  }

  async replace() {
    const { client, bots } = this.game;
    const seat = Number(this.seat.value);
    const agent = this.levels[this.agent.value]?.[client.view.rules.players] ?? (this.agent.value || null);
    bots.hold();
    try {
      client.take(await post(`${client.path("seat")}?${look()}`, { seat, agent, version: client.view.version }), client.view.at);
      bots.goOn();
    } catch (error) {
      await client.recover(error);
      notice(error.message);
    }
  }
}
