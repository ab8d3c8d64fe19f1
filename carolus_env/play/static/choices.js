// The legal actions as buttons next to the board.

import { clanIcon, el, teamIcon } from "./dom.js";
import { spoken } from "./stage.js";

export class Choices {
  /**
   * @param game called back: `play(action)`, `takeInHand(clan)`, and `describe(to)` for the place of a
   *   paladin or the region after the Emperor's; null: nothing is pointed at
   */
  constructor(game, element) {
    this.game = game;
    this.element = element;
    this.advised = null; // the action of a hint
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

  /** A button that plays a decision; `to` is what it points at while it has the pointer or the focus. */
  button(decision, attributes, to, ...children) {
    const enter = () => to !== null && this.game.describe(to);
    const leave = () => to !== null && this.game.describe(null);
    const pointed = { onfocus: enter, onblur: leave, onpointerenter: enter, onpointerleave: leave };
    const { action, text } = decision; // keys know a button by its data: a translator changes what it shows
    const play = { "data-action": action, "data-text": text, onclick: () => this.game.play(action) };
    return el("button", { class: "choice", type: "button", ...play, ...pointed, ...attributes }, ...children);
  }

  /** A disc, or the clan of a crown. */
  simple(decision) {
    if (!decision.clan) return this.button(decision, {}, null, decision.text);
    const label = `Choose ${decision.clan} for the crown`;
    const look = { "aria-label": label, "data-clan": decision.clan };
    return this.button(decision, look, null, clanIcon(decision.clan), decision.clan);
  }

  step(step) {
    const result = el("span", {}, step.changes ? teamIcon(step.team) : "", step.result);
    const look = { class: `choice step${step.changes ? " changes" : ""}` };
    return this.button(step, look, step.region + 1, el("b", {}, step.text), result);
  }

  /** The clans of the reserve, and the places for a paladin. */
  places(view, clan) {
    const clans = new Map(view.legal.map((decision) => [decision.clan, decision.held]));
    const places = view.legal.filter((decision) => decision.clan === (clan ?? view.legal[0].clan));
    const group = (name, label, buttons) => el("div", { class: name, role: "group", "aria-label": label }, buttons);
    const hand = Array.from(clans, ([held, number]) => this.clan(held, number, clan));
    const where = places.map((decision) => this.place(decision, clan));
    return [group("hand", "Choose a paladin", hand), group("where", "Choose a place", where)];
  }

  clan(clan, number, chosen) {
    const take = () => this.game.takeInHand(clan === chosen ? null : clan);
    const state = { "data-clan": clan, "aria-pressed": String(clan === chosen), onclick: take };
    const inside = [clanIcon(clan), el("span", {}, clan), el("small", {}, `× ${number}`)];
    return el("button", { class: "choice clan", type: "button", ...state }, inside);
  }

  place(decision, clan) {
    const { text, to } = decision;
    const where = to === 0 ? "your court" : `region ${text}${to === 1 ? ", where the Emperor stands" : ""}`;
    const told = {
      "data-to": to,
      "aria-label": `${clan ?? "a"} paladin to ${where}`,
      ...(clan ? { "aria-description": spoken(decision) } : { "data-action": null, disabled: true }),
    };
    return this.button(decision, told, to, text);
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
