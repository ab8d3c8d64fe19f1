// What agents think of a position.

import { el, teamLook } from "./dom.js";

/** An agent's likely actions and the teams' shares; `played` is the action that was taken. */
export function opinionCard(found, teams, played = null) {
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
          el("span", { class: "share" }, move.share === null ? "its choice" : percent(move.share)),
        ),
      ),
      found.more > 0 && el("li", {}, el("small", {}, `and ${found.more} more`)),
    ),
  );
}

export function percent(share) {
  return `${(100 * share).toFixed(share < 0.095 ? 1 : 0)} %`;
}

function meter(share) {
  const bar = el("i", { class: "meter", "aria-hidden": "true" });
  bar.style.setProperty("--share", share ?? 0);
  return bar;
}

/** Each team's expected share of the win. */
export function shareBar(values, teams) {
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
