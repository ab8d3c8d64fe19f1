// What agents think of a position: likely actions, and expected shares of the win.

import { post } from "./api.js";
import { el, teamIcon, teamLook } from "./dom.js";

/** Opinions in a list; new ones replace those before. */
export class Opinions {
  constructor(attributes = {}) {
    this.element = el("div", { class: "opinions", ...attributes });
    this.asked = 0; // numbers the questions, so that late answers are dropped
    this.waiting = new AbortController(); // of the question: nobody thinks for an answer that is dropped
  }

  /** Show this instead of opinions. */
  clear(...children) {
    this.begin();
    this.element.replaceChildren(...children);
  }

  /** Drop the question before; returns the number of the new one. */
  begin() {
    this.waiting.abort();
    this.waiting = new AbortController();
    return ++this.asked;
  }

  /**
   * Ask agents one after the other.
   * @param path of the request
   * @param data of the request, without the agent
   * @param teams their names
   * @param played the action that was taken; null: none yet
   * @param wait milliseconds before the first request
   * @returns the opinions; those of agents that failed are missing
   */
  async ask(agents, path, data, teams, { played = null, wait = 0 } = {}) {
    const asked = this.begin();
    const stop = () => this.clear(el("p", {}, "The search was stopped."));
    if (wait) await new Promise((resolve) => setTimeout(resolve, wait));
    const all = [];
    if (asked !== this.asked) return all;
    const cards = agents.map((agent) => thinking(agent, stop));
    this.element.replaceChildren(...cards);
    for (const [k, agent] of agents.entries()) {
      let card;
      try {
        const found = await post(path, { ...data, agent }, this.waiting.signal);
        all.push(found);
        card = opinionCard(found, teams, played);
      } catch (error) {
        card = el("p", {}, error.message);
      }
      if (asked !== this.asked) return [];
      cards[k].replaceWith(card);
    }
    return all;
  }
}

/** A line that says so while an agent thinks; `stop` ends that. */
export function thinking(agent, stop = null) {
  return el("p", { class: "thinking" }, `${agent} is thinking`, stop && el("button", { type: "button", class: "quiet", onclick: stop }, "Stop"));
}

function opinionCard(found, teams, played = null) {
  const moves = found.moves ?? [{ ...found.choice, share: null }];
  return el(
    "section",
    { class: "opinion", "aria-label": `What ${found.agent} thinks` },
    el("h3", {}, found.agent),
    found.values && shareBar(found.values, teams),
    found.values && shareNames(found.values, teams),
    el(
      "ul",
      {},
      moves.map((move) =>
        el(
          "li",
          { class: move.action === played ? "played" : "" },
          meter(move.share),
          el("span", {}, move.text),
          el("span", { class: "share" }, move.share === null ? "choice" : percent(move.share)),
        ),
      ),
      found.more > 0 && el("li", {}, el("small", {}, `and ${found.more} more`)),
    ),
  );
}

function percent(share) {
  return `${(100 * share).toFixed(share < 0.095 ? 1 : 0)}%`;
}

function meter(share) {
  const bar = el("i", { class: "meter", "aria-hidden": "true" });
  bar.style.setProperty("--share", share ?? 0);
  return bar;
}

/** Whose share is which: a castle, a name and a number for each team. */
function shareNames(values, teams) {
  return el("p", { class: "legend", "aria-hidden": "true" }, values.map((value, team) => el("span", {}, teamIcon(team), `${teams[team]} ${percent(value)}`)));
}

/** A bar divided by each team's expected share of the win. */
function shareBar(values, teams) {
  const said = values.map((value, team) => `${teams[team]} ${percent(value)}`).join(", ");
  return el(
    "div",
    { class: "shares", role: "img", "aria-label": `Expected share of the win: ${said}`, title: said },
    values.map((value, team) => {
      const look = teamLook(team);
      const part = el("span", {}, value >= 0.15 ? percent(value) : "");
      part.style.flexGrow = value;
      part.style.background = look.fill;
      part.style.color = look.text;
      return part;
    }),
  );
}
