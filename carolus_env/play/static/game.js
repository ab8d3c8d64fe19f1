// A game in play: shows it as the server answers, takes the decisions of people, and asks the bots.

import { cut, keep, keepGame, kept, look, setSetting, setting } from "./api.js";
import { Choices } from "./choices.js";
import { copy, el, fill, looks, notice, say } from "./dom.js";
import { Keys } from "./keys.js";
import { Log } from "./log.js";
import { Opinions } from "./opinions.js";
import { saveRecord, share } from "./share.js";
import { heading, onLayout, pieceAt, Stage } from "./stage.js";

const SPEEDS = { slow: 1500, normal: 700, fast: 200, instant: 0 }; // milliseconds for each decision of a bot

export async function gamePage(main, menu) {
  const record = kept("game") ?? setting("game");
  if (!record) throw new Error("There is no game in this tab.");
  await new GamePage(main, menu).open(record);
}

class GamePage {
  constructor(main, menu) {
    this.view = null; // the game as the server has shown it
    this.clan = null; // of the paladin in hand
    this.busy = false; // a decision is on its way
    this.paused = this.running = false; // bots
    this.thinking = new AbortController(); // of a bot
    this.tapped = null; // a move of the Emperor that awaits a second tap
    const parts = copy("game");
    this.parts = parts;
    this.stage = new Stage(parts, (piece) => this.about(piece));
    this.choices = new Choices(this, parts.choices);
    this.log = new Log(parts.log);
    this.keys = new Keys(this);
    this.hints = new Opinions(parts.opinions);
    fill(parts.adviser, menu.advisers, setting("adviser"), (adviser) => setSetting("adviser", adviser));
    fill(parts.speed, Object.keys(SPEEDS), setting("speed", "normal"), (speed) => setSetting("speed", speed));
    parts.undo.onclick = () => this.undo();
    parts.hint.onclick = () => this.hint();
    parts.pause.onclick = () => this.pause();
    parts.share.onclick = () => share(this.view);
    parts.save.onclick = () => saveRecord(this.view.record);
    parts.review.onclick = () => this.review();
    main.className = "table game";
    main.replaceChildren(parts.all);
    let kind = "mouse"; // of the last press; not every browser reports it with the click
    this.stage.board.addEventListener("pointerdown", (event) => (kind = event.pointerType));
    this.stage.board.addEventListener("click", (event) => this.choose(pieceAt(event.target), kind === "touch"));
    onLayout(() => this.open(this.view.record));
  }

  // ------------------------------------------------------------------------------ the server

  /** Show a game: when the page begins, or again in a window of another form. */
  async open(record) {
    const before = this.view;
    const view = await look("view", { record });
    if (this.view === before) this.take(view);
    this.run();
  }

  /** Ask for a game; null: it was refused, and the page has said why, or `signal` has ended the request. */
  async ask(request, data, signal) {
    try {
      return await look(request, data, signal);
    } catch (error) {
      if (!signal?.aborted) notice(error.message);
      return null;
    }
  }

  /** Change the game by a request, whose answer has the log from event `since` on. */
  async change(request, data, since) {
    if (this.busy) return;
    this.busy = true;
    const view = await this.ask(request, { ...data, since });
    this.busy = false;
    if (view) this.take(view, since);
    this.run();
  }

  play(action) {
    const { at, record, turn } = this.view;
    if (turn === "person") this.change("decide", { record, action }, at);
  }

  undo() {
    const { at, record, undo } = this.view;
    if (undo) this.change("view", { record: cut(record, at - 1) }, at - 1);
  }

  async hint() {
    const { view } = this;
    const { adviser, hint: button } = this.parts;
    if (view.turn !== "person" || button.disabled) return;
    button.disabled = true;
    const hint = await this.hints.ask(adviser.value, view.record, view.team_names);
    if (this.view !== view) return;
    button.disabled = false;
    if (hint) this.advise(hint.choice.action);
  }

  /** Mark an action among the buttons and on the board. */
  advise(action) {
    this.choices.advised = action;
    const decision = this.view.legal.find((found) => found.action === action);
    this.takeInHand(decision.kind === "place" ? decision.clan : null);
    const place =
      decision.kind === "place"
        ? this.stage.destination(decision.to).element
        : this.stage.board.querySelector(`[data-action="${action}"]`);
    (place ?? this.stage.destination(decision.region + 1).element).classList.add("advised");
  }

  /** Open the game in the viewer. */
  review() {
    keep("replay", this.view.record);
    location.assign("/replay/own");
  }

  /** Start a new game with the same players. */
  again() {
    const { rules, agents, names } = this.view;
    this.change("view", { rules, agents, names }, 0);
  }

  // ------------------------------------------------------------------------------ bots

  /** Let bots decide until it is a person's turn, or the game is paused or over. */
  async run() {
    if (this.running) return;
    this.running = true;
    while (this.view.turn === "agent" && !this.paused) {
      const telling = this.tellThinking();
      this.thinking = new AbortController();
      const { at, record } = this.view;
      const view = await this.ask("decide", { record, since: at }, this.thinking.signal);
      clearInterval(telling);
      if (view) await this.follow(view);
      else this.paused = true;
    }
    this.running = false;
    this.showTurn();
  }

  /** Show the decisions that a bot has taken one by one, until the bots are paused; then the rest is dropped. */
  async follow(view) {
    const first = this.view.at;
    const pace = () => SPEEDS[this.parts.speed.value]; // it may change meanwhile
    const wait = () => new Promise((resolve) => setTimeout(resolve, pace()));
    const stops = view.record.events.flatMap((event, index) => (index > first && "action" in event ? [index] : []));
    for (const stop of stops) {
      const since = this.view.at;
      if (!pace() || this.paused) break;
      const step = await this.ask("view", { record: cut(view.record, stop), since });
      if (step && !this.paused) this.take(step, since);
      await wait();
    }
    if (this.paused) return;
    this.take(view, first);
    if (view.turn === "agent") await wait();
  }

  /** Show for how long a bot has been thinking; returns the timer. */
  tellThinking() {
    const { doing } = this.parts;
    const name = this.view.names[this.view.seat];
    const since = performance.now();
    const show = () => {
      const seconds = Math.floor((performance.now() - since) / 1000);
      doing.classList.add("thinking");
      doing.textContent = seconds < 2 ? `${name} is thinking` : `${name} has been thinking for ${seconds} s`;
    };
    show();
    return setInterval(show, 500);
  }

  /** Hold the bots, ending the search of the one that thinks; or let them go on. */
  pause() {
    if (this.view.turn !== "agent") return;
    this.paused = !this.paused;
    if (this.paused) this.thinking.abort();
    this.showTurn();
    this.run();
  }

  // ------------------------------------------------------------------------------ the panel

  /** Show the game, with the log's lines from event `since` on. */
  take(view, since = 0) {
    const hadFocus = this.choices.hasFocus;
    this.view = view;
    this.tapped = null;
    const isKept = keepGame(view.record);
    this.parts.problem.textContent = isKept
      ? ""
      : "This browser's storage is full or blocked: this tab cannot keep the game. Save it before you leave.";
    this.clan = this.clanInHand();
    this.keys.forgetDigits();
    this.hints.clear();
    this.choices.advised = null;
    this.stage.show(view);
    this.markHand();
    this.showTurn();
    this.log.fill(view, since);
    this.log.markFresh(view.news);
    if (hadFocus || (this.keys.wereUsed && view.turn === "person")) this.choices.focus();
  }

  showTurn() {
    const { parts, view } = this;
    const isOver = view.turn === "over";
    parts.title.textContent = heading(view);
    document.title = `${heading(view)} · Carolus`;
    parts.doing.textContent = instruction(view, this.clan);
    parts.doing.classList.remove("thinking");
    parts.undo.disabled = !view.undo;
    parts.hint.disabled = view.turn !== "person";
    parts.pause.disabled = view.turn !== "agent";
    parts.pause.firstChild.textContent = this.paused ? "Resume" : "Pause";
    parts.bots.hidden = isOver || view.agents.every((agent) => agent === null);
    for (const name of ["hint", "adviser", "review", "doing"]) parts[name].hidden = isOver;
    parts.undo.hidden = isOver && !view.undo;
    if (isOver) {
      this.choices.showEnd(
        el("button", { type: "button", class: "primary", onclick: () => this.again() }, "Play again"),
        el("button", { type: "button", class: "quiet", onclick: () => this.review() }, "Review"),
        el("a", { class: "button", href: "/" }, "New game"),
      );
    } else this.choices.show(view, this.clan);
    if (view.turn !== "agent") say(`${parts.title.textContent}. ${parts.doing.textContent}`);
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
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.clan;
    this.markHand();
    this.choices.show(this.view, clan);
    this.parts.doing.textContent = instruction(this.view, clan);
    if (focused) this.choices.clanButton(focused)?.focus();
    if (clan) say(`${clan} paladin chosen. Choose your court or a region.`);
  }

  /** Mark the paladin in hand in the drawing. */
  markHand() {
    for (const token of this.stage.board.querySelectorAll(".reserve .token.open")) {
      token.classList.toggle("held", looks.clans[token.dataset.clan].name === this.clan);
    }
  }

  /** The decision that a piece of the board stands for, with the paladin in hand; undefined: none. */
  decisionAt(piece) {
    if (!piece?.open || this.view.turn !== "person") return undefined;
    if (piece.action !== null) return this.view.legal.find((found) => found.action === piece.action);
    const to = { court: 0, region: piece.region + 1 }[piece.kind];
    return this.view.legal.find((found) => found.kind === "place" && found.clan === this.clan && found.to === to);
  }

  // ------------------------------------------------------------------------------ pointing

  /** What to tell beside a piece: what a decision there would do, or how the region stands. */
  about(piece) {
    if (!["region", "step", "court"].includes(piece?.kind) || this.view.turn === "over") return null;
    const region = piece.kind === "court" ? null : this.view.regions[piece.region];
    const decision = this.decisionAt(piece);
    return decision?.result ? { ...region, ...decision } : region;
  }

  /** The tip beside the place of a paladin or a stop of the Emperor; null: none. */
  describe(to) {
    const piece = to === null ? null : this.stage.destination(to);
    this.stage.tell(piece?.element, piece && this.about(piece));
  }

  /** A click or a tap on a piece of the board, or on none. */
  choose(piece, isTouch) {
    const { view } = this;
    this.keys.wereUsed = false;
    if (!piece || view.turn === "over") return;
    if (view.turn === "agent") {
      notice(`It is ${view.names[view.seat]}'s turn.`);
      return;
    }
    const decision = this.decisionAt(piece);
    if (isTouch && decision?.kind === "move" && this.tapped !== decision.action) {
      this.tapped = decision.action;
      this.stage.tell(piece.element, this.about(piece));
      notice("Tap again to move the Emperor there.");
    } else if (decision) this.play(decision.action);
    else if (piece.open && piece.kind === "reserve") {
      const clan = looks.clans[piece.clan].name;
      this.takeInHand(clan === this.clan ? null : clan);
    } else if (piece.open && view.phase === "place") notice("Choose a paladin from your reserve first.");
    else notice(refusal(view, piece));
  }
}

// ------------------------------------------------------------------------------------ texts

/** What to do now; `clan` is that of the paladin in hand, or null. */
function instruction(view, clan) {
  if (view.turn === "over") return "";
  if (view.turn === "agent") return `It is ${view.names[view.seat]}'s turn.`;
  if (view.phase === "disc")
    return "Play a disc. Low numbers take their turns first; the number is also how many steps you may move the Emperor.";
  if (view.phase === "crown")
    return `You rolled a crown: choose the clan of your new paladin${view.crowns > 1 ? ` (${view.crowns} crowns left)` : ""}.`;
  if (view.phase === "move")
    return "Move the Emperor. In the region where he stops, the strongest player builds a castle or takes over those there.";
  const play = view.left === 1 ? "Play your last paladin of this turn" : `Play ${view.left} paladins`;
  return clan
    ? `${play}: choose your court or a region for the ${clan} one.`
    : `${play}: choose one from your reserve.`;
}

/** Why a click on a piece of the board does nothing. */
function refusal(view, piece) {
  if (view.phase === "disc") return piece.kind === "disc" ? "You cannot play that disc now." : "Play a disc first.";
  if (view.phase === "crown") return "Choose a clan from the supply for your crown.";
  if (view.phase === "move")
    return piece.kind === "region"
      ? `The Emperor cannot reach ${piece.territories} this turn.`
      : "Move the Emperor now.";
  return "A paladin goes from your reserve to your court or to a region.";
}
