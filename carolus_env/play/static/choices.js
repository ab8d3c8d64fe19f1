// The legal actions as buttons next to the board.

import { clanIcon, el, teamIcon } from "./dom.js";
import { spoken } from "./stage.js";

export class Choices {
  /**
   * @param game called back: `play(action)`, `takeInHand(clan)`, and `describe(to)` for the place of a
   *   paladin or the region after the Emperor's; null: nothing is pointed at
   */
  constructor(game) {
    this.game = game;
    this.advised = null; // the action of a hint
    this.element = el("div", { class: "choices", role: "group", "aria-labelledby": "turn", tabindex: "-1" });
  }

  /** Show the decisions of a game in play; `clan` is that of the paladin in hand, or null. */
  show(view, clan) {
    const isPerson = view.turn === "person";
    const shown = { place: () => this.places(view, clan), move: () => view.legal.map((step) => this.step(step)) };
    const simple = () => view.legal.map((decision) => this.simple(decision));
    this.element.className = `choices ${isPerson ? view.phase : view.turn}`;
    this.element.replaceChildren(...(isPerson ? (shown[view.phase] ?? simple)() : []));
    if (this.advised !== null) this.element.querySelector(`[data-action="${this.advised}"]`)?.classList.add("advised");
  }

  /** Show the buttons at the end of a game. */
  showEnd(...buttons) {
    this.element.className = "choices over";
    this.element.replaceChildren(...buttons);
  }

  /** A disc, or the clan of a crown. */
  simple(decision) {
    const inside = decision.clan ? [clanIcon(decision.clan), decision.clan] : [decision.text];
    const label = decision.clan ? `Choose ${decision.clan} for the crown` : null;
    return el(
      "button",
      {
        class: "choice",
        type: "button",
        "data-action": decision.action,
        "aria-label": label,
        onclick: () => this.game.play(decision.action),
      },
      inside,
    );
  }

  step(step) {
    return el(
      "button",
      {
        class: `choice step${step.changes ? " changes" : ""}`,
        type: "button",
        "data-action": step.action,
        onclick: () => this.game.play(step.action),
        ...pointed(
          () => this.game.describe(step.region + 1),
          () => this.game.describe(null),
        ),
      },
      el("b", {}, step.text),
      el("span", {}, step.changes ? teamIcon(step.team) : "", step.result),
    );
  }

  /** The clans of the reserve, and the places for a paladin. */
  places(view, clan) {
    const clans = new Map(view.legal.map((decision) => [decision.clan, decision.held]));
    const places = view.legal.filter((decision) => decision.clan === (clan ?? view.legal[0].clan));
    return [
      el(
        "div",
        { class: "hand", role: "group", "aria-label": "Choose a paladin" },
        [...clans].map(([held, number]) => this.clan(held, number, clan)),
      ),
      el(
        "div",
        { class: "where", role: "group", "aria-label": "Choose a place" },
        places.map((decision) => this.place(decision, clan)),
      ),
    ];
  }

  clan(clan, number, chosen) {
    return el(
      "button",
      {
        class: "choice clan",
        type: "button",
        "data-clan": clan,
        "aria-pressed": String(clan === chosen),
        onclick: () => this.game.takeInHand(clan === chosen ? null : clan),
      },
      clanIcon(clan),
      el("span", {}, clan),
      el("small", {}, `× ${number}`),
    );
  }

  place(decision, clan) {
    const where =
      decision.to === 0
        ? "your court"
        : `region ${decision.text}${decision.to === 1 ? ", where the Emperor stands" : ""}`;
    return el(
      "button",
      {
        class: "choice",
        type: "button",
        "data-action": clan === null ? null : decision.action,
        "data-to": decision.to,
        "data-text": decision.text,
        "aria-label": `${clan ?? "a"} paladin to ${where}`,
        "aria-description": clan === null ? null : spoken(decision),
        disabled: clan === null,
        onclick: () => this.game.play(decision.action),
        ...pointed(
          () => this.game.describe(decision.to),
          () => this.game.describe(null),
        ),
      },
      decision.text,
    );
  }

  get hasFocus() {
    return this.element.contains(document.activeElement);
  }

  focus() {
    const first = this.element.querySelector('[aria-pressed="true"], button:not([disabled]), a');
    (first ?? this.element).focus({ preventScroll: true });
  }

  /** The button of a clan of the reserve. */
  clanButton(clan) {
    return this.element.querySelector(`[data-clan="${clan}"]`);
  }

  get buttons() {
    return [...this.element.querySelectorAll("button:not([disabled])")];
  }

  /** Focus the first button that fits; returns whether there is one. */
  find(fits) {
    const found = this.buttons.find(fits);
    found?.focus({ preventScroll: true });
    return found !== undefined;
  }

  /** Focus the next button (`way` 1) or the one before (-1); returns whether there are any. */
  move(way) {
    const { buttons } = this;
    if (buttons.length === 0) return false;
    const at = buttons.indexOf(document.activeElement);
    const next = at < 0 && way < 0 ? buttons.length - 1 : at + way;
    buttons[(next + buttons.length) % buttons.length].focus({ preventScroll: true });
    return true;
  }
}

/** Listeners for the pointer or the focus that comes to an element, and leaves it. */
function pointed(enter, leave) {
  return { onfocus: enter, onblur: leave, onpointerenter: enter, onpointerleave: leave };
}
