// A look back at a game: what changed the odds most, the best and the worst decisions, as links.

import { el, teamIcon } from "./dom.js";

/** `found`: the server's review; `address(position)`: where the viewer shows a position. */
export function moments(found, address) {
  const { names, teams, team_names: sides } = found;
  const link = (position, seat, round, ...text) =>
    el("li", {}, el("a", { href: address(position) }, el("b", {}, round ? `Round ${round}` : "Set-up"), teamIcon(teams[seat]), el("span", {}, `${names[seat]} `, ...text)));
  const swings = found.swings.map((swing) =>
    link(swing.position, swing.seat, swing.round, swing.text, swing.dice ? " and rolls the dice" : "", el("small", {}, `${sides[swing.team]}: ${percent(swing.before)} → ${percent(swing.after)}`)),
  );
  const best = found.best.map((one) => link(one.position, one.seat, one.round, `chose ${one.text}`, el("small", {}, `the best alternative was worth ${percent(one.lead)} less of the win`)));
  const worst = found.worst.map((one) => link(one.position, one.seat, one.round, `chose ${one.text}`, el("small", {}, `${one.better} would have been worth ${percent(one.loss)} more of the win`)));
  const part = (title, list, none) => [el("h3", {}, title), list.length ? el("ul", { class: "moments" }, list) : el("p", { class: "doing" }, none)];
  return [
    ...part("Largest swings", swings, "The odds hardly changed."),
    ...part(best.length > 1 ? "Best decisions" : "Best decision", best, "No choice stood out."),
    ...part(worst.length > 1 ? "Worst decisions" : "Worst decision", worst, "Nothing was given away."),
    el("p", {}, el("small", {}, `Shares of the win as ${found.agent} estimates them after each side's best next choice.`)),
  ];
}

function percent(share) {
  return `${(100 * share).toFixed(0)}%`;
}
