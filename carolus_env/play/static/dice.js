// Dice: five faces with clans, and a crown.

import { clanLook, crownLook, svg } from "./dom.js";

export const SIDE = 46; // of a die, in the drawing's units
export const CROWN = "crown";

/** A die about the origin that shows a clan, by its name, or a crown. */
export function die(face) {
  const look = face === CROWN ? crownLook() : clanLook(face);
  return svg(
    "g",
    {},
    svg("rect", { x: -SIDE / 2, y: -SIDE / 2, width: SIDE, height: SIDE, rx: 9, class: "f-card s-ink", "stroke-width": 2.5 }),
    svg("path", { d: look.path, fill: look.fill, stroke: look.line, "stroke-width": 1.5, transform: "scale(1.35)" }),
  );
}

/** Faces in a row, as a picture. */
export function diceRow(faces, label) {
  const pitch = SIDE + 12;
  const dice = faces.map((face, k) => svg("g", { transform: `translate(${(k + 0.5) * pitch} ${pitch / 2})` }, die(face)));
  return svg("svg", { viewBox: `0 0 ${faces.length * pitch} ${pitch}`, role: "img", "aria-label": label }, ...dice);
}
