// A game in play: shows it as the server answers, and takes the decisions of people.

import { get, post } from "./api.js";
import { look, onLook } from "./board.js";
import { Bots } from "./bots.js";
import { Choices } from "./choices.js";
import { Client } from "./client.js";
import { el, notice, say } from "./dom.js";
import { EndCard } from "./end.js";
import { openRecords } from "./files.js";
import { drawHint } from "./hintmark.js";
import { Keys } from "./keys.js";
import { LastTurn } from "./lastturn.js";
import { Log } from "./log.js";
import { Motion } from "./motion.js";
import { Opinions } from "./opinions.js";
import { Pointer } from "./pointer.js";
import { StepPreview } from "./preview.js";
import { shareButton } from "./share.js";
import { Stage } from "./stage.js";
import { setSetting, setting } from "./store.js";
import { heading, instruction, refusal } from "./texts.js";
import { Tour } from "./tour.js";

export async function gamePage(main, menu, key) {
  await new GamePage(main, menu, key).open();
}

class GamePage {
  constructor(main, menu, key) {
    this.menu = menu;
    this.client = new Client(key, (view, since) => this.take(view, since));
    this.clan = null; // of the paladin in hand
    this.build(main);
  }

  build(main) {
    this.stage = new Stage({ point: (piece, event) => this.point(piece, event), leave: () => this.leave() });
    this.future = new StepPreview((action) => get(`${this.client.path(`step/${action}`)}?${look()}`));
    this.stage.element.append(this.future.element);
    this.choices = new Choices(this);
    this.log = new Log({ role: "log", "aria-label": "Game log" });
    this.motion = new Motion(this.stage.board);
    this.lastTurn = new LastTurn(this);
    this.tour = new Tour(this);
    this.bots = new Bots(this.menu, this);
    this.pointer = new Pointer(this.stage.board, this);
    this.keys = new Keys(this);
    this.hints = new Opinions({ "aria-live": "polite" });
    this.title = el("h1", { id: "turn" });
    this.doing = el("p", { class: "doing" });
    this.undoButton = button("Undo", "U", () => this.undo());
    this.hintButton = button("Hint", "H", () => this.hint());
    this.adviser = el("select", { "aria-label": "Bot that gives hints", onchange: () => setSetting("adviser", this.adviser.value) }, this.menu.advisers.map((spec) => el("option", { value: spec }, spec)));
    const adviser = setting("adviser", "planner");
    this.adviser.value = this.menu.advisers.includes(adviser) ? adviser : this.menu.advisers[0];
    this.save = el("a", { class: "button", download: "carolus.jsonl" }, "Save");
    this.end = new EndCard((request) => this.client.path(request));
    const share = shareButton({ line: () => this.view.line, picture: (kind) => this.client.path(`picture.${kind}`), film: (kind) => this.client.path(`film.${kind}`), record: () => this.client.path("record") });
    this.reviewButton = button("Review", null, () => this.review());
    main.className = "table game";
    main.replaceChildren(
      this.tour.callout,
      this.lastTurn.strip,
      el(
        "div",
        { class: "left" },
        this.stage.element,
        el(
          "section",
          { class: "below", "aria-label": "The game" },
          el("div", { class: "tools" }, this.bots.card, this.motion.choice, el("span", { class: "outside" }, this.tour.begin, share, this.save, this.reviewButton)),
          this.stage.words.card,
        ),
      ),
      el(
        "div",
        { class: "right" },
        el(
          "section",
          { class: "panel", "aria-label": "Decision" },
          el("div", { class: "card turn" }, this.title, this.doing, this.choices.element, el("div", { class: "tools" }, this.undoButton, this.hintButton, this.adviser), this.hints.element),
          this.end.element,
        ),
        el("section", { class: "card story", "aria-labelledby": "log-title" }, el("div", { class: "head" }, el("h2", { id: "log-title" }, "Log"), this.lastTurn.beside), this.log.element),
      ),
      this.pointer.ghost,
    );
    onLook(() => this.reload().then(() => this.bots.run()));
    new ResizeObserver(() => this.log.showEnd()).observe(this.log.element);
  }

  /** The game as the server has it; null: not known yet. */
  get view() {
    return this.client.view;
  }

  // ------------------------------------------------------------------------------ the game

  async open() {
    await this.client.open();
    if (setting("tour", null) === this.client.key) this.tour.start();
    setSetting("tour", null);
    this.bots.run();
  }

  /** Draw the board in another look. */
  async reload() {
    this.lastTurn.stop();
    await this.client.refresh(() => this.redraw());
  }

  /** Draw the board as it stands, without previews and past turns. */
  redraw() {
    this.future.clear();
    this.leave();
    this.stage.draw(this.view.svg);
    this.markHand();
    this.tour.place();
  }

  /** Show the game, with the log's lines from event `since` on. */
  take(view, since) {
    const hadFocus = this.choices.hasFocus;
    this.clan = this.clanInHand();
    this.keys.forgetDigits();
    this.future.clear();
    this.leave();
    this.hints.clear();
    this.choices.advised = null;
    this.lastTurn.show(view);
    this.motion.remember();
    this.stage.show(view);
    this.markHand();
    this.showTurn();
    this.showChoices();
    this.log.fill(view.log, view, since);
    this.log.markFresh(view.news.events);
    this.log.showEnd();
    if (since > 0 && since < view.at) this.motion.play(view.log, this.bots.pace(view.log[0].seat));
    this.tour.update();
    this.end.show(view);
    this.save.href = `/api/${this.client.path("record")}`;
    if (hadFocus || (this.keys.wereUsed && view.turn === "person")) this.choices.focus();
  }

  async play(action) {
    if (this.client.busy || this.view.turn !== "person") return;
    notice("");
    await this.client.send("play", { action });
    this.bots.run();
  }

  async undo() {
    if (this.client.busy || !this.view.undo) return;
    if (await this.client.send("undo", {})) say("Undone.");
    this.bots.run();
  }

  /** Ask the bot to move; returns whether to continue. */
  async askBot(rest) {
    const goesOn = await this.client.askBot(rest);
    if (!goesOn) this.bots.paused = true;
    return goesOn;
  }

  async hint() {
    const { view } = this;
    if (view.turn !== "person" || this.hintButton.disabled) return;
    this.hintButton.disabled = true;
    this.lastTurn.stop(true);
    const [hint] = await this.hints.ask([this.adviser.value], this.client.path("hint"), { version: view.version }, view.team_names);
    if (hint && this.view === view) this.showHint(hint.choice.action);
    this.hintButton.disabled = this.view.turn !== "person";
  }

  /** Mark an action on the board and among the buttons. */
  showHint(action) {
    this.choices.advised = action;
    const decision = this.view.legal.find((found) => found.action === action);
    if (decision?.kind === "place") this.takeInHand(decision.clan);
    else this.showChoices();
    drawHint(this.stage.board.querySelector("svg"), this.view, action);
  }

  skip() {
    this.bots.skip();
  }

  /** Open the game in the viewer. */
  async review() {
    await openRecords("this game", () => JSON.stringify(this.view.record));
  }

  /** A new game with the same players. */
  async again() {
    const { rules, agents, names } = this.view;
    try {
      const game = await post("games", { rules, agents, names });
      location.assign(`/game/${game.key}`);
    } catch (error) {
      notice(error.message);
    }
  }

  // ------------------------------------------------------------------------------ the panel

  showTurn() {
    const { view } = this;
    const isOver = view.turn === "over";
    this.title.textContent = heading(view);
    document.title = `${heading(view)} · Carolus`;
    this.doing.textContent = instruction(view, this.clan);
    this.doing.classList.remove("thinking");
    this.undoButton.disabled = !view.undo;
    this.hintButton.disabled = view.turn !== "person";
    this.undoButton.hidden = isOver && !view.undo;
    for (const tool of [this.hintButton, this.adviser, this.reviewButton, this.doing]) tool.hidden = isOver;
    this.bots.show(view);
    if (view.turn !== "agent") say(`${this.title.textContent}. ${this.doing.textContent}`);
  }

  showThinking(seconds) {
    const name = this.view.names[this.view.seat];
    this.doing.classList.add("thinking");
    this.doing.textContent = seconds < 2 ? `${name} is thinking` : `You can leave this page and return to the game later. ${name} has been thinking for ${seconds} s`;
  }

  showChoices() {
    if (this.view.turn !== "over") {
      this.choices.show(this.view, this.clan);
      return;
    }
    const again = button("Play again", null, () => this.again());
    again.className = "primary";
    this.choices.showEnd(again, button("Review", null, () => this.review()), el("a", { class: "button", href: "/" }, "New game"));
  }

  // ------------------------------------------------------------------------------ the paladin in hand

  /** The clan in hand in the position shown: the one before if it is still held, or the only one. */
  clanInHand() {
    if (this.view.turn !== "person" || this.view.phase !== "place") return null;
    const held = new Set(this.view.legal.map((decision) => decision.clan));
    if (held.has(this.clan)) return this.clan;
    return held.size === 1 ? [...held][0] : null;
  }

  takeInHand(clan) {
    this.clan = clan;
    this.keys.forgetDigits();
    notice("");
    const focused = document.activeElement?.dataset?.clan;
    this.markHand();
    this.showChoices();
    this.doing.textContent = instruction(this.view, clan);
    if (focused) this.choices.clanButton(focused)?.focus();
    if (clan) say(`${clan} paladin chosen. Choose your court or a region.`);
  }

  /** Mark the paladin in hand in the drawing. */
  markHand() {
    this.stage.board.classList.toggle("holding", this.clan !== null);
    for (const token of this.stage.board.querySelectorAll(".reserve .token.open")) {
      token.classList.toggle("held", this.clanOf(token.dataset) === this.clan);
    }
  }

  /** The name of the clan of a piece. */
  clanOf(piece) {
    return this.menu.looks.clans[Number(piece.clan)].name;
  }

  placeAt(piece) {
    const decision = this.decisionAt(piece);
    if (decision) this.play(decision.action);
  }

  /** The decision that plays the paladin in hand to a court or a region. */
  decisionAt(piece) {
    const to = piece.kind === "court" ? 0 : piece.region + 1;
    return this.view.legal.find((found) => found.clan === this.clan && found.to === to);
  }

  // ------------------------------------------------------------------------------ pointing

  point(piece, event) {
    if (this.lastTurn.showing) return;
    const step = this.stepTo(piece);
    if (event.pointerType !== "touch") this.preview(step);
    this.describePlace(step ? null : piece);
  }

  leave() {
    this.preview(null);
    this.hideTip();
  }

  hideTip() {
    this.stage.tip.hide();
  }

  /** Beside the place of a paladin: what the one in hand would do there. */
  describe(to) {
    this.describePlace(this.stage.destination(to));
  }

  /** Beside a court or a region: what the paladin in hand would do there, or how the region stands. */
  describePlace(piece) {
    const isPlace = piece?.kind === "region" || (piece?.kind === "court" && piece.open);
    const isShown = isPlace && this.view.turn !== "over";
    const decision = isShown && this.clan && this.decisionAt(piece);
    this.stage.tip.show(piece?.element, isShown ? (decision || this.view.regions[piece.region]) : null);
  }

  /** The step that leads the Emperor to a piece of the board; null: none does. */
  stepTo(piece) {
    if (!["region", "step"].includes(piece?.kind) || !piece.open || this.view.turn !== "person") return null;
    return this.view.steps.find((found) => found.action === piece.action) ?? null;
  }

  /** Show the board after a step of the Emperor; null: the board as it is. */
  preview(step) {
    this.choices.aim(step?.action ?? null);
    this.future.show(step);
  }

  /** A click or a tap on a piece of the board, or on none. */
  choose(piece, isTouch) {
    const { view } = this;
    this.keys.wereUsed = false;
    if (this.lastTurn.showing) {
      this.lastTurn.stop(true);
      return;
    }
    const step = this.stepTo(piece);
    if (isTouch && step && this.future.action !== step.action) {
      this.preview(step);
      notice("Tap again to move the Emperor there.");
    } else if (piece && view.turn === "agent") notice(`It is ${view.names[view.seat]}'s turn.`);
    else if (piece && view.turn === "person") this.decide(piece);
  }

  decide(piece) {
    const isPlace = ["court", "region"].includes(piece.kind);
    if (piece.open && piece.action !== null) this.play(piece.action);
    else if (this.view.phase !== "place" || !piece.open) notice(refusal(this.view, piece));
    else if (piece.kind === "reserve") {
      const clan = this.clanOf(piece);
      this.takeInHand(clan === this.clan ? null : clan);
    } else if (!isPlace) notice(refusal(this.view, piece));
    else if (this.clan === null) notice("Choose a paladin from your reserve first.");
    else this.placeAt(piece);
  }
}

function button(text, key, onclick) {
  const label = key ? { "aria-keyshortcuts": key } : {};
  return el("button", { type: "button", class: "quiet", onclick, ...label }, el("span", {}, text), key ? el("kbd", { "aria-hidden": "true" }, key) : null);
}
