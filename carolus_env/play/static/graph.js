// A graph of each team's expected share of the win over a game, stacked, with axes.

import { el, svg, teamIcon, teamLook } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 120;
const LABELS = 12; // rounds that are numbered, at most

/**
 * @param values each team's share at each of `positions`
 * @param rounds positions where rounds begin
 * @param end the last position
 * @param teams their names
 * @param jump called with the position that is clicked
 */
export function graph(values, positions, rounds, end, teams, jump) {
  [values, positions] = [
    [values[0], ...values, values.at(-1)],
    [0, ...positions, end],
  ]; // up to the edges
  const across = (position) => (end ? (WIDTH * position) / end : 0);
  const root = svg("svg", {
    class: "graph",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `Expected share of the win over the game: ${teams.join(", ")}`,
  });
  const below = values.map(() => 0);
  teams.forEach((_, team) => {
    const low = positions.map((position, i) => [across(position), HEIGHT * (1 - below[i])]);
    values.forEach((shares, i) => {
      below[i] += shares[team];
    });
    const high = positions.map((position, i) => [across(position), HEIGHT * (1 - below[i])]);
    const outline = [...high, ...low.reverse()].map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
    const look = teamLook(team);
    root.append(
      svg("path", {
        d: `M${outline}Z`,
        fill: look.fill,
        stroke: look.line,
        "stroke-width": "1",
        "vector-effect": "non-scaling-stroke",
      }),
    );
  });
  for (const round of rounds)
    root.append(
      svg("path", {
        class: "round",
        d: `M${across(round).toFixed(1)} 0v${HEIGHT}`,
        "vector-effect": "non-scaling-stroke",
      }),
    );
  root.append(svg("path", { class: "even", d: `M0 ${HEIGHT / 2}h${WIDTH}`, "vector-effect": "non-scaling-stroke" }));
  const cursor = svg("path", { class: "cursor", d: `M0 0v${HEIGHT}`, "vector-effect": "non-scaling-stroke" });
  root.append(cursor);
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
  return { root: el("div", { class: "axes" }, shareAxis(), root, roundAxis(rounds, across), legend(teams)), mark };
}

function shareAxis() {
  return el(
    "div",
    { class: "share-axis", "aria-hidden": "true" },
    ["100%", "50%", "0%"].map((text) => el("span", {}, text)),
  );
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

function legend(teams) {
  return el(
    "p",
    { class: "legend" },
    teams.map((name, team) => el("span", {}, teamIcon(team), name)),
  );
}
