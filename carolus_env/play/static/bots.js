// The turns of bots: their decisions one after the other, at a pace that can be set.

import { el } from "./dom.js";
import { Seats } from "./seats.js";
import { setSetting, setting } from "./store.js";

const OWN = 400; // milliseconds
const SPEEDS = { slow: 1500, normal: 700, fast: 200, instant: 0 }; // milliseconds for each decision

export class Bots {
  /**
   * @param menu what bots there are
   * @param game called back: `view`, `client`, `askBot(rest)`, which takes the answer after `await rest()` and
   *   returns whether to continue, and `showThinking(seconds)`, `showTurn()`
   */
  constructor(menu, game) {
    this.game = game;
    this.paused = false;
    this.skipping = false;
    this.running = false;
    this.thinking = false; // whether a bot's answer is awaited
    this.seats = new Seats(menu, game);
    this.speed = el("select", { "aria-label": "Bot speed", onchange: () => setSetting("speed", this.speed.value) }, Object.keys(SPEEDS).map((name) => el("option", { value: name }, name)));
    this.speed.value = setting("speed", "normal");
    if (!(this.speed.value in SPEEDS)) this.speed.value = "normal";
    this.skipButton = el("button", { type: "button", class: "quiet", onclick: () => this.skip(), "aria-keyshortcuts": "S" }, el("span", {}, "Skip"), el("kbd", { "aria-hidden": "true" }, "S"));
    this.pauseButton = el("button", { type: "button", class: "quiet", onclick: () => this.pause() }, "Pause");
    this.card = el("div", { class: "card bots" }, el("label", {}, "Bots ", this.speed), this.skipButton, this.pauseButton, this.seats.stopButton, this.seats.element);
  }

  /** Enable the buttons as the game stands. */
  show(view) {
    this.skipButton.disabled = this.pauseButton.disabled = view.turn !== "agent";
    this.pauseButton.textContent = this.paused ? "Resume" : "Pause";
    this.seats.show(view, this.thinking);
    this.card.hidden = view.turn === "over" || view.agents.every((agent) => agent === null);
  }

  /** Let bots decide until it is a person's turn, or the game is paused or over. */
  async run() {
    if (this.running) return;
    this.running = true;
    try {
      while (this.game.view.turn === "agent" && !this.paused) {
        const shown = performance.now();
        const thinking = this.think();
        this.thinking = true;
        this.show(this.game.view);
        const goesOn = await this.game.askBot(() => {
          this.thinking = false;
          return this.rest(shown);
        });
        this.thinking = false;
        clearInterval(thinking);
        if (!goesOn) break;
      }
    } finally {
      this.running = false;
      this.skipping = false;
      this.game.showTurn();
    }
  }

  /** Show for how long a bot has been thinking. */
  think() {
    const since = performance.now();
    const show = () => this.game.showThinking(Math.floor((performance.now() - since) / 1000));
    show();
    return setInterval(show, 500);
  }

  /** Milliseconds in which a decision of a seat is shown; nobody waits for a person's own. */
  pace(seat) {
    const pace = this.skipping ? 0 : SPEEDS[this.speed.value];
    return this.game.view.agents[seat] === null ? Math.min(pace, OWN) : pace;
  }

  /** Wait until the position has been shown for a while. */
  rest(shown) {
    return new Promise((resolve) => {
      const look = () => {
        const wait = this.skipping ? 0 : SPEEDS[this.speed.value];
        if (performance.now() - shown >= wait && (this.skipping || this.game.motion.rest === 0)) resolve();
        else setTimeout(look, 30);
      };
      look();
    });
  }

  /** Go to the next decision of a person without waiting. */
  skip() {
    this.skipping = true;
    this.paused = false;
    this.run();
  }

  pause() {
    this.paused = !this.paused;
    this.game.showTurn();
    this.run();
  }

  /** Ask no bot again until `goOn`, or until somebody resumes the game. */
  hold() {
    this.paused = true;
    this.game.showTurn();
  }

  goOn() {
    this.paused = false;
    this.game.showTurn();
    this.run();
  }
}
