// The viewer: any recorded game, step by step, with what agents think of it.

import { boardInWords, Tip } from "./about.js";
import { get, post, postFile } from "./api.js";
import { look, onLook, pieceAt, show } from "./board.js";
import { el, isTyping, notice, roundName, say, teamIcon } from "./dom.js";
import { graph } from "./graph.js";
import { opinionCard } from "./opinions.js";
import { newGame } from "./start.js";
import { setSetting, setting } from "./store.js";

const MOST = 16 * 2 ** 20; // bytes that the server takes

/** Hand a file to the server and look at it. */
export async function openFile(file) {
  if (file.size > MOST) {
    notice(`${file.name} is too large: at most ${MOST / 2 ** 20} MiB are taken.`);
    return;
  }
  try {
    const book = await postFile(file.name, await file.arrayBuffer());
    location.assign(`/replay/${book.key}`);
  } catch (error) {
    notice(error.message);
  }
}

/** A place to choose a file, or drop one. */
export function chooser() {
  const input = el("input", { type: "file", accept: ".jsonl,.json,.gz", id: "record-file", onchange: choose });
  async function choose() {
    if (input.files.length) await openFile(input.files[0]);
    input.value = ""; // the same file may be chosen again
  }
  return el("label", { class: "chooser", for: "record-file" }, "Choose a file, or drop one", input);
}

export async function replayPage(main, menu, key) {
  document.title = "Viewer · Carolus";
  if (!key) {
    main.className = "start";
    const listed = menu.files.map((file) => el("li", {}, el("a", { href: `/replay/${file.key}` }, file.name)));
    main.replaceChildren(el("section", { class: "card" }, el("h1", {}, "Viewer"), el("p", {}, "A file of game records, .jsonl or .jsonl.gz, is shown game by game, step by step."), chooser(), el("ul", { class: "games" }, listed)));
    return;
  }
  const book = await get(`files/${key}`);
  await new Viewer(main, menu, key, book).open();
}

class Viewer {
  constructor(main, menu, key, book) {
    this.menu = menu;
    this.key = key;
    this.book = book;
    this.at = 0;
    this.asked = 0; // numbers requests, so that late answers are dropped
    this.values = null; // of the graph's agent, at every decision
    this.main = main;
    this.build();
  }

  build() {
    this.board = el("div", { class: "board" });
    this.stage = el("section", { class: "stage", "aria-label": "Board" }, this.board);
    this.tip = new Tip(this.stage);
    this.words = boardInWords();
    this.title = el("h1", {});
    this.result = el("p", { class: "doing" });
    this.slider = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Position", oninput: () => this.go(Number(this.slider.value)) });
    this.count = el("output", {});
    const step = (text, label, keys, to) => el("button", { type: "button", "aria-label": label, "aria-keyshortcuts": keys, title: label, onclick: () => this.go(to()) }, text);
    this.buttons = el(
      "div",
      { class: "steps" },
      step("|◀", "First", "Home", () => 0),
      step("◀◀", "Last round", "PageUp", () => this.round(-1)),
      step("◀", "Back", "ArrowLeft", () => this.at - 1),
      step("▶", "On", "ArrowRight", () => this.at + 1),
      step("▶▶", "Next round", "PageDown", () => this.round(1)),
      step("▶|", "End", "End", () => this.game?.events ?? 0),
    );
    this.games = el("select", { "aria-label": "Game", onchange: () => this.openGame(Number(this.games.value)) }, this.book.games.map((game, number) => el("option", { value: number }, describe(game))));
    this.picker = el("label", { class: "picker", hidden: this.book.games.length < 2 }, `${this.book.games.length} games `, this.games);
    this.grapher = el("select", { "aria-label": "Whose values", onchange: () => { setSetting("grapher", this.grapher.value); this.drawGraph(); } }, this.menu.valuers.map((spec) => el("option", { value: spec }, spec)));
    this.place = el("div", { class: "graph-place" });
    this.advisers = el("div", { class: "advisers", role: "group", "aria-label": "Whose opinion" });
    this.opinions = el("div", { class: "opinions" });
    this.log = el("ol", { class: "log", "aria-label": "Events", tabindex: "0" });
    this.problems = el("details", { class: "card", hidden: this.book.problems.length === 0 }, el("summary", {}, `Problems of the file (${this.book.all_problems})`), el("ul", {}, this.book.problems.map((text) => el("li", {}, text))));
    this.main.className = "table viewer";
    this.main.replaceChildren(
      this.stage,
      el(
        "section",
        { class: "card story", "aria-label": "Position" },
        el("div", { class: "transport" }, this.slider, this.buttons, this.count),
        el("div", { class: "head" }, el("h2", {}, "Expected shares of the win, by"), this.grapher),
        this.place,
      ),
      el(
        "section",
        { class: "panel", "aria-label": "The game" },
        el("div", { class: "card" }, this.title, this.result, this.picker),
        el("div", { class: "card" }, el("h2", {}, "Opinions"), this.advisers, this.opinions),
        el("div", { class: "card" }, el("h2", {}, "Log"), this.log),
        this.words.card,
        this.problems,
        el("div", { class: "tools outside" }, el("button", { type: "button", class: "quiet", onclick: () => this.playOn() }, "Play on from here"), (this.save = el("a", { class: "button", download: "carolus.jsonl" }, "Save"))),
      ),
    );
    this.log.addEventListener("click", (event) => {
      const line = event.target.closest("[data-event]");
      if (line) this.go(Number(line.dataset.event) + 1);
    });
    this.board.addEventListener("pointerover", (event) => this.hover(event));
    this.board.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.tip.hide());
    addEventListener("hashchange", () => this.open());
    document.addEventListener("keydown", (event) => this.keyDown(event));
    onLook(() => this.draw(this.at));
  }

  async open() {
    const found = /^#(\d+)(?:\/(\d+))?$/.exec(location.hash);
    if (!found && this.game) return; // the link to the main part
    const [game, at] = found ? [Number(found[1]), Number(found[2] ?? 0)] : [0, 0];
    if (this.game && game === this.number) await this.go(at);
    else await this.openGame(game < this.book.games.length ? game : 0, at);
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
      if (number !== this.number) return;
      this.title.textContent = "This game cannot be shown";
      this.result.textContent = error.message;
      for (const place of [this.board, this.log, this.place, this.opinions, this.advisers]) place.replaceChildren();
      notice(error.message);
      return;
    }
    const game = this.game;
    const about = this.book.games[number];
    this.title.textContent = game.names.join(" · ");
    document.title = `${this.title.textContent} · Carolus`;
    this.result.textContent = about.rounds === null ? "not over" : `${game.rules.players} players, ${about.rounds} rounds, ${won(about, game.team_names)}`;
    this.slider.max = game.events;
    this.save.href = `/api/files/${this.key}/${number}/record`;
    this.log.replaceChildren(
      ...game.log.map((line, i) => el("li", { "data-event": line.event, "data-round": roundName(line, game.log[i - 1]), title: line.text }, teamIcon(game.teams[line.seat]), el("b", {}, game.names[line.seat]), " ", line.words)),
    );
    this.showAdvisers();
    const own = game.agents.find((agent) => this.menu.valuers.includes(agent));
    this.grapher.value = setting("grapher", own ?? "ppo");
    if (!this.grapher.value) this.grapher.value = this.menu.valuers[0];
    await this.go(Math.min(at, game.events));
    await this.drawGraph();
  }

  /** Advisers to choose from; those who played the game are chosen. */
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
          this.showOpinions(this.at);
        });
        return toggle;
      }),
    );
  }

  /** Show a position: before event number `position`. */
  async go(position) {
    if (!this.game) return;
    const at = Math.min(Math.max(position, 0), this.game.events);
    this.at = at;
    this.slider.value = at;
    this.mark?.(at);
    this.showPlace(at);
    this.showOpinions(at);
    await this.draw(at);
  }

  /** Only the board. */
  async draw(at) {
    if (!this.game) return;
    const asked = ++this.asked;
    const known = this.valuesAt(at);
    const values = known ? `&values=${known.join(",")}` : "";
    try {
      const view = await get(`files/${this.key}/${this.number}/${at}?${look()}${values}`);
      if (asked !== this.asked) return;
      this.view = view;
      this.tip.hide();
      show(this.board, view.svg);
      this.words.fill(view);
      const line = this.game.log[at - 1];
      const what = line ? `${this.game.names[line.seat]} ${line.words}` : "the beginning";
      this.slider.setAttribute("aria-valuetext", `${at} of ${this.game.events}, ${what}`);
      this.board.dataset.at = at;
      if (view.outcome) say(view.outcome);
      history.replaceState(null, "", `#${this.number}/${at}`);
    } catch (error) {
      notice(error.message);
    }
  }

  /** Beside a region that is pointed at: how it stands. */
  hover(event) {
    const piece = pieceAt(event.target);
    const isAsked = piece?.kind === "region" && this.view && !this.view.outcome;
    this.tip.show(piece?.element, isAsked ? this.view.regions[piece.region] : null);
  }

  showPlace(at) {
    this.count.textContent = `${at} / ${this.game.events}`;
    this.log.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const line = this.log.children[at - 1];
    if (line) {
      line.setAttribute("aria-current", "true");
      this.log.scrollTop = line.offsetTop - this.log.offsetTop - this.log.clientHeight / 2;
    } else this.log.scrollTop = 0;
  }

  round(way) {
    const starts = this.game?.rounds ?? [];
    if (way > 0) return starts.find((start) => start > this.at) ?? this.game?.events ?? 0;
    return starts.filter((start) => start < this.at).pop() ?? 0;
  }

  valuesAt(at) {
    if (this.values === null) return null;
    const index = this.game.decisions.indexOf(at);
    return index < 0 ? null : this.values[index];
  }

  async drawGraph() {
    const [game, number, agent] = [this.game, this.number, this.grapher.value];
    this.values = null;
    this.mark = null;
    if (!game?.decisions.length) {
      this.place.replaceChildren(el("p", {}, "Nobody has decided anything yet."));
      return;
    }
    this.place.replaceChildren(el("p", { class: "thinking" }, `${agent} thinks`));
    try {
      const found = await post(`files/${this.key}/${number}/values/all`, { agent });
      if (this.game !== game || agent !== this.grapher.value) return;
      this.values = found.values;
      const drawn = graph(found.values, this.game.decisions, this.game.rounds, this.game.events, this.game.team_names, (at) => this.go(at));
      this.mark = drawn.mark;
      this.mark(this.at);
      this.place.replaceChildren(drawn.root, legend(this.game.team_names));
      this.draw(this.at);
    } catch (error) {
      if (this.game === game && agent === this.grapher.value) this.place.replaceChildren(el("p", {}, error.message));
    }
  }

  async showOpinions(at) {
    const asked = (this.opinionsAsked = (this.opinionsAsked ?? 0) + 1);
    const event = this.game.decisions.includes(at) ? at : null;
    if (event === null) {
      this.opinions.replaceChildren(el("p", {}, at === this.game.events ? "The end of the record." : "Dice are rolled here."));
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 120)); // who steps on quickly asks nobody
    if (asked !== this.opinionsAsked) return;
    const cards = new Map([...this.chosen].map((agent) => [agent, el("p", { class: "thinking" }, `${agent} thinks`)]));
    this.opinions.replaceChildren(...cards.values());
    for (const agent of this.chosen) {
      let card;
      try {
        const found = await post(`files/${this.key}/${this.number}/${event}/hint`, { agent });
        card = opinionCard(found, this.game.team_names, this.game.played[event]);
      } catch (error) {
        card = el("p", {}, error.message);
      }
      if (asked !== this.opinionsAsked) return;
      cards.get(agent).replaceWith(card);
    }
  }

  /** A new game from this position, with other players if so wanted. */
  playOn() {
    if (!this.game) return;
    const seats = this.game.agents.map((agent, seat) => ({ agent, name: agent === null ? this.game.names[seat] : null }));
    const dialog = el(
      "dialog",
      { class: "play-on", "aria-labelledby": "new-title" },
      newGame(this.menu, { rules: this.game.rules, seats, replay: { key: this.key, game: this.number, position: this.at } }),
      el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  keyDown(event) {
    if (isTyping(event) || !this.game) return;
    const to = {
      ArrowLeft: () => this.at - 1,
      ArrowRight: () => this.at + 1,
      PageUp: () => this.round(-1),
      PageDown: () => this.round(1),
      Home: () => 0,
      End: () => this.game.events,
    }[event.key];
    if (!to) return;
    event.preventDefault();
    this.go(to());
  }
}

function describe(game) {
  const names = game.names.join(", ");
  return game.rounds === null ? `${game.title}: ${names}, not over` : `${game.title}: ${names}, ${game.rounds} rounds`;
}

function won(about, teams) {
  const names = about.winners.map((team) => teams[team] ?? `team ${team}`);
  return names.length ? `${names.join(" and ")} won` : "nobody won";
}

function legend(teams) {
  return el("p", { class: "legend" }, teams.map((name, team) => el("span", {}, teamIcon(team), name)));
}
