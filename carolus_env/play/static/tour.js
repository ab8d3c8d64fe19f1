// A tour of the board in the first round: callouts beside its parts, while the game goes on.

import { el, say } from "./dom.js";
import { instruction } from "./texts.js";
import { setSetting } from "./store.js";

const wide = matchMedia("(min-width: 1000px)");
const GAP = 14; // pixels between a callout and what it is about

/** The steps; `at`: selectors of what a step is about, `part`: how much of its width; `kind`: the decision that ends it. */
const STEPS = [
  {
    title: "Castles win",
    text: ({ goal }) => `The first to have ${goal} castles on the board wins. Each bar beside a name is a castle to be built; a tall one stands.`,
    at: (seat) => `.seat[data-seat="${seat}"] .castles`,
  },
  {
    title: "Your reserve",
    text: ({ plays }) => `Paladins of five clans wait here. On each turn you play ${plays} of them; dice then bring new ones. All reserves are open.`,
    at: (seat) => `.reserve[data-seat="${seat}"]`,
  },
  {
    title: "Your court",
    text: () => "A paladin goes to your court or to a region of the circle, and stays there. Those at court decide who controls their clan.",
    at: (seat) => `.court[data-seat="${seat}"] > rect`,
  },
  {
    title: "Control",
    text: () => "Who has the most paladins of a clan at court controls the whole clan: a disc around its sign shows it. A tie changes nothing. Until somebody leads, nobody controls the clan.",
    at: (seat) => `.court[data-seat="${seat}"] > rect`,
    part: 0.11,
  },
  {
    title: "Discs",
    text: () => "Each round begins with a disc. Low numbers take their turns first; high ones let you move the Emperor farther. A number that another player has laid this round is taken. Used discs come back after five rounds.",
    at: (seat) => `.disc[data-seat="${seat}"]`,
    kind: "disc",
  },
  {
    title: "Strength",
    text: () => "In a region, your strength is the number of paladins of the clans that you control, plus your castles there. Point at any region to see the sum for each player.",
    at: () => '.region[data-region="1"]',
  },
  {
    title: "Play your paladins",
    text: ({ plays }) => `When it is your turn, play ${plays}: choose a paladin, then your court or a region. Early on the court is worth most, since every region with that clan then counts for you.`,
    at: (seat) => `.reserve[data-seat="${seat}"], .court[data-seat="${seat}"] > rect`,
    kind: "place",
  },
  {
    title: "The Emperor",
    text: () => "Last, he walks clockwise, at most as many steps as your disc says. Where he stops, the strongest player builds a castle or takes over all that stand there. Neighbouring regions of one owner merge. Each choice says what would happen, and why.",
    at: () => ".emperor",
    kind: "move",
  },
];

export class Tour {
  /** `game` has `view`, `log` and `stage`. */
  constructor(game) {
    this.game = game;
    this.at = null; // the step that is shown; null: none
    this.since = 0; // the event at which the tour began
    this.title = el("h2", { id: "tour-title" });
    this.text = el("p", { id: "tour-text" });
    this.now = el("p", { class: "now" });
    this.count = el("small", {});
    this.back = el("button", { type: "button", onclick: () => this.go(this.at - 1, true) }, "Back");
    this.next = el("button", { type: "button", class: "primary", onclick: () => this.go(this.at + 1, true) });
    const leave = el("button", { type: "button", class: "quiet leave", onclick: () => this.leave() }, "Leave the tour");
    this.callout = el("section", { class: "card callout", "aria-labelledby": "tour-title", "aria-describedby": "tour-text", tabindex: "-1", hidden: true }, el("div", { class: "head" }, this.title, this.count), this.text, this.now, el("div", { class: "tools" }, this.back, this.next, leave));
    this.spot = el("div", { class: "spot" });
    this.shade = el("div", { class: "shade", hidden: true }, this.spot);
    this.begin = el("button", { type: "button", class: "quiet", onclick: () => this.start() }, "Tour");
    game.stage.element.append(this.shade);
    new ResizeObserver(() => this.place()).observe(game.stage.element);
    wide.addEventListener("change", () => this.place());
    this.callout.addEventListener("keydown", (event) => event.key === "Escape" && this.leave());
  }

  /** The seat of the person who is shown around: the one to move, or the first. */
  get seat() {
    const { view } = this.game;
    return view.turn === "person" ? view.seat : Math.max(0, view.agents.indexOf(null));
  }

  start() {
    this.since = this.game.view.at;
    this.go(0, true);
  }

  leave() {
    setSetting("toured", true);
    this.at = null;
    this.show();
    this.game.choices.focus();
  }

  /** Show a step; after the last one the tour is over. `byHand`: a button was pressed. */
  go(step, byHand = false) {
    if (step >= STEPS.length) {
      this.leave();
      say("That was the tour. Help has the rest.");
      return;
    }
    this.at = Math.max(0, step);
    this.show();
    if (!wide.matches) this.spot.scrollIntoView({ block: "nearest" });
    if (byHand) this.callout.focus({ preventScroll: true });
    else say(`${this.title.textContent}. ${this.text.textContent}`);
  }

  /** The game has moved on: go on where the decision of this step was made. */
  update() {
    const step = STEPS[this.at];
    if (!step) return;
    const { view, log } = this.game;
    const isMade = log.lines.some((line) => line.event >= this.since && view.agents[line.seat] === null && line.what.kind === step.kind);
    const goesOn = view.turn === "person" && view.phase === step.kind;
    if (step.kind && isMade && !goesOn) this.go(this.at + 1);
    else this.show();
  }

  show() {
    const step = STEPS[this.at];
    this.callout.hidden = this.shade.hidden = !step;
    document.body.classList.toggle("touring", Boolean(step));
    document.body.classList.toggle("explaining", Boolean(step) && !step.kind); // nothing is to be decided for this step
    if (!step) return;
    const { view } = this.game;
    const { players } = view.rules;
    const isDue = view.turn === "person" && view.phase === step.kind;
    this.title.textContent = step.title;
    this.count.textContent = `${this.at + 1} of ${STEPS.length}`;
    this.text.textContent = step.text({ goal: players === 3 ? 8 : 10, plays: players === 3 ? 4 : 3 });
    this.now.textContent = !step.kind ? "" : isDue ? `Now: ${instruction(view, null)}` : view.turn === "person" ? `First: ${instruction(view, null)}` : instruction(view, null);
    this.back.disabled = this.at === 0;
    this.next.textContent = this.at === STEPS.length - 1 ? "Finish" : "Next";
    this.next.classList.toggle("primary", !isDue); // the decision itself leads on
    this.place();
  }

  /** Put the light on what the step is about, and the callout beside it. */
  place() {
    const step = STEPS[this.at];
    if (!step) return;
    const { element, board } = this.game.stage;
    const found = [...board.querySelectorAll(step.at(this.seat))].map((part) => part.getBoundingClientRect());
    this.shade.hidden = found.length === 0;
    if (!found.length) return;
    const stage = element.getBoundingClientRect();
    const box = {
      left: Math.min(...found.map((rect) => rect.left)) - stage.left - 8,
      top: Math.min(...found.map((rect) => rect.top)) - stage.top - 8,
      right: Math.max(...found.map((rect) => rect.right)) - stage.left + 8,
      bottom: Math.max(...found.map((rect) => rect.bottom)) - stage.top + 8,
    };
    if (step.part) box.right = box.left + 16 + (box.right - box.left - 16) * step.part;
    Object.assign(this.spot.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.right - box.left}px`, height: `${box.bottom - box.top}px` });
    this.beside(box, stage);
  }

  /** The callout's place: over another player's panel, where nothing is to be clicked, or else beside the box. */
  beside(box, stage) {
    const { style, offsetWidth: width, offsetHeight: height } = this.callout;
    if (!wide.matches) {
      style.left = style.top = "";
      this.spot.style.scrollMargin = `${height + GAP}px 0 ${GAP}px`;
      return;
    }
    const [across, down] = [(box.left + box.right - width) / 2, (box.top + box.bottom - height) / 2];
    const panel = this.game.stage.board.querySelector(`.seat:not([data-seat="${this.seat}"])`).getBoundingClientRect();
    const places = [
      [panel.left - stage.left + (panel.width - width) / 2, panel.top - stage.top],
      [box.left - width - GAP, down],
      [box.right + GAP, down],
      [across, box.bottom + GAP],
      [across, box.top - height - GAP],
    ];
    const within = (value, most) => Math.max(0, Math.min(value, most));
    const fitted = places.map(([x, y]) => [within(x, stage.width - width), within(y, stage.height - height)]);
    const isFree = ([x, y]) => x + width <= box.left || x >= box.right || y + height <= box.top || y >= box.bottom;
    const [x, y] = fitted.find(isFree) ?? fitted[0];
    const origin = this.callout.offsetParent.getBoundingClientRect();
    style.left = `${x + stage.left - origin.left}px`;
    style.top = `${y + stage.top - origin.top}px`;
  }
}
