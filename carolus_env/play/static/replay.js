// The viewer: a recorded game, step by step, with what agents think of it.

import { get, post } from "./api.js";
import { Autoplay } from "./autoplay.js";
import { look, onLook } from "./board.js";
import { el, isTyping, notice, say } from "./dom.js";
import { chooser, listed } from "./files.js";
import { graph } from "./graph.js";
import { Log } from "./log.js";
import { moments } from "./moments.js";
import { newGameForm } from "./newgame.js";
import { Opinions, thinking } from "./opinions.js";
import { shareButton } from "./share.js";
import { Stage } from "./stage.js";
import { setSetting, setting } from "./store.js";

const PAUSE = 120; // milliseconds at a position before agents are asked

export async function replayPage(main, menu, key) {
  document.title = "Viewer · Carolus";
  if (!key) {
    main.className = "start";
    const links = menu.files.map((file) => el("li", {}, el("a", { href: `/replay/${file.key}` }, file.name)));
    main.replaceChildren(el("section", { class: "card" }, el("h1", {}, "Viewer"), el("p", {}, "Open a file of game records (.jsonl or .jsonl.gz) and step through its games."), chooser(), el("ul", { class: "games" }, links)));
    return;
  }
  const file = await listed(key);
  await new Viewer(main, menu, key, file).open();
}

class Viewer {
  constructor(main, menu, key, file) {
    this.menu = menu;
    this.key = key;
    this.file = file;
    this.at = 0;
    this.asked = 0; // numbers the requests, so that late answers are dropped
    this.values = null; // of the graph's agent, at every decision
    this.build(main);
  }

  build(main) {
    this.stage = new Stage({ point: (piece) => this.point(piece), leave: () => this.stage.tip.hide() });
    this.title = el("h1", {});
    this.result = el("p", { class: "doing" });
    this.games = el("select", { "aria-label": "Game", onchange: () => this.openGame(Number(this.games.value)) }, this.file.games.map((game, number) => el("option", { value: number }, describe(game))));
    const picker = el("label", { class: "picker", hidden: this.file.games.length < 2 }, `${this.file.games.length} games `, this.games);
    this.grapher = el("select", { "aria-label": "Bot that values positions", onchange: () => { setSetting("grapher", this.grapher.value); this.drawGraph(); } }, this.menu.valuers.map((spec) => el("option", { value: spec }, spec)));
    this.graphPlace = el("div", { class: "graph-place" });
    this.advisers = el("div", { class: "advisers", role: "group", "aria-label": "Bots to ask" });
    this.opinions = new Opinions();
    this.log = new Log({ "aria-label": "Events" });
    this.save = el("a", { class: "button", download: "carolus.jsonl" }, "Save");
    this.looking = el("details", { class: "card", ontoggle: () => this.lookBack() }, el("summary", {}, "Looking back"), (this.lookedBack = el("div", { class: "looking-back" })));
    const path = (request) => `files/${this.key}/${this.number}/${request}`;
    const share = shareButton({ line: () => this.view.line, picture: (kind) => path(`${this.at}/picture.${kind}`), film: (kind) => path(`film.${kind}`), record: () => path("record") });
    main.className = "table viewer";
    main.replaceChildren(
      this.stage.element,
      el(
        "section",
        { class: "card story", "aria-label": "Position" },
        this.transport(),
        el("div", { class: "head" }, el("h2", {}, "Expected share of the win, by"), this.grapher),
        this.graphPlace,
      ),
      el(
        "section",
        { class: "panel", "aria-label": "The game" },
        el(
          "div",
          { class: "card" },
          this.title,
          this.result,
          picker,
          // Above what comes and goes: a button that moves away under the pointer is not pressed.
          el("div", { class: "tools" }, el("button", { type: "button", class: "quiet", onclick: () => this.playFromHere() }, "Play from here"), share, this.save),
        ),
        this.looking,
        el("div", { class: "card" }, el("h2", {}, "Opinions"), this.advisers, this.opinions.element),
        el("div", { class: "card" }, el("h2", {}, "Log"), this.log.element),
        this.stage.words.card,
        problemsCard(this.file),
      ),
    );
    this.log.element.addEventListener("click", (event) => {
      const line = event.target.closest("[data-event]");
      if (line) this.go(Number(line.dataset.event) + 1);
    });
    addEventListener("hashchange", () => this.open());
    document.addEventListener("keydown", (event) => this.keyDown(event));
    onLook(() => this.draw(this.at));
  }

  /** The slider and the buttons that go from position to position. */
  transport() {
    this.slider = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Position", oninput: () => this.go(Number(this.slider.value)) });
    this.count = el("output", {});
    const button = (text, label, key) => el("button", { type: "button", "aria-label": label, "aria-keyshortcuts": key, title: label, onclick: () => this.go(this.target(key)) }, text);
    const buttons = el(
      "div",
      { class: "steps" },
      button("|◀", "Start of the game", "Home"),
      button("◀◀", "Previous round", "PageUp"),
      button("◀", "Previous event", "ArrowLeft"),
      button("▶", "Next event", "ArrowRight"),
      button("▶▶", "Next round", "PageDown"),
      button("▶|", "End of the game", "End"),
    );
    const isEnd = () => this.at >= (this.game?.events ?? 0);
    const next = async () => {
      await this.go(isEnd() ? 0 : this.at + 1, true);
      return !isEnd();
    };
    this.autoplay = new Autoplay(next, () => this.game && this.showOpinions());
    return el("div", { class: "transport" }, this.slider, buttons, this.autoplay.element, this.count);
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
    const position = this.target(event.key);
    if (isTyping(event) || !this.game || position === undefined) return;
    event.preventDefault();
    this.go(position);
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
    this.game = this.view = this.values = this.mark = null;
    try {
      const game = await get(`files/${this.key}/${number}`);
      if (number !== this.number) return;
      this.game = game;
    } catch (error) {
      if (number === this.number) this.refuse(error);
      return;
    }
    const game = this.game;
    const { rounds } = this.file.games[number];
    this.title.textContent = game.names.join(" · ");
    document.title = `${this.title.textContent} · Carolus`;
    this.result.textContent = game.outcome === null ? "unfinished" : `${game.rules.players} players, ${rounds} rounds. ${game.outcome}`;
    this.slider.max = game.events;
    this.save.href = `/api/files/${this.key}/${number}/record`;
    this.log.fill(game.log, game);
    this.showAdvisers();
    delete this.lookedBack.dataset.game;
    this.lookBack();
    const own = game.agents.find((agent) => this.menu.valuers.includes(agent));
    this.grapher.value = setting("grapher", own ?? "ppo");
    if (!this.grapher.value) this.grapher.value = this.menu.valuers[0];
    await this.go(Math.min(at, game.events));
    await this.drawGraph();
  }

  refuse(error) {
    this.title.textContent = "This game cannot be shown";
    this.result.textContent = error.message;
    this.stage.clear();
    this.opinions.clear();
    this.log.fill([], null);
    this.graphPlace.replaceChildren();
    this.advisers.replaceChildren();
    notice(error.message);
  }

  /** A new game from this position, with the same players or others. */
  playFromHere() {
    if (!this.game) return;
    const isFree = this.game.agents.every((agent) => agent !== null); // then whoever looks on sits down
    const mine = this.view?.seat ?? 0;
    const seats = this.game.agents.map((agent, seat) => (isFree && seat === mine ? { agent: null, name: null } : { agent, name: agent === null ? this.game.names[seat] : null }));
    const dialog = el(
      "dialog",
      { class: "play-on", "aria-labelledby": "new-title" },
      newGameForm(this.menu, { rules: this.game.rules, seats, replay: { key: this.key, game: this.number, position: this.at } }),
      el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  // ------------------------------------------------------------------------------ positions

  /** Show a position: before event number `position`. What plays by itself stops, unless it asked for it. */
  async go(position, isPlaying = false) {
    if (!isPlaying) this.autoplay.stop();
    if (!this.game) return;
    const at = Math.min(Math.max(position, 0), this.game.events);
    this.at = at;
    history.replaceState(null, "", `#${this.number}/${at}`); // a redraw leaves the address alone
    this.slider.value = at;
    this.count.textContent = `${at} / ${this.game.events}`;
    this.mark?.(at);
    this.log.markPlace(at);
    if (!isPlaying) this.showOpinions();
    else this.opinions.clear(el("p", {}, "Pause to ask bots."));
    await this.draw(at);
  }

  /** Only the board. */
  async draw(at) {
    if (!this.game) return;
    const asked = ++this.asked;
    const known = this.values?.[this.game.decisions.indexOf(at)];
    const values = known ? `&values=${known.join(",")}` : "";
    try {
      const view = await get(`files/${this.key}/${this.number}/${at}?${look()}${values}`);
      if (asked !== this.asked) return;
      this.view = view;
      this.stage.show(view);
      const line = this.game.log[at - 1];
      const event = line ? `${this.game.names[line.seat]} ${line.words}` : "start of the game";
      this.slider.setAttribute("aria-valuetext", `${at} of ${this.game.events}, ${event}`);
      this.stage.board.dataset.at = at;
      if (view.outcome) say(view.outcome);
    } catch (error) {
      notice(error.message);
    }
  }

  /** Beside a region: how it stands. */
  point(piece) {
    const isShown = piece?.kind === "region" && this.view && !this.view.outcome;
    this.stage.tip.show(piece?.element, isShown ? this.view.regions[piece.region] : null);
  }

  // ------------------------------------------------------------------------------ opinions

  /** What decided the game, once it is asked for. */
  async lookBack() {
    const { game, number } = this;
    if (!this.looking.open || !game || this.lookedBack.dataset.game === String(number)) return;
    this.lookedBack.dataset.game = number;
    this.lookedBack.replaceChildren(thinking("value"));
    try {
      const found = await post(`files/${this.key}/${number}/review`, {});
      if (this.game === game) this.lookedBack.replaceChildren(...moments(found, (position) => `#${number}/${position}`));
    } catch (error) {
      if (this.game === game) this.lookedBack.replaceChildren(el("p", {}, error.message));
    }
  }

  /** Offer agents to ask; those that played the game are chosen. */
  showAdvisers() {
    const played = this.game.agents.filter((agent) => agent !== null);
    const offered = [...new Set([...this.menu.advisers, ...played.filter((agent) => this.menu.agents.some((row) => row.spec === agent) && agent !== "random")])];
    const chosen = new Set(offered.filter((agent) => played.includes(agent)));
    if (chosen.size === 0) chosen.add("ppo");
    this.chosen = chosen;
    this.advisers.replaceChildren(
      ...offered.map((agent) => {
        const toggle = el("button", { type: "button", class: "chip", "aria-pressed": String(chosen.has(agent)) }, agent);
        toggle.addEventListener("click", () => {
          if (!chosen.delete(agent)) chosen.add(agent);
          toggle.setAttribute("aria-pressed", String(chosen.has(agent)));
          this.showOpinions();
        });
        return toggle;
      }),
    );
  }

  showOpinions() {
    const { at, game } = this;
    if (game.decisions.includes(at)) {
      this.opinions.ask([...this.chosen], `files/${this.key}/${this.number}/${at}/hint`, {}, game.team_names, { played: game.played[at], wait: PAUSE });
    } else this.opinions.clear(el("p", {}, at === game.events ? "This is the end of the record." : "Dice are rolled next."));
  }

  async drawGraph() {
    const [game, number, agent] = [this.game, this.number, this.grapher.value];
    const isOld = () => this.game !== game || agent !== this.grapher.value;
    this.valuing?.abort();
    this.valuing = new AbortController();
    this.values = null;
    this.mark = null;
    if (!game?.decisions.length) {
      this.graphPlace.replaceChildren(el("p", {}, "There are no decisions yet."));
      return;
    }
    this.graphPlace.replaceChildren(thinking(agent));
    try {
      const found = await post(`files/${this.key}/${number}/values/all`, { agent }, this.valuing.signal);
      if (isOld()) return;
      this.values = found.values;
      const drawn = graph(found.values, game.decisions, game.rounds, game.events, game.team_names, (at) => this.go(at));
      this.mark = drawn.mark;
      this.mark(this.at);
      this.graphPlace.replaceChildren(drawn.root);
      this.draw(this.at);
    } catch (error) {
      if (!isOld() && error.name !== "AbortError") this.graphPlace.replaceChildren(el("p", {}, error.message));
    }
  }
}

function describe(game) {
  const length = game.rounds === null ? "unfinished" : `${game.rounds} rounds`;
  return `${game.title}: ${game.names.join(", ")}, ${length}`;
}

function problemsCard(file) {
  const problems = file.problems.map((text) => el("li", {}, text));
  return el("details", { class: "card", hidden: problems.length === 0 }, el("summary", {}, `Problems in the file (${file.all_problems})`), el("ul", {}, problems));
}
