// The viewer: a recorded game, step by step, with what an agent thinks of it.

import { filesCard, get, post, setSetting, setting } from "./api.js";
import { button, el, isTyping, notice, say, select } from "./dom.js";
import { graph } from "./graph.js";
import { Log } from "./log.js";
import { Opinions } from "./opinions.js";
import { shareButton } from "./position.js";
import { layout, onLayout, Stage } from "./stage.js";
import { newGameForm } from "./start.js";

const PACE = 1000; // milliseconds at a position of a game that plays by itself

export async function replayPage(main, menu, key) {
  document.title = "Viewer · Carolus";
  if (!key) {
    main.className = "start";
    main.replaceChildren(filesCard(menu));
    return;
  }
  await new Viewer(main, menu, key, await get(`files/${key}`)).open();
}

class Viewer {
  constructor(main, menu, key, file) {
    this.menu = menu;
    this.key = key;
    this.file = file;
    this.at = 0;
    this.asked = 0; // numbers the requests, so that late answers are dropped
    this.timer = null; // of a game that plays by itself
    this.build(main);
  }

  build(main) {
    this.stage = new Stage((piece) =>
      piece?.kind === "region" && this.view && !this.view.outcome ? this.view.regions[piece.region] : null,
    );
    this.title = el("h1", {});
    this.result = el("p", { class: "doing" });
    this.games = el(
      "select",
      { "aria-label": "Game", onchange: () => this.openGame(Number(this.games.value)) },
      this.file.games.map((game, number) => el("option", { value: number }, describe(game))),
    );
    const picker = el(
      "label",
      { class: "picker", hidden: this.file.games.length < 2 },
      `${this.file.games.length} games `,
      this.games,
    );
    this.adviser = select(
      { "aria-label": "Bot to ask", onchange: () => this.adviserChanged() },
      this.menu.advisers,
      setting("adviser"),
    );
    this.graphPlace = el("div", { class: "graph-place" });
    this.opinions = new Opinions();
    this.log = new Log({ "aria-label": "Events" });
    this.save = el("a", { class: "button", download: "carolus.jsonl" }, "Save");
    main.className = "table viewer";
    main.replaceChildren(
      el(
        "div",
        { class: "left" },
        this.stage.element,
        el("section", { class: "card", "aria-label": "Position" }, this.transport(), this.graphPlace),
        this.stage.words,
      ),
      el(
        "section",
        { class: "right", "aria-label": "The game" },
        el(
          "div",
          { class: "card" },
          this.title,
          this.result,
          picker,
          el(
            "div",
            { class: "tools" },
            button("Play from here", null, () => this.playFromHere()),
            shareButton(() => this.view),
            this.save,
          ),
        ),
        el(
          "div",
          { class: "card" },
          el("div", { class: "head" }, el("h2", {}, "Opinion of"), this.adviser),
          this.opinions.element,
        ),
        el("div", { class: "card" }, el("h2", {}, "Log"), this.log.element),
        problemsCard(this.file),
      ),
    );
    this.log.element.addEventListener("click", (event) => {
      const line = event.target.closest("[data-event]");
      if (line) this.go(Number(line.dataset.event) + 1);
    });
    addEventListener("hashchange", () => this.open());
    document.addEventListener("keydown", (event) => this.keyDown(event));
    onLayout(() => this.draw());
  }

  /** The slider and the buttons that go from position to position. */
  transport() {
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      "aria-label": "Position",
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.count = el("output", {});
    this.playButton = el(
      "button",
      {
        type: "button",
        class: "primary",
        "aria-keyshortcuts": "Space",
        onclick: () => this.autoplay(this.timer === null),
      },
      "Play",
    );
    const step = (text, label, key) =>
      el(
        "button",
        {
          type: "button",
          "aria-label": label,
          "aria-keyshortcuts": key,
          title: label,
          onclick: () => this.go(this.target(key)),
        },
        text,
      );
    const steps = [
      step("|◀", "Start of the game", "Home"),
      step("◀◀", "Previous round", "PageUp"),
      step("◀", "Previous event", "ArrowLeft"),
      step("▶", "Next event", "ArrowRight"),
      step("▶▶", "Next round", "PageDown"),
      step("▶|", "End of the game", "End"),
    ];
    return el(
      "div",
      { class: "transport" },
      this.slider,
      el("div", { class: "steps" }, steps),
      this.playButton,
      this.count,
    );
  }

  /** The position that a key leads to; undefined: none. */
  target(key) {
    const { rounds = [], events = 0 } = this.game ?? {};
    return {
      Home: 0,
      PageUp: rounds.filter((start) => start < this.at).pop() ?? 0,
      ArrowLeft: this.at - 1,
      ArrowRight: this.at + 1,
      PageDown: rounds.find((start) => start > this.at) ?? events,
      End: events,
    }[key];
  }

  keyDown(event) {
    if (isTyping(event) || !this.game) return;
    const position = this.target(event.key);
    const isSpace = event.key === " " && !event.target.closest("button, a, summary");
    if (position === undefined && !isSpace) return;
    event.preventDefault();
    if (isSpace) this.autoplay(this.timer === null);
    else this.go(position);
  }

  /** Let the game play by itself, or stop that. */
  autoplay(isOn) {
    clearInterval(this.timer);
    this.timer = isOn
      ? setInterval(() => (this.at < this.game.events ? this.go(this.at + 1, true) : this.autoplay(false)), PACE)
      : null;
    this.playButton.textContent = isOn ? "Pause" : "Play";
    if (isOn && this.at >= this.game.events) this.go(0, true);
    if (!isOn) this.showOpinion();
  }

  // ------------------------------------------------------------------------------ games

  /** Open the game and the position that the address names: `#game/position`. */
  async open() {
    const found = /^#(\d+)(?:\/(\d+))?$/.exec(location.hash);
    if (!found && this.game) return; // the link to the main part
    const [game, at] = found ? [Number(found[1]), Number(found[2] ?? 0)] : [0, 0];
    if (this.game && game === this.number) await this.go(at);
    else await this.openGame(game < this.file.games.length ? game : 0, at);
  }

  async openGame(number, at = 0) {
    this.number = number;
    this.games.value = number;
    this.game = this.view = this.mark = null;
    try {
      const game = await get(`files/${this.key}/${number}`);
      if (number !== this.number) return;
      this.game = game;
    } catch (error) {
      if (number === this.number) this.refuse(error);
      return;
    }
    const { game } = this;
    this.title.textContent = game.names.join(" · ");
    document.title = `${this.title.textContent} · Carolus`;
    this.result.textContent =
      game.outcome === null
        ? "unfinished"
        : `${game.rules.players} players, ${this.file.games[number].rounds} rounds. ${game.outcome}`;
    this.slider.max = game.events;
    this.save.href = `/api/files/${this.key}/${number}/record`;
    this.log.fill(game.log, game);
    await this.go(Math.min(at, game.events));
    await this.drawGraph();
  }

  refuse(error) {
    this.title.textContent = "This game cannot be shown";
    this.result.textContent = error.message;
    this.stage.board.replaceChildren();
    this.opinions.clear();
    this.log.fill([], null);
    this.graphPlace.replaceChildren();
    notice(error.message);
  }

  /** A new game from this position, with the same players or others. */
  playFromHere() {
    if (!this.game) return;
    const isFree = this.game.agents.every((agent) => agent !== null); // then whoever looks on sits down
    const mine = this.view?.seat ?? 0;
    const seats = this.game.agents.map((agent, seat) =>
      isFree && seat === mine
        ? { agent: null, name: null }
        : { agent, name: agent === null ? this.game.names[seat] : null },
    );
    const dialog = el(
      "dialog",
      { class: "play-on", "aria-labelledby": "new-title", onclose: () => dialog.remove() },
      newGameForm(this.menu, {
        rules: this.game.rules,
        seats,
        replay: { key: this.key, game: this.number, position: this.at },
      }),
      button("Cancel", null, () => dialog.close()),
    );
    document.body.append(dialog);
    dialog.showModal();
  }

  // ------------------------------------------------------------------------------ positions

  /** Show a position: before event number `position`. A game that plays by itself stops, unless it asked for it. */
  async go(position, isPlaying = false) {
    if (!this.game) return;
    if (!isPlaying && this.timer !== null) this.autoplay(false);
    this.at = Math.min(Math.max(position, 0), this.game.events);
    history.replaceState(null, "", `#${this.number}/${this.at}`);
    this.slider.value = this.at;
    this.count.textContent = `${this.at} / ${this.game.events}`;
    this.mark?.(this.at);
    this.log.markPlace(this.at);
    if (!isPlaying) this.opinions.clear();
    await this.draw();
    this.showOpinion();
  }

  /** Only the board. */
  async draw() {
    if (!this.game) return;
    const [asked, at] = [++this.asked, this.at];
    try {
      const view = await get(`files/${this.key}/${this.number}/${at}?${layout()}`);
      if (asked !== this.asked) return;
      this.view = view;
      this.stage.show(view);
      this.stage.board.dataset.at = at;
      const line = this.game.log[at - 1];
      const event = line ? `${this.game.names[line.seat]} ${line.words}` : "start of the game";
      this.slider.setAttribute("aria-valuetext", `${at} of ${this.game.events}, ${event}`);
      if (view.outcome) say(view.outcome);
    } catch (error) {
      notice(error.message);
    }
  }

  // ------------------------------------------------------------------------------ opinions

  adviserChanged() {
    setSetting("adviser", this.adviser.value);
    this.showOpinion();
    this.drawGraph();
  }

  showOpinion() {
    const { at, game, view } = this;
    if (view?.at !== at) return; // it is drawn first
    if (this.timer !== null) this.opinions.clear(el("p", {}, "Pause to ask a bot."));
    else if (!game.decisions.includes(at))
      this.opinions.clear(el("p", {}, at === game.events ? "This is the end of the record." : "Dice are rolled next."));
    else this.opinions.ask(this.adviser.value, view.line, game.team_names, game.played[at]);
  }

  /** Each team's expected share of the win over the game, by the bot that is chosen. */
  async drawGraph() {
    const { game, number } = this;
    this.valuing?.abort();
    this.valuing = new AbortController();
    const { signal } = this.valuing;
    this.mark = null;
    const agent = this.adviser.value;
    if (!game?.decisions.length) {
      this.graphPlace.replaceChildren(el("p", {}, "There are no decisions yet."));
      return;
    }
    this.graphPlace.replaceChildren(el("p", { class: "thinking" }, `${agent} is thinking`));
    try {
      const found = await post(`files/${this.key}/${number}/values`, { agent }, signal);
      if (signal.aborted) return;
      const drawn = graph(found.values, game.decisions, game.rounds, game.events, game.team_names, (at) => this.go(at));
      this.mark = drawn.mark;
      this.mark(this.at);
      this.graphPlace.replaceChildren(drawn.root);
    } catch (error) {
      if (!signal.aborted) this.graphPlace.replaceChildren(el("p", {}, error.message));
    }
  }
}

function describe(game) {
  const length = game.rounds === null ? "unfinished" : `${game.rounds} rounds`;
  return `${game.title}: ${game.names.join(", ")}, ${length}`;
}

function problemsCard(file) {
  const problems = file.problems.map((text) => el("li", {}, text));
  return el(
    "details",
    { class: "card", hidden: problems.length === 0 },
    el("summary", {}, `Problems in the file (${file.all_problems})`),
    el("ul", {}, problems),
  );
}
