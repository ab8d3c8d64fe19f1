// A graph of each team's expected share of the win over a game, stacked, with axes.

import { el, looks, svg, teamIcon } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 120;
const LABELS = 12; // rounds that are numbered, at most

/**
 * @param values each team's share at each decision
 * @param game `decisions`, `rounds`: positions where each begins; `events`: the last position; `teams`: names
 * @param jump called with the position that is clicked
 */
export function graph(values, { decisions, rounds, events: end, teams }, jump) {
  const positions = [0, ...decisions, end]; // up to the edges
  const rows = [values[0], ...values, values.at(-1)];
  const across = (position) => (end ? (WIDTH * position) / end : 0);
  const root = svg("svg", {
    class: "graph",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `Expected share of the win over the game: ${teams.join(", ")}`,
  });
  const path = (d, attributes) => {
    const drawn = svg("path", { d, "vector-effect": "non-scaling-stroke", ...attributes });
    root.append(drawn);
    return drawn;
  };
  // Where the shares of the first teams end, from above.
  const edge = (first) =>
    rows.map((shares, i) => {
      const below = shares.slice(0, first).reduce((sum, share) => sum + share, 0);
      return `${across(positions[i]).toFixed(1)} ${(HEIGHT * (1 - below)).toFixed(1)}`;
    });
  teams.forEach((_, team) => {
    const { fill, line: stroke } = looks.teams[team];
    path(`M${[...edge(team + 1), ...edge(team).reverse()].join("L")}Z`, { fill, stroke, "stroke-width": "1" });
  });
  for (const round of rounds) path(`M${across(round).toFixed(1)} 0v${HEIGHT}`, { class: "round" });
  path(`M0 ${HEIGHT / 2}h${WIDTH}`, { class: "even" });
  const cursor = path(`M0 0v${HEIGHT}`, { class: "cursor" });
  const at = (event) => {
    const box = root.getBoundingClientRect();
    jump(Math.round(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * end));
  };
  root.addEventListener("pointerdown", (event) => {
    root.setPointerCapture(event.pointerId);
    at(event);
  });
  root.addEventListener("pointermove", (event) => {
    if (root.hasPointerCapture(event.pointerId)) at(event);
  });
  const mark = (position) => cursor.setAttribute("transform", `translate(${across(position).toFixed(1)} 0)`);
  const spans = (texts) => texts.map((text) => el("span", {}, text));
  const shares = el("div", { class: "share-axis", "aria-hidden": "true" }, spans(["100%", "50%", "0%"]));
  const legend = teams.map((name, team) => el("span", {}, teamIcon(team), name));
  const axes = [shares, root, roundAxis(rounds, across), el("p", { class: "legend" }, legend)];
  return { root: el("div", { class: "axes" }, axes), mark };
}

/** The numbers of the rounds where they begin, as many as there is room for; 0 is the set-up. */
function roundAxis(rounds, across) {
  const every = Math.ceil(rounds.length / LABELS);
  const labels = rounds.map((position, round) => {
    if (round === 0 || round % every) return null;
    const label = el("span", {}, String(round));
    label.style.left = `${(100 * across(position)) / WIDTH}%`;
    return label;
  });
  return el("div", { class: "round-axis", "aria-hidden": "true" }, el("b", {}, "round"), labels);
}
