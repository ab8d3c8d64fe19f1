// What an agent thinks of a position: likely actions, and expected shares of the win.

import { post } from "./api.js";
import { button, el, percent, teamIcon, teamLook } from "./dom.js";

/** An opinion; a new one replaces the one before. */
export class Opinions {
  constructor(attributes = {}) {
    this.element = el("div", { class: "opinions", ...attributes });
    this.waiting = new AbortController(); // of the question: nobody thinks for an answer that is dropped
  }

  /** Drop the question before and show this. */
  clear(...children) {
    this.waiting.abort();
    this.waiting = new AbortController();
    this.element.replaceChildren(...children);
  }

  /**
   * Ask an agent; returns its opinion, or null where it failed or the question was dropped.
   * @param text the position
   * @param teams their names
   * @param played the action that was taken; null: none yet
   */
  async ask(agent, text, teams, played = null) {
    this.clear(
      el(
        "p",
        { class: "thinking" },
        `${agent} is thinking`,
        button("Stop", null, () => this.clear(el("p", {}, "The search was stopped."))),
      ),
    );
    const { signal } = this.waiting;
    try {
      const found = await post("hint", { text, agent, played }, signal);
      if (signal.aborted) return null;
      this.clear(opinionCard(found, teams, played));
      return found;
    } catch (error) {
      if (!signal.aborted) this.clear(el("p", {}, error.message));
      return null;
    }
  }
}

function opinionCard(found, teams, played) {
  const moves = found.moves ?? [{ ...found.choice, share: null }];
  return el(
    "section",
    { class: "opinion", "aria-label": `What ${found.agent} thinks` },
    el("h3", {}, found.agent),
    found.values && shareBar(found.values, teams),
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
    ),
  );
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
    part.style.background = teamLook(team).fill;
    return part;
  });
  return [
    el("div", { class: "shares", role: "img", "aria-label": `Expected share of the win: ${said.join(", ")}` }, bar),
    el(
      "p",
      { class: "legend", "aria-hidden": "true" },
      said.map((text, team) => el("span", {}, teamIcon(team), text)),
    ),
  ];
}
