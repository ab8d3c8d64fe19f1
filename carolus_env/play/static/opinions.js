// What an agent thinks of a position: likely actions, and expected shares of the win.

import { post } from "./api.js";
import { el, looks, percent, teamIcon } from "./dom.js";

/** An opinion; a new one replaces the one before. */
export class Opinions {
  constructor(element) {
    this.element = element;
    this.waiting = new AbortController(); // of the question: nobody thinks for an answer that is dropped
  }

  /** Drop the question before and show this. */
  clear(...children) {
    this.waiting.abort();
    this.waiting = new AbortController();
    this.element.replaceChildren(...children);
  }

  /** Ask an agent about a position of a game, by default the last; returns its opinion, or null: it has none. */
  async ask(agent, record, teams, at = null) {
    const stop = () => this.clear(el("p", {}, "The search was stopped."));
    const button = el("button", { type: "button", class: "quiet", onclick: stop }, "Stop");
    this.clear(el("p", { class: "thinking" }, `${agent} is thinking`, button));
    const { signal } = this.waiting;
    try {
      const found = await post("hint", { record, agent, at }, signal);
      if (signal.aborted) return null;
      this.clear(opinionCard(found, teams));
      return found;
    } catch (error) {
      if (!signal.aborted) this.clear(el("p", {}, error.message));
      return null;
    }
  }
}

function opinionCard({ agent, choice, moves, played, values }, teams) {
  const line = ({ action, share = null, text }) => {
    const said = el("span", { class: "share" }, share === null ? "choice" : percent(share));
    return el("li", { class: action === played && "played" }, meter(share), el("span", {}, text), said);
  };
  const lines = el("ul", {}, (moves ?? [choice]).map(line));
  const shares = values && shareBar(values, teams);
  return el("section", { class: "opinion", "aria-label": `What ${agent} thinks` }, el("h3", {}, agent), shares, lines);
}

function meter(share) {
  const bar = el("i", { class: "meter", "aria-hidden": "true" });
  bar.style.setProperty("--share", share ?? 0);
  return bar;
}

/** A bar divided by each team's expected share of the win, with a legend. */
function shareBar(values, teams) {
  const said = values.map((value, team) => `${teams[team]} ${percent(value)}`);
  const bar = values.map((value, team) => {
    const part = el("span", {});
    part.style.flexGrow = value;
    part.style.background = looks.teams[team].fill;
    return part;
  });
  const legend = said.map((text, team) => el("span", {}, teamIcon(team), text));
  return [
    el("div", { class: "shares", role: "img", "aria-label": `Expected share of the win: ${said.join(", ")}` }, bar),
    el("p", { class: "legend", "aria-hidden": "true" }, legend),
  ];
}
