// A game in play.

import { boardInWords, spoken, Tip } from "./about.js";
import { get, post, postFile } from "./api.js";
import { drawing, look, onLook, pieceAt, show } from "./board.js";
import { clanIcon, el, isTyping, notice, roundName, say, teamIcon } from "./dom.js";
import { opinionCard } from "./opinions.js";
import { keep, keptRecord, forget, setSetting, setting } from "./store.js";

const SPEEDS = { slow: 1500, normal: 700, fast: 200, "at once": 0 };
const CLANS = { r: "red", p: "pink", b: "blue", y: "yellow", g: "green" };
const DRAG = 6; // pixels that a press moves before it is a drag

export async function gamePage(main, menu, key) {
  const game = new GamePage(main, menu, key);
  await game.open();
}

class GamePage {
  constructor(main, menu, key) {
    this.menu = menu;
    this.key = key;
    this.view = null;
    this.lines = []; // of the log
    this.clan = null; // of the paladin in hand
    this.busy = false; // a decision is on its way
    this.paused = false;
    this.skipping = false;
    this.running = false;
    this.previews = new Map();
    this.previewed = null;
    this.build(main);
  }

  // ------------------------------------------------------------------------------ the page

  build(main) {
    this.board = el("div", { class: "board" });
    this.ghost = el("div", { class: "ghost", hidden: true });
    this.future = el("div", { class: "future", hidden: true });
    this.stage = el("section", { class: "stage", "aria-label": "Board" }, this.board, this.future);
    this.tip = new Tip(this.stage);
    this.words = boardInWords();
    this.title = el("h1", { id: "turn" });
    this.doing = el("p", { class: "doing" });
    this.choices = el("div", { class: "choices", role: "group", "aria-labelledby": "turn", tabindex: "-1" });
    this.log = el("ol", { class: "log", role: "log", "aria-label": "What happened", tabindex: "0" });
    this.undoButton = button("Undo", "U", () => this.undo());
    this.hintButton = button("Hint", "H", () => this.hint());
    this.skipButton = button("Skip", "S", () => this.skip());
    this.pauseButton = button("Pause", null, () => this.pause());
    this.speed = el("select", { "aria-label": "Speed of the bots", onchange: () => setSetting("speed", this.speed.value) }, Object.keys(SPEEDS).map((name) => el("option", { value: name }, name)));
    this.speed.value = setting("speed", "normal");
    if (!(this.speed.value in SPEEDS)) this.speed.value = "normal";
    this.adviser = el("select", { "aria-label": "Who gives hints", onchange: () => setSetting("adviser", this.adviser.value) }, this.menu.advisers.map((spec) => el("option", { value: spec }, spec)));
    const adviser = setting("adviser", "planner");
    this.adviser.value = this.menu.advisers.includes(adviser) ? adviser : this.menu.advisers[0];
    this.hints = el("div", { class: "opinions", "aria-live": "polite" });
    main.className = "table";
    main.replaceChildren(
      this.stage,
      el("section", { class: "card story", "aria-labelledby": "log-title" }, el("h2", { id: "log-title" }, "Log"), this.log),
      el(
        "section",
        { class: "panel", "aria-label": "What to do" },
        el("div", { class: "card turn" }, this.title, this.doing, this.choices, el("div", { class: "tools" }, this.undoButton, this.hintButton, this.adviser), this.hints),
        el("div", { class: "card bots" }, el("label", {}, "Bots ", this.speed), this.skipButton, this.pauseButton),
        el(
          "div",
          { class: "tools outside" },
          el("a", { class: "button", href: `/api/games/${this.key}/record`, download: "carolus.jsonl", id: "save" }, "Save"),
          (this.reviewButton = button("Look back", null, () => this.review())),
        ),
        this.words.card,
      ),
      this.ghost,
    );
    this.board.addEventListener("pointerdown", (event) => this.press(event));
    this.board.addEventListener("click", (event) => this.click(event));
    this.board.addEventListener("pointerover", (event) => this.hover(event));
    this.board.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.leave());
    document.addEventListener("keydown", (event) => this.keyDown(event));
    onLook(() => this.reload());
    new ResizeObserver(() => this.showEnd()).observe(this.log);
  }

  // ------------------------------------------------------------------------------ the game

  async open() {
    try {
      this.take(await get(`games/${this.key}?${this.query()}`));
    } catch (error) {
      const record = error.status === 404 ? (this.view?.record ?? keptRecord(this.key)) : null;
      if (record === null) throw error;
      const { agents, names, seed } = record;
      const game = await post(`games?${this.query()}`, { record, agents, names, seed });
      forget(this.key);
      this.key = game.key;
      history.replaceState(null, "", `/game/${game.key}`);
      document.getElementById("save").href = `/api/games/${game.key}/record`;
      this.take(game);
      notice("The server did not hold the game any more; it goes on where it was.");
    }
    this.run();
  }

  /** After an error: show the game as the server has it, or hand it to the server again. */
  async recover(error) {
    if (error.answer?.game) {
      this.take(error.answer.game);
      return true;
    }
    if (error.status !== 404) return false;
    return this.open().then(() => true, () => false);
  }

  query() {
    return look();
  }

  /** The board in another look; all the rest too, where the game has gone on elsewhere. */
  async reload() {
    const shown = this.view;
    if (!shown) return;
    try {
      const view = await get(`games/${this.key}?${this.query()}`);
      if (this.view !== shown) return this.reload();
      if (view.version !== shown.version) this.take(view);
      else {
        this.previews.clear();
        this.leave();
        shown.svg = view.svg;
        show(this.board, view.svg);
        this.markHand();
      }
    } catch (error) {
      notice(error.message);
    }
    return this.run();
  }

  /** Show the game as the server tells it. */
  take(view, since = 0) {
    const focused = this.choices.contains(document.activeElement);
    this.view = view;
    this.typed = "";
    this.previews.clear();
    this.leave();
    this.hints.replaceChildren();
    this.words.fill(view);
    if (view.turn !== "person" || view.phase !== "place") this.clan = null;
    else {
      const held = new Set(view.legal.map((decision) => decision.clan));
      if (!held.has(this.clan)) this.clan = held.size === 1 ? [...held][0] : null;
    }
    show(this.board, view.svg);
    this.markHand();
    this.showTurn();
    this.showChoices();
    this.showLog(since);
    keep(this.key, view);
    if (focused || (this.usedKeys && view.turn === "person")) this.focusChoices();
  }

  async send(what, data) {
    const { at, version } = this.view;
    try {
      const since = what === "undo" ? at - 1 : at;
      this.take(await post(`games/${this.key}/${what}?${this.query()}`, { ...data, version }), since);
      return true;
    } catch (error) {
      notice(error.message);
      await this.recover(error);
      return false;
    }
  }

  async play(action) {
    if (this.busy || this.view.turn !== "person") return;
    this.busy = true;
    notice("");
    try {
      await this.send("play", { action });
    } finally {
      this.busy = false;
    }
    this.run();
  }

  async undo() {
    if (this.busy || !this.view.undo) return;
    this.busy = true;
    try {
      if (await this.send("undo", {})) say("Undone.");
    } finally {
      this.busy = false;
    }
    this.run();
  }

  /** Let the bots play on, one decision after the other. */
  async run() {
    if (this.running) return;
    this.running = true;
    try {
      while (this.view.turn === "agent" && !this.paused) {
        const shown = performance.now();
        const waiting = this.think();
        const done = await this.ask(() => this.rest(shown));
        clearInterval(waiting);
        this.doing.classList.remove("thinking");
        if (!done) break;
      }
    } finally {
      this.running = false;
      this.skipping = false;
      this.showTurn();
    }
  }

  async ask(rest) {
    const { at, version } = this.view;
    let next;
    try {
      next = await post(`games/${this.key}/agent?${this.query()}`, { version });
    } catch (error) {
      if (await this.recover(error)) return true;
      notice(error.message);
      if (error.status === 503) {
        await new Promise((resolve) => setTimeout(resolve, 1000)); // others are thinking
        return true;
      }
      this.paused = true;
      return false;
    }
    await rest();
    this.take(next, at);
    return true;
  }

  /** Show that a bot thinks, and for how long it has. */
  think() {
    const name = this.view.names[this.view.seat];
    const since = performance.now();
    this.doing.classList.add("thinking");
    const tell = () => {
      const seconds = Math.floor((performance.now() - since) / 1000);
      this.doing.textContent = seconds < 2 ? `${name} thinks` : `${name} thinks, ${seconds} s. You can leave; the game is kept.`;
    };
    tell();
    return setInterval(tell, 500);
  }

  /** Wait until what is shown has been there for a while. */
  rest(shown) {
    return new Promise((resolve) => {
      const look = () => {
        const wait = this.skipping ? 0 : SPEEDS[this.speed.value];
        if (performance.now() - shown >= wait) resolve();
        else setTimeout(look, 30);
      };
      look();
    });
  }

  skip() {
    this.skipping = true;
    this.paused = false;
    this.run();
  }

  pause() {
    this.paused = !this.paused;
    this.showTurn();
    this.run();
  }

  async review() {
    try {
      const book = await postFile("this game", JSON.stringify(this.view.record));
      location.assign(`/replay/${book.key}`);
    } catch (error) {
      notice(error.message);
    }
  }

  /** A new game with the same players. */
  async again() {
    const { rules, agents, names } = this.view;
    try {
      const game = await post("games", { rules, agents, names: names.map((name, seat) => (agents[seat] === null ? name : null)) });
      location.assign(`/game/${game.key}`);
    } catch (error) {
      notice(error.message);
    }
  }

  async hint() {
    const view = this.view;
    if (view.turn !== "person" || this.hintButton.disabled) return;
    const agent = this.adviser.value;
    this.hints.replaceChildren(el("p", { class: "thinking" }, `${agent} thinks`));
    this.hintButton.disabled = true;
    try {
      const found = await post(`games/${this.key}/hint`, { agent, version: view.version });
      if (this.view === view) this.hints.replaceChildren(opinionCard(found, view.team_names));
    } catch (error) {
      this.hints.replaceChildren();
      notice(error.message);
    } finally {
      this.hintButton.disabled = this.view.turn !== "person";
    }
  }

  // ------------------------------------------------------------------------------ the panel

  showTurn() {
    const view = this.view;
    const agents = view.agents.some((agent) => agent !== null);
    this.title.textContent = prompt(view);
    document.title = `${prompt(view)} · Carolus`;
    this.doing.textContent = instruction(view, this.clan);
    this.undoButton.disabled = !view.undo;
    this.hintButton.disabled = view.turn !== "person";
    this.skipButton.disabled = view.turn !== "agent";
    this.pauseButton.disabled = view.turn !== "agent";
    this.pauseButton.firstChild.textContent = this.paused ? "Go on" : "Pause";
    this.skipButton.closest(".bots").hidden = !agents || view.turn === "over";
    const isOver = view.turn === "over";
    this.undoButton.hidden = isOver && !view.undo;
    for (const tool of [this.hintButton, this.adviser, this.reviewButton, this.doing]) tool.hidden = isOver;
    if (view.turn !== "agent") say(`${this.title.textContent}. ${this.doing.textContent}`);
  }

  showChoices() {
    const view = this.view;
    const parts = [];
    if (view.turn === "over") {
      const again = button("Play again", null, () => this.again());
      again.className = "primary";
      parts.push(again, button("Look back", null, () => this.review()), el("a", { class: "button", href: "/" }, "New game"));
    } else if (view.turn === "person") {
      if (view.phase === "place") parts.push(...this.placeChoices());
      else if (view.phase === "move") parts.push(...this.moveChoices());
      else parts.push(...view.legal.map((decision) => this.choice(decision)));
    }
    this.choices.className = `choices ${view.turn === "person" ? view.phase : view.turn}`;
    this.choices.replaceChildren(...parts);
  }

  choice(decision) {
    const inside = decision.clan ? [clanIcon(decision.clan), decision.clan] : [decision.text];
    const attributes = { class: "choice", type: "button", "data-action": decision.action, onclick: () => this.play(decision.action) };
    if (decision.kind === "crown") attributes["aria-label"] = `The crown becomes ${decision.clan}`;
    return el("button", attributes, inside);
  }

  moveChoices() {
    return this.view.steps.map((step) =>
      el(
        "button",
        {
          class: `choice step${step.changes ? " changes" : ""}`,
          type: "button",
          "data-action": step.action,
          onclick: () => this.play(step.action),
          onfocus: () => this.preview(step),
          onblur: () => this.preview(null),
          onpointerenter: () => this.preview(step),
          onpointerleave: () => this.preview(null),
        },
        el("b", {}, step.text),
        el("span", {}, step.changes ? teamIcon(step.team) : "", step.result),
      ),
    );
  }

  placeChoices() {
    const view = this.view;
    const clans = new Map(view.legal.map((decision) => [decision.clan, decision.held]));
    const hand = el(
      "div",
      { class: "hand", role: "group", "aria-label": "Paladin" },
      [...clans].map(([clan, held]) =>
        el(
          "button",
          { class: "choice clan", type: "button", "data-clan": clan, "aria-pressed": String(clan === this.clan), onclick: () => this.takeInHand(clan === this.clan ? null : clan) },
          clanIcon(clan),
          el("span", {}, clan),
          el("small", {}, `× ${held}`),
        ),
      ),
    );
    const clan = this.clan ?? view.legal[0].clan;
    const places = view.legal.filter((decision) => decision.clan === clan);
    const where = el(
      "div",
      { class: "where", role: "group", "aria-label": "Where to" },
      places.map((decision) =>
        el(
          "button",
          {
            class: "choice",
            type: "button",
            "data-action": this.clan === null ? null : decision.action,
            "data-to": decision.to,
            "data-text": decision.text,
            "aria-label": decision.to === 0 ? `${this.clan ?? ""} to the court` : `${this.clan ?? ""} to region ${decision.text}${decision.to === 1 ? ", the Emperor's" : ""}`,
            "aria-description": this.clan === null ? null : spoken(decision),
            disabled: this.clan === null,
            onclick: () => this.play(decision.action),
            onfocus: () => this.tell(this.destination(decision.to)),
            onblur: () => this.tip.hide(),
            onpointerenter: () => this.tell(this.destination(decision.to)),
            onpointerleave: () => this.tip.hide(),
          },
          decision.text,
        ),
      ),
    );
    return [hand, where];
  }

  takeInHand(clan) {
    this.clan = clan;
    this.typed = "";
    notice("");
    const focused = document.activeElement?.dataset?.clan;
    this.markHand();
    this.showChoices();
    this.doing.textContent = instruction(this.view, clan);
    if (focused) this.choices.querySelector(`[data-clan="${focused}"]`)?.focus();
    if (clan) say(`${clan} in hand. Where to?`);
  }

  /** Mark the paladin in hand in the drawing. */
  markHand() {
    this.board.classList.toggle("holding", this.clan !== null);
    const index = Object.values(CLANS).indexOf(this.clan);
    for (const token of this.board.querySelectorAll(".reserve .token.open")) {
      token.classList.toggle("held", Number(token.dataset.clan) === index);
    }
  }

  showLog(since) {
    const view = this.view;
    this.lines = [...this.lines.filter((line) => line.event < since), ...view.log];
    while (this.log.lastChild && Number(this.log.lastChild.dataset.event) >= since) this.log.lastChild.remove();
    this.log.append(
      ...view.log.map((line) =>
        el("li", { "data-event": line.event, title: line.text }, teamIcon(view.teams[line.seat]), el("b", {}, view.names[line.seat]), " ", line.words),
      ),
    );
    this.markLog();
    this.showEnd();
  }

  showEnd() {
    this.log.scrollTop = this.log.scrollHeight;
  }

  /** Where rounds begin, and what happened since a person decided. */
  markLog() {
    const { agents } = this.view;
    const seen = this.lines.findLast((line) => agents[line.seat] === null)?.event ?? -1;
    this.lines.forEach((line, i) => {
      const item = this.log.children[i];
      item.classList.toggle("fresh", line.event > seen && agents.includes(null));
      const round = roundName(line, this.lines[i - 1]);
      if (round) item.dataset.round = round;
    });
  }

  focusChoices() {
    const first = this.choices.querySelector('[aria-pressed="true"], button:not([disabled]), a');
    (first ?? this.choices).focus({ preventScroll: true });
  }

  // ------------------------------------------------------------------------------ previews

  hover(event) {
    const piece = pieceAt(event.target);
    const step = this.stepTo(piece);
    if (event.pointerType !== "touch") this.preview(step);
    this.tell(step ? null : piece);
  }

  leave() {
    this.preview(null);
    this.tip.hide();
  }

  /** Beside a piece of the board: what the paladin in hand would do there, or how a region stands. */
  tell(piece) {
    const view = this.view;
    const to = piece?.kind === "region" ? piece.region + 1 : piece?.kind === "court" && piece.open ? 0 : null;
    const isAsked = to !== null && view.turn !== "over";
    const decision = isAsked && this.clan && view.legal.find((found) => found.clan === this.clan && found.to === to);
    this.tip.show(piece?.element, isAsked ? decision || view.regions[to - 1] : null);
  }

  /** The piece of the board that a paladin goes to. */
  destination(to) {
    return pieceAt(this.board.querySelector(to === 0 ? ".court.open" : `.region[data-region="${to - 1}"]`));
  }

  /** The step that leads the Emperor to a piece of the board; null: none does. */
  stepTo(piece) {
    if (!["region", "step"].includes(piece?.kind) || !piece.open || this.view.turn !== "person") return null;
    return this.view.steps.find((found) => found.action === piece.action) ?? null;
  }

  /** Show the board after a step of the Emperor; null: the board as it is. */
  async preview(step) {
    if (this.previewed === (step?.action ?? null)) return;
    this.previewed = step?.action ?? null;
    for (const button of this.choices.querySelectorAll(".step")) {
      button.classList.toggle("aimed", Number(button.dataset.action) === this.previewed);
    }
    if (step === null) {
      this.future.hidden = true;
      this.future.replaceChildren();
      return;
    }
    const view = this.view;
    if (!this.previews.has(step.action)) {
      this.previews.set(step.action, get(`games/${this.key}/step/${step.action}?${this.query()}`));
    }
    try {
      const { svg } = await this.previews.get(step.action);
      if (this.view !== view || this.previewed !== step.action) return;
      this.future.replaceChildren(drawing(svg), el("p", {}, `After ${step.text}: ${step.result}`));
      this.future.hidden = false;
    } catch {
      this.previews.delete(step.action); // the list says the result anyway
    }
  }

  // ------------------------------------------------------------------------------ pointer

  click(event) {
    this.usedKeys = false;
    if (this.dragged) return;
    const piece = pieceAt(event.target);
    const step = this.stepTo(piece);
    if (this.pointer === "touch" && step && this.previewed !== step.action) {
      this.preview(step);
      notice("Tap again to go there.");
    } else if (piece && this.view.turn === "person") this.choose(piece);
    else if (piece && this.view.turn === "agent") notice(`It is the turn of ${this.view.names[this.view.seat]}.`);
  }

  choose(piece) {
    const view = this.view;
    if (piece.action !== null && piece.open) {
      this.play(piece.action);
    } else if (view.phase !== "place") {
      notice(refusal(view, piece));
    } else if (piece.kind === "reserve" && piece.open) {
      const clan = Object.values(CLANS)[piece.clan];
      this.takeInHand(clan === this.clan ? null : clan);
    } else if ((piece.kind === "court" || piece.kind === "region") && piece.open) {
      if (this.clan === null) notice("Take a paladin of your reserve first.");
      else this.placeAt(piece);
    } else {
      notice(refusal(view, piece));
    }
  }

  placeAt(piece) {
    const to = piece.kind === "court" ? 0 : piece.region + 1;
    const decision = this.view.legal.find((found) => found.clan === this.clan && found.to === to);
    if (decision) this.play(decision.action);
  }

  press(event) {
    this.dragged = false;
    this.pointer = event.pointerType; // not every browser says it with the click
    const piece = pieceAt(event.target);
    if (event.button !== 0 || piece?.kind !== "reserve" || !piece.open) return;
    const start = { x: event.clientX, y: event.clientY };
    const clan = Object.values(CLANS)[piece.clan];
    const under = (moved) => pieceAt(document.elementFromPoint(moved.clientX, moved.clientY));
    const mayTake = (found) => found !== null && found.open && (found.kind === "court" || found.kind === "region");
    const aim = (found) => this.tell(mayTake(found) ? found : null);
    const move = (moved) => {
      if (!this.dragged && Math.hypot(moved.clientX - start.x, moved.clientY - start.y) < DRAG) return;
      if (!this.dragged) {
        this.dragged = true;
        this.takeInHand(clan);
        this.ghost.replaceChildren(clanIcon(clan));
        this.ghost.hidden = false;
      }
      this.ghost.style.translate = `${moved.clientX}px ${moved.clientY}px`;
      aim(under(moved));
    };
    const end = (last) => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      document.removeEventListener("pointercancel", end);
      this.ghost.hidden = true;
      aim(null);
      if (!this.dragged || last.type === "pointercancel") return;
      const found = under(last);
      if (mayTake(found)) this.placeAt(found);
      else this.takeInHand(null);
    };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
    event.preventDefault();
  }

  // ------------------------------------------------------------------------------ keys

  keyDown(event) {
    if (isTyping(event) || !this.view) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const actions = { u: () => this.undo(), h: () => this.hint(), s: () => this.skip(), Escape: () => this.takeInHand(null) };
    const handled =
      this.arrow(key) ||
      this.clanKey(key) ||
      this.numberKey(key) ||
      (key === "c" && this.find((button) => button.dataset.to === "0"));
    if (handled || actions[key]) {
      this.usedKeys = true;
      event.preventDefault();
      if (!handled && (key !== "Escape" || this.clan !== null)) actions[key]();
    } else if (key === "Enter" || key === " ") this.usedKeys = true;
  }

  /** From one button of the decision to the next. */
  arrow(key) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
    if (!way || (document.activeElement !== document.body && !this.choices.contains(document.activeElement))) return false;
    const buttons = [...this.choices.querySelectorAll("button:not([disabled])")];
    if (buttons.length === 0) return false;
    const at = buttons.indexOf(document.activeElement);
    const next = at < 0 && way < 0 ? buttons.length - 1 : at + way;
    buttons[(next + buttons.length) % buttons.length].focus({ preventScroll: true });
    return true;
  }

  clanKey(key) {
    const clan = CLANS[key];
    if (!clan || this.view.turn !== "person") return false;
    if (this.view.phase === "crown") return this.find((button) => button.textContent === clan);
    if (this.view.phase !== "place" || !this.view.legal.some((decision) => decision.clan === clan)) return false;
    this.takeInHand(clan);
    this.choices.querySelector(`[data-clan="${clan}"]`).focus({ preventScroll: true });
    return true;
  }

  /** Digits find a disc, a number of steps, or the region of a territory of one or two digits. */
  numberKey(key) {
    if (!/^[0-9]$/.test(key) || this.view.turn !== "person") return false;
    const phase = this.view.phase;
    if (phase === "disc") return this.find((button) => button.textContent === `disc ${key}`);
    if (phase === "move") return this.find((button) => button.textContent.startsWith(`${key} step`));
    if (phase !== "place" || this.clan === null) return false;
    const now = performance.now();
    const longer = this.typed && now - this.typedAt < 1500 ? `${this.typed}${key}` : key;
    this.typed = Number(longer) < 15 && longer.length < 3 ? longer : key;
    this.typedAt = now;
    return this.find((button) => covers(button.dataset.text, Number(this.typed)));
  }

  find(fits) {
    const found = [...this.choices.querySelectorAll("button:not([disabled])")].find(fits);
    found?.focus({ preventScroll: true });
    return found !== undefined;
  }
}

function button(text, key, onclick) {
  const label = key ? { "aria-keyshortcuts": key } : {};
  return el("button", { type: "button", class: "quiet", onclick, ...label }, el("span", {}, text), key ? el("kbd", { "aria-hidden": "true" }, key) : null);
}

/** Whether a region, `7` or `14-1`, holds a territory. */
function covers(text, territory) {
  if (!/^\d/.test(text ?? "")) return false;
  const [first, last] = [...text.split("-"), text].slice(0, 2).map(Number);
  return (territory - first + 15) % 15 <= (last - first + 15) % 15;
}

function prompt(view) {
  if (view.turn === "over") return view.outcome;
  const name = view.names[view.seat];
  return view.round === 0 ? `Set-up: ${name}` : `Round ${view.round}: ${name}`;
}

function instruction(view, clan) {
  if (view.turn !== "person") return view.turn === "agent" ? `${view.names[view.seat]} is to play.` : "";
  if (view.phase === "disc") return "Play a disc. Low numbers take their turn first; the number is also how far you may move the Emperor.";
  if (view.phase === "crown") return `A crown: choose the clan of the paladin that you get${view.crowns > 1 ? ` (${view.crowns} to decide)` : ""}.`;
  if (view.phase === "move") return "Move the Emperor. Where he stops, castles go to the strongest.";
  const left = view.left === 1 ? "The last paladin of this turn" : `${view.left} paladins are to be played`;
  return clan ? `${left}. Where does the ${clan} one go: to your court, or to a region?` : `${left}. Take one of your reserve.`;
}

function refusal(view, piece) {
  if (view.phase === "disc") return piece.kind === "disc" ? "That disc cannot be played now." : "A disc is to be played.";
  if (view.phase === "crown") return "A clan of the supply is to be chosen for the crown.";
  if (view.phase === "move") return piece.kind === "region" ? `The Emperor cannot reach ${piece.territories} in this turn.` : "The Emperor is to be moved.";
  return "A paladin goes from your reserve to your court or to a region.";
}
