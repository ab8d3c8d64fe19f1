// The viewer: a recorded game, step by step, with what an agent thinks of it.

import { cut, get, kept, look, post, setSetting, setting } from "./api.js";
import { copy, el, fill, isTyping, notice, say } from "./dom.js";
import { graph } from "./graph.js";
import { Log } from "./log.js";
import { Opinions } from "./opinions.js";
import { saveRecord, share, show } from "./share.js";
import { onLayout, Stage } from "./stage.js";
import { newGameForm, recordsCard } from "./start.js";

const PACE = 1000; // milliseconds at a position of a game that plays by itself
const OWN = { problems: [], all_problems: 0, games: [{}] }; // the file of the record in this tab

/** The page of file number `key` of the command line, of the record that this tab keeps (`own`), or of none. */
export async function replayPage(main, menu, key) {
  document.title = "Viewer · Carolus";
  if (!key) {
    main.className = "start";
    main.replaceChildren(recordsCard(menu));
    return;
  }
  await new Viewer(main, menu, key, key === "own" ? OWN : await get(`records/${key}`)).open();
}

class Viewer {
  constructor(main, menu, key, file) {
    this.menu = menu;
    this.key = key;
    this.file = file;
    this.game = null; // the record and what follows from it
    this.view = null; // the position
    this.at = 0;
    this.asked = 0; // numbers the requests, so that late answers are dropped
    this.timer = null; // of a game that plays by itself
    const parts = copy("viewer");
    this.parts = parts;
    this.stage = new Stage(parts, (piece) =>
      piece?.kind === "region" && this.view && !this.view.outcome ? this.view.regions[piece.region] : null,
    );
    this.opinions = new Opinions(parts.opinions);
    this.log = new Log(parts.log);
    const { games, more } = file;
    const option = ({ title, names = [], rounds }, value) =>
      el("option", { value }, `${title}: ${names.join(", ")}, ${rounds === null ? "unfinished" : `${rounds} rounds`}`);
    parts.games.append(...games.map(option));
    parts.number.textContent = more ? `The first ${games.length} games of more` : `${games.length} games`;
    parts.picker.hidden = games.length < 2;
    parts.problems.hidden = file.all_problems === 0;
    parts.amount.textContent = `Problems in the file (${file.all_problems})`;
    parts.reasons.append(...file.problems.map((text) => el("li", {}, text)));
    fill(parts.adviser, menu.advisers, setting("adviser"), (adviser) => {
      setSetting("adviser", adviser);
      this.showOpinion();
      this.drawGraph();
    });
    main.className = "table viewer";
    main.replaceChildren(parts.all);
    parts.games.onchange = () => this.openGame(Number(parts.games.value));
    parts.slider.oninput = () => this.go(Number(parts.slider.value));
    parts.play.onclick = () => this.autoplay(this.timer === null);
    parts.from.onclick = () => this.playFromHere();
    parts.share.onclick = () => this.view && share(this.view);
    parts.save.onclick = () => this.game && saveRecord(this.game.record);
    parts.steps.onclick = ({ target }) => target.dataset.key && this.go(this.target(target.dataset.key));
    parts.log.onclick = ({ target }) => {
      const event = target.closest("[data-event]")?.dataset.event;
      if (event) this.go(Number(event) + 1);
    };
    addEventListener("hashchange", () => this.open());
    document.addEventListener("keydown", (event) => this.keyDown(event));
    onLayout(() => this.draw());
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
    if (isOn && !this.game) return;
    this.timer = isOn
      ? setInterval(() => (this.at < this.game.events ? this.go(this.at + 1, true) : this.autoplay(false)), PACE)
      : null;
    this.parts.play.textContent = isOn ? "Pause" : "Play";
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
    const { parts } = this;
    this.number = number;
    this.parts.games.value = number;
    this.game = this.view = this.mark = null;
    this.autoplay(false);
    try {
      const record = this.key === "own" ? kept("replay") : await get(`records/${this.key}/${number}`);
      if (!record) throw new Error("There is no game record in this tab.");
      const view = await look("view", { record, at: 0 });
      if (number !== this.number) return;
      this.log.fill(view, 0);
      this.game = gameOf(record, view);
    } catch (error) {
      if (number === this.number) this.refuse(error);
      return;
    }
    const { events, players, names, result, rounds } = this.game;
    parts.title.textContent = names.join(" · ");
    document.title = `${parts.title.textContent} · Carolus`;
    parts.result.textContent = result ? `${players} players, ${rounds.length - 1} rounds. ${result}` : "unfinished";
    parts.slider.max = events;
    await this.go(Math.min(at, events));
    await this.drawGraph();
  }

  refuse(error) {
    const { graph: place, result, title } = this.parts;
    title.textContent = "This game cannot be shown";
    result.textContent = error.message;
    this.opinions.clear();
    this.log.fill({ log: [], names: [], teams: [] }, 0);
    for (const part of [this.stage.board, place]) part.replaceChildren();
  }

  /** A new game from this position, with the same players or others. */
  playFromHere() {
    if (!this.game) return;
    const { agents, names, record, rules } = this.game;
    const isFree = agents.every((agent) => agent !== null); // then whoever looks on sits down
    const mine = this.view?.seat ?? 0;
    const seats = agents.map((agent, seat) =>
      isFree && seat === mine ? { agent: null, name: null } : { agent, name: agent === null ? names[seat] : null },
    );
    const { all, dialog, cancel } = copy("play-on");
    dialog.prepend(newGameForm(this.menu, { rules, seats, record: cut(record, this.at) }));
    cancel.onclick = () => dialog.close();
    show(all, dialog);
  }

  // ------------------------------------------------------------------------------ positions

  /** Show a position: before event number `position`. A game that plays by itself stops, unless it asked for it. */
  async go(position, isPlaying = false) {
    if (!this.game) return;
    if (!isPlaying && this.timer !== null) this.autoplay(false);
    const { parts, game } = this;
    this.at = Math.min(Math.max(position, 0), game.events);
    history.replaceState(null, "", `#${this.number}/${this.at}`);
    parts.slider.value = this.at;
    parts.count.textContent = `${this.at} / ${game.events}`;
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
    const { events, record } = this.game;
    try {
      const view = await look("view", { record, at, since: events });
      if (asked !== this.asked) return;
      this.view = view;
      this.stage.show(view);
      this.stage.board.dataset.at = at;
      const line = this.log.lines[at - 1];
      const event = line ? `${view.names[line.seat]} ${line.words}` : "start of the game";
      this.parts.slider.setAttribute("aria-valuetext", `${at} of ${events}, ${event}`);
      if (view.outcome) say(view.outcome);
    } catch (error) {
      notice(error.message);
    }
  }

  // ------------------------------------------------------------------------------ opinions

  showOpinion() {
    const { at, game, opinions, view } = this;
    if (view?.at !== at) return; // it is drawn first
    if (this.timer !== null) opinions.clear(el("p", {}, "Pause to ask a bot."));
    else if (!game.decisions.includes(at))
      opinions.clear(el("p", {}, at === game.events ? "This is the end of the record." : "Dice are rolled next."));
    else opinions.ask(this.parts.adviser.value, game.record, view.team_names, at);
  }

  /** Each team's expected share of the win over the game, by the bot that is chosen. */
  async drawGraph() {
    const { game, parts } = this;
    this.valuing?.abort();
    this.valuing = new AbortController();
    const { signal } = this.valuing;
    this.mark = null;
    const agent = parts.adviser.value;
    const tell = (text, kind = "") => parts.graph.replaceChildren(el("p", { class: kind }, text));
    if (!game?.decisions.length) {
      tell("There are no decisions yet.");
      return;
    }
    tell(`${agent} is thinking`, "thinking");
    try {
      const { values } = await post("values", { record: game.record, agent }, signal);
      if (signal.aborted) return;
      const drawn = graph(values, game, (at) => this.go(at));
      this.mark = drawn.mark;
      this.mark(this.at);
      parts.graph.replaceChildren(drawn.root);
    } catch (error) {
      if (!signal.aborted) tell(error.message);
    }
  }
}

/** A record, what the view of its first position says of the game, and where decisions and rounds begin. */
function gameOf(record, { agents, log, names, result, rules, team_names: teams }) {
  const decisions = log.filter((line) => "action" in record.events[line.event]).map((line) => line.event);
  const rounds = log.filter((line, index) => line.round !== log[index - 1]?.round).map((line) => line.event);
  return { record, agents, names, result, rules, teams, decisions, rounds, events: log.length, players: names.length };
}
