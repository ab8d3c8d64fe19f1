// A game in play: shows it as the server answers, takes the decisions of people, and asks the bots.

import { get, openRecords, post, setSetting, setting } from "./api.js";
import { Choices } from "./choices.js";
import { button, clanNames, el, notice, say, select } from "./dom.js";
import { Keys } from "./keys.js";
import { Log } from "./log.js";
import { Opinions } from "./opinions.js";
import { shareButton } from "./position.js";
import { heading, layout, onLayout, pieceAt, Stage } from "./stage.js";

const SPEEDS = { slow: 1500, normal: 700, fast: 200, instant: 0 }; // milliseconds for each decision of a bot

export async function gamePage(main, menu, key) {
  await new GamePage(main, menu, key).open();
}

class GamePage {
  constructor(main, menu, key) {
    this.key = key;
    this.view = null; // the game as the server has it
    this.clan = null; // of the paladin in hand
    this.busy = false; // a decision is on its way
    this.paused = this.running = false; // bots
    this.tapped = null; // a move of the Emperor that awaits a second tap
    this.build(main, menu);
  }

  build(main, menu) {
    this.stage = new Stage((piece) => this.about(piece));
    this.choices = new Choices(this);
    this.log = new Log({ role: "log", "aria-label": "Game log" });
    this.keys = new Keys(this);
    this.hints = new Opinions({ "aria-live": "polite" });
    this.title = el("h1", { id: "turn" });
    this.doing = el("p", { class: "doing" });
    this.undoButton = button("Undo", "U", () => this.undo());
    this.hintButton = button("Hint", "H", () => this.hint());
    this.adviser = select(
      { "aria-label": "Bot that gives hints", onchange: () => setSetting("adviser", this.adviser.value) },
      menu.advisers,
      setting("adviser"),
    );
    this.speed = select(
      { "aria-label": "Bot speed", onchange: () => setSetting("speed", this.speed.value) },
      Object.keys(SPEEDS),
      setting("speed", "normal"),
    );
    this.pauseButton = button("Pause", "S", () => this.pause());
    this.bots = el("div", { class: "tools" }, el("label", {}, "Bots ", this.speed), this.pauseButton);
    const save = el("a", { class: "button", download: "carolus.jsonl", href: `/api/${this.path("record")}` }, "Save");
    this.reviewButton = button("Review", null, () => this.review());
    main.className = "table game";
    main.replaceChildren(
      el(
        "div",
        { class: "left" },
        this.stage.element,
        el(
          "div",
          { class: "tools below" },
          this.bots,
          el(
            "span",
            { class: "outside" },
            shareButton(() => this.view),
            save,
            this.reviewButton,
          ),
        ),
        this.stage.words,
      ),
      el(
        "div",
        { class: "right" },
        el(
          "section",
          { class: "card turn", "aria-label": "Decision" },
          this.title,
          this.doing,
          this.choices.element,
          el("div", { class: "tools" }, this.undoButton, this.hintButton, this.adviser),
          this.hints.element,
        ),
        el(
          "section",
          { class: "card story", "aria-labelledby": "log-title" },
          el("h2", { id: "log-title" }, "Log"),
          this.log.element,
        ),
      ),
    );
    let kind = "mouse"; // of the last press; not every browser reports it with the click
    this.stage.board.addEventListener("pointerdown", (event) => (kind = event.pointerType));
    this.stage.board.addEventListener("click", (event) => this.choose(pieceAt(event.target), kind === "touch"));
    onLayout(() => this.open());
  }

  // ------------------------------------------------------------------------------ the server

  path(request = "") {
    return `games/${this.key}${request && `/${request}`}`;
  }

  /** Take the game; a server that does not hold it gets the record that the browser keeps. */
  async open() {
    try {
      this.take(await get(`${this.path()}?${layout()}`));
    } catch (error) {
      const record = this.view?.record ?? (setting("game")?.key === this.key ? setting("game").record : null);
      if (error.status !== 404 || !record) throw error;
      const { agents, names, seed } = record;
      const game = await post(`games?${layout()}`, { record, agents, names, seed });
      setSetting("game", { key: game.key, names, record: game.record });
      location.replace(`/game/${game.key}`);
      return;
    }
    this.run();
  }

  /** Send a request about the game as it is shown and take the answer; returns whether that worked. */
  async send(request, data, since = this.view.at) {
    try {
      this.take(await post(`${this.path(request)}?${layout()}`, { ...data, version: this.view.version }), since);
      return true;
    } catch (error) {
      if (!error.answer?.stopped) notice(error.message);
      if (error.answer?.game)
        this.take(error.answer.game); // it has moved on elsewhere
      else if (error.status === 404) await this.open().catch(() => {});
      return false;
    }
  }

  async decide(request, data, since) {
    if (this.busy) return;
    this.busy = true;
    await this.send(request, data, since);
    this.busy = false;
    this.run();
  }

  play(action) {
    if (this.view.turn === "person") this.decide("play", { action });
  }

  undo() {
    if (this.view.undo) this.decide("undo", {}, this.view.at - 1);
  }

  async hint() {
    const { view } = this;
    if (view.turn !== "person" || this.hintButton.disabled) return;
    this.hintButton.disabled = true;
    const hint = await this.hints.ask(this.adviser.value, view.line, view.team_names);
    if (this.view !== view) return;
    this.hintButton.disabled = false;
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
    return openRecords("this game", JSON.stringify(this.view.record));
  }

  /** Start a new game with the same players. */
  async again() {
    const { rules, agents, names } = this.view;
    try {
      const game = await post("games", { rules, agents, names });
      location.assign(`/game/${game.key}`);
    } catch (error) {
      notice(error.message);
    }
  }

  // ------------------------------------------------------------------------------ bots

  /** Let bots decide until it is a person's turn, or the game is paused or over. */
  async run() {
    if (this.running) return;
    this.running = true;
    while (this.view.turn === "agent" && !this.paused) {
      const thinking = this.think();
      const shown = performance.now();
      const goesOn = await this.send("agent", {});
      clearInterval(thinking);
      if (!goesOn && this.view.turn === "agent") this.paused = true;
      await new Promise((resolve) =>
        setTimeout(
          resolve,
          this.view.turn === "agent" ? Math.max(0, SPEEDS[this.speed.value] - (performance.now() - shown)) : 0,
        ),
      );
    }
    this.running = false;
    this.showTurn();
  }

  /** Show for how long a bot has been thinking. */
  think() {
    const name = this.view.names[this.view.seat];
    const since = performance.now();
    const show = () => {
      const seconds = Math.floor((performance.now() - since) / 1000);
      this.doing.classList.add("thinking");
      this.doing.textContent = seconds < 2 ? `${name} is thinking` : `${name} has been thinking for ${seconds} s`;
    };
    show();
    return setInterval(show, 500);
  }

  /** Hold the bots, ending the search of the one that thinks; or let them go on. */
  pause() {
    if (this.view.turn !== "agent") return;
    this.paused = !this.paused;
    if (this.paused) post(this.path("stop"), {}).catch((error) => notice(error.message));
    this.showTurn();
    this.run();
  }

  // ------------------------------------------------------------------------------ the panel

  /** Show the game, with the log's lines from event `since` on. */
  take(view, since = 0) {
    const hadFocus = this.choices.hasFocus;
    this.view = view;
    this.tapped = null;
    setSetting("game", { key: this.key, names: view.names, record: view.record });
    this.clan = this.clanInHand();
    this.keys.forgetDigits();
    this.hints.clear();
    this.choices.advised = null;
    this.stage.show(view);
    this.markHand();
    this.showTurn();
    this.log.fill(view.log, view, since);
    this.log.markFresh(view.news);
    this.log.showEnd();
    if (hadFocus || (this.keys.wereUsed && view.turn === "person")) this.choices.focus();
  }

  showTurn() {
    const { view } = this;
    const isOver = view.turn === "over";
    this.title.textContent = heading(view);
    document.title = `${heading(view)} · Carolus`;
    this.doing.textContent = instruction(view, this.clan);
    this.doing.classList.remove("thinking");
    this.undoButton.disabled = !view.undo;
    this.hintButton.disabled = view.turn !== "person";
    this.pauseButton.disabled = view.turn !== "agent";
    this.pauseButton.firstChild.textContent = this.paused ? "Resume" : "Pause";
    this.bots.hidden = isOver || view.agents.every((agent) => agent === null);
    for (const tool of [this.hintButton, this.adviser, this.reviewButton, this.doing]) tool.hidden = isOver;
    this.undoButton.hidden = isOver && !view.undo;
    if (isOver) {
      const again = el("button", { type: "button", class: "primary", onclick: () => this.again() }, "Play again");
      this.choices.showEnd(
        again,
        button("Review", null, () => this.review()),
        el("a", { class: "button", href: "/" }, "New game"),
      );
    } else this.choices.show(view, this.clan);
    if (view.turn !== "agent") say(`${this.title.textContent}. ${this.doing.textContent}`);
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
    this.doing.textContent = instruction(this.view, clan);
    if (focused) this.choices.clanButton(focused)?.focus();
    if (clan) say(`${clan} paladin chosen. Choose your court or a region.`);
  }

  /** Mark the paladin in hand in the drawing. */
  markHand() {
    for (const token of this.stage.board.querySelectorAll(".reserve .token.open")) {
      token.classList.toggle("held", clanNames()[token.dataset.clan] === this.clan);
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
      const clan = clanNames()[piece.clan];
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
