// A game by keyboard: keys find buttons, Enter presses them.

import { isTyping, looks } from "./dom.js";

const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const TYPING = 1500; // milliseconds within which two digits are one number

/** The letter or digit of a key; where a keyboard has others, as Cyrillic ones and AZERTY's digits, that of its place. */
function pressed({ code, key, shiftKey }) {
  const place = /^[a-z0-9]$/i.test(key) || shiftKey ? null : /^(?:Key|Digit)(.)$/.exec(code);
  const own = place?.[1] ?? key;
  return own.length === 1 ? own.toLowerCase() : own;
}

export class Keys {
  /** `game` has `view`, `clan` in hand, `choices`, and `undo`, `hint`, `pause`, `takeInHand`. */
  constructor(game) {
    this.game = game;
    this.wereUsed = false; // since the last click
    this.forgetDigits();
    document.addEventListener("keydown", (event) => this.press(event));
  }

  forgetDigits() {
    this.digits = "";
    this.typedAt = 0;
  }

  press(event) {
    const { game } = this;
    if (isTyping(event) || !game.view) return;
    const key = pressed(event);
    const commands = {
      u: () => game.undo(),
      h: () => game.hint(),
      s: () => game.pause(),
      Escape: () => game.takeInHand(null),
    };
    const found =
      this.arrow(key) ||
      this.clan(key) ||
      this.digit(key) ||
      (key === "c" && game.choices.find((button) => button.dataset.to === "0"));
    if (found || commands[key]) {
      this.wereUsed = true;
      event.preventDefault();
      if (!found) commands[key]();
    } else if (key === "Enter" || key === " ") this.wereUsed = true;
  }

  arrow(key) {
    const { choices } = this.game;
    const isFree = document.activeElement === document.body || choices.hasFocus;
    return key in ARROWS && isFree && choices.move(ARROWS[key]);
  }

  clan(key) {
    const { choices, view } = this.game;
    const clan = looks.clans.find(({ name }) => name[0] === key)?.name;
    if (!clan || view.turn !== "person") return false;
    if (view.phase === "crown") return choices.find((button) => button.dataset.clan === clan);
    if (view.phase !== "place" || !view.legal.some((decision) => decision.clan === clan)) return false;
    this.game.takeInHand(clan);
    choices.clanButton(clan).focus({ preventScroll: true });
    return true;
  }

  /** A disc, a number of steps, or the region of a territory of one or two digits. */
  digit(key) {
    const { choices, clan, view } = this.game;
    if (!/^[0-9]$/.test(key) || view.turn !== "person") return false;
    if (view.phase === "disc") return choices.find((button) => button.dataset.text === `disc ${key}`);
    if (view.phase === "move") return choices.find((button) => button.dataset.text.startsWith(`${key} step`));
    if (view.phase !== "place" || clan === null) return false;
    const now = performance.now();
    const longer = now - this.typedAt < TYPING ? `${this.digits}${key}` : key;
    this.digits = Number(longer) < 15 && longer.length < 3 ? longer : key;
    this.typedAt = now;
    return choices.find((button) => covers(button.dataset.text, Number(this.digits)));
  }
}

/** Whether a region, `7` or `14-1`, holds a territory. */
function covers(text, territory) {
  if (!/^\d/.test(text ?? "")) return false;
  const [first, last] = [...text.split("-"), text].slice(0, 2).map(Number);
  return (territory - first + 15) % 15 <= (last - first + 15) % 15;
}
