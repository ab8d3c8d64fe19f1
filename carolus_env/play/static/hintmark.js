// A hint drawn on the board: what to take, where it goes, and the word beside it.

import { clanLook, svg } from "./dom.js";
import { boxIn, middle } from "./geometry.js";

/** Draw an action of `view` over the drawing `root`; the next drawing is without it. */
export function drawHint(root, view, action) {
  root.querySelector(".hint-mark")?.remove();
  const decision = view.legal.find((found) => found.action === action);
  if (!decision) return;
  const [from, to] = ends(root, view, decision);
  if (!to) return;
  const mark = svg("g", { class: "hint-mark" });
  const goal = boxIn(root, [to]);
  mark.append(around(root, to, goal));
  if (from) {
    const start = boxIn(root, [from]);
    mark.append(around(root, from, start), arrow(middle(start), middle(goal)));
  }
  mark.append(label(goal));
  root.append(mark);
}

/** The pieces that an action takes and leads to; the first is undefined where nothing is taken. */
function ends(root, view, { action, kind, clan, to }) {
  const find = (selector) => root.querySelector(selector) ?? undefined;
  if (kind === "place") {
    const { number } = clanLook(clan);
    const row = `.court[data-seat="${view.seat}"] .row[data-clan="${number}"]`;
    return [find(`.reserve[data-seat="${view.seat}"] .token[data-clan="${number}"]`), find(to === 0 ? row : `.region[data-region="${to - 1}"]`)];
  }
  if (kind === "move") {
    const step = view.steps.find((found) => found.action === action);
    return [find(".emperor"), find(`.region[data-region="${step?.region}"]`)];
  }
  return [undefined, find(`.disc[data-action="${action}"], .supply .token[data-action="${action}"]`)];
}

/** A line around a piece: a region's own outline, or a box. */
function around(root, piece, box) {
  if (piece.classList.contains("region")) {
    const outline = piece.querySelector("path").cloneNode();
    for (const name of ["class", "fill", "stroke"]) outline.removeAttribute(name);
    const way = root.getScreenCTM().inverse().multiply(piece.getScreenCTM());
    outline.setAttribute("transform", `matrix(${way.a} ${way.b} ${way.c} ${way.d} ${way.e} ${way.f})`);
    return outline;
  }
  const edge = 7;
  return svg("rect", { x: box.x - edge, y: box.y - edge, width: box.width + 2 * edge, height: box.height + 2 * edge, rx: 14 });
}

function arrow(from, to) {
  const [across, down] = [to.x - from.x, to.y - from.y];
  const bend = { x: (from.x + to.x) / 2 - down * 0.15, y: (from.y + to.y) / 2 + across * 0.15 };
  const angle = Math.atan2(to.y - bend.y, to.x - bend.x);
  const wing = (turn) => `${to.x - 26 * Math.cos(angle + turn)} ${to.y - 26 * Math.sin(angle + turn)}`;
  return svg("path", { class: "way", d: `M${from.x} ${from.y}Q${bend.x} ${bend.y} ${to.x} ${to.y}M${wing(0.5)}L${to.x} ${to.y}L${wing(-0.5)}` });
}

function label(box) {
  const [x, y] = box.width > 300 ? [box.x + box.width - 90, box.y + box.height / 2] : [box.x + box.width / 2, box.y - 8];
  const text = svg("text", { x, y: y + 6 });
  text.textContent = "hint";
  return svg("g", {}, svg("rect", { class: "tag", x: x - 32, y: y - 15, width: 64, height: 28, rx: 14 }), text);
}
