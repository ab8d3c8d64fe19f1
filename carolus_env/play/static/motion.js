// Short animations of what has just happened: over the new drawing, which can be used at once.

import { die, SIDE } from "./dice.js";
import { clanIcon, clanLook, el, svg } from "./dom.js";
import { circleOf, middle } from "./geometry.js";
import { setSetting, setting } from "./store.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const CENTRE = 500; // of the circle, in its own units
const DICE = 672; // where dice are rolled, below the centre
const PITCH = SIDE + 12; // of dice
const PARTS = 12; // of a way along the circle

export class Motion {
  /** `board` holds the drawing. */
  constructor(board) {
    this.board = board;
    this.before = null;
    this.until = 0; // when the last animation ends
    this.box = el("input", { type: "checkbox", onchange: () => setSetting("motion", this.box.checked) });
    this.box.checked = setting("motion", true) === true;
    this.choice = el("label", { class: "motion" }, this.box, "Motion");
    const show = () => {
      this.box.disabled = still.matches;
      this.choice.title = still.matches ? "Your system asks for less motion" : "Show how pieces move";
    };
    still.addEventListener("change", show);
    show();
  }

  get on() {
    return this.box.checked && !still.matches && !document.hidden;
  }

  /** Milliseconds until everything rests. */
  get rest() {
    return Math.max(0, this.until - performance.now());
  }

  /** Note where pieces are; called before a new drawing is shown. */
  remember() {
    const root = this.board.querySelector("svg");
    this.before = root && this.on ? { root, places: placesOf(root) } : null;
  }

  /**
   * Show what happened between the drawing before and this one.
   * @param lines of the log, whose `what` is shown one after the other
   * @param pace milliseconds for each
   */
  play(lines, pace) {
    const { before } = this;
    const root = this.board.querySelector("svg");
    this.before = null;
    this.until = 0;
    if (!before || !root || !this.on || pace < 60 || lines.length > 4) return;
    let start = 0;
    for (const line of lines) start += this.show(root, before, line, Math.min(pace, 700), start);
    this.until = performance.now() + start;
  }

  /** Show one event after `delay`; returns how long it takes. */
  show(root, before, { seat, what }, pace, delay) {
    const times = { fill: "backwards", easing: "ease-in-out", delay, duration: pace };
    if (what.kind === "place" || what.kind === "crown") return this.fly(root, before, seat, what, times);
    if (what.kind === "move") return this.walk(root, before, what, times);
    if (what.kind === "roll") return this.roll(root, what.faces, times);
    const disc = root.querySelector(`.disc[data-seat="${seat}"][data-disc="${what.disc}"] circle:last-of-type`);
    if (disc) pop(disc.closest("g.disc"), times, [Number(disc.getAttribute("cx")), Number(disc.getAttribute("cy"))]);
    return pace;
  }

  /** A paladin goes from the reserve to its place, or from the supply to the reserve. */
  fly(root, before, seat, what, times) {
    const from = before.places.get(what.kind === "crown" ? `supply ${what.clan}` : `${seat} ${what.clan}`);
    const target = what.kind === "crown" ? tokenOf(root, seat, what.clan) : placeOf(root, seat, what);
    if (!from || !target) return 0;
    const to = middle(target.getBoundingClientRect());
    const ghost = el("div", { class: "ghost flying", "aria-hidden": "true" }, clanIcon(what.clan));
    document.body.append(ghost);
    const [x, y] = [(from.x + to.x) / 2, Math.min(from.y, to.y) - 24];
    const way = [from, { x, y }, to].map((point) => ({ translate: `${point.x}px ${point.y}px` }));
    ghost.animate(way, times);
    ghost.animate([{ scale: 0.7 }, { scale: 1.15, offset: 0.5 }, { scale: 0.7 }], times);
    setTimeout(() => ghost.remove(), times.delay + times.duration);
    if (target.hasAttribute("transform")) pop(target, { ...times, delay: times.delay + times.duration * 0.9, duration: 260 });
    return times.duration;
  }

  /** The Emperor walks along the circle; where castles change hands, they do so when he arrives. */
  walk(root, before, what, times) {
    const emperor = root.querySelector(".emperor");
    const [start, end] = [before.root.querySelector(".emperor"), emperor].map(angleOf);
    if (!start || !end) return 0;
    const turn = (end.angle - start.angle + 2 * Math.PI) % (2 * Math.PI) || 2 * Math.PI;
    const duration = times.duration * (0.7 + Math.min(turn, 3) / 3);
    const frames = Array.from({ length: PARTS + 1 }, (_, k) => {
      const angle = start.angle + (turn * k) / PARTS;
      const hop = Math.abs(Math.sin((k / PARTS) * Math.PI * 3)) * 7;
      const [x, y] = [CENTRE + end.radius * Math.cos(angle), CENTRE + end.radius * Math.sin(angle) - hop];
      return { transform: `translate(${x}px, ${y}px) scale(${end.scale})` };
    });
    emperor.animate(frames, { ...times, duration });
    if (what.taken) this.change(root, before, times.delay + duration);
    return duration + (what.taken ? 450 : 0);
  }

  /** The regions as they were stay until the Emperor has come; then the castles turn. */
  change(root, before, delay) {
    const taken = root.querySelector('.region[data-region="0"]');
    const known = new Set([...root.querySelectorAll(".region")].map(outlineOf));
    const gone = [...before.root.querySelectorAll(".region")].filter((region) => !known.has(outlineOf(region)) || overlaps(region, taken));
    const old = svg("g", { class: "was" }, ...gone.map((region) => bare(region)));
    circleOf(root).insertBefore(old, root.querySelector(".walk, .emperor"));
    old.animate([{ opacity: 1 }, { opacity: 0 }], { delay, duration: 300, fill: "both" });
    setTimeout(() => old.remove(), delay + 320);
    const fill = taken.querySelector("path").getAttribute("fill");
    for (const castle of taken.querySelectorAll(`path[transform][fill="${fill}"]`)) pop(castle, { delay: delay + 80, duration: 360, fill: "backwards" });
  }

  /** Dice roll below the centre, and stay for a moment. */
  roll(root, faces, times) {
    const dice = svg("g", { class: "dice" });
    const left = CENTRE - ((faces.length - 1) * PITCH) / 2;
    faces.forEach((face, k) => {
      const rolled = die(face);
      const at = `translate(${left + k * PITCH}px, ${DICE}px)`;
      rolled.style.transform = at;
      const turned = k % 2 ? -1 : 1;
      rolled.animate(
        [
          { transform: `translate(${left + k * 20}px, ${DICE + 70}px) rotate(${turned * 340}deg) scale(0.4)`, opacity: 0 },
          { transform: `${at} rotate(${turned * 24}deg) scale(1.12)`, opacity: 1, offset: 0.75 },
          { transform: `${at} rotate(0deg) scale(1)`, opacity: 1 },
        ],
        { ...times, delay: times.delay + k * 50 },
      );
      dice.append(rolled);
    });
    circleOf(root).append(dice);
    const shown = times.delay + times.duration + 50 * faces.length;
    dice.animate([{ opacity: 1 }, { opacity: 0 }], { delay: shown + 700, duration: 250, fill: "forwards" });
    setTimeout(() => dice.remove(), shown + 960);
    return times.duration + 50 * faces.length + 250;
  }
}

/** Where the paladins of reserves and of the supply are on the screen, by seat and clan. */
function placesOf(root) {
  const places = new Map();
  for (const token of root.querySelectorAll(".reserve .token, .supply .token")) {
    const seat = token.closest("[data-seat]")?.dataset.seat ?? "supply";
    places.set(`${seat} ${clanLook(Number(token.dataset.clan)).name}`, middle(token.getBoundingClientRect()));
  }
  return places;
}

function tokenOf(root, seat, clan) {
  return root.querySelector(`.reserve[data-seat="${seat}"] .token[data-clan="${clanLook(clan).number}"] path`);
}

/** The piece that a paladin has become: in a row of the court, or in a region. */
function placeOf(root, seat, { clan, to }) {
  const look = clanLook(clan);
  const holder = to === null ? root.querySelector(`.court[data-seat="${seat}"] .row[data-clan="${look.number}"] g`) : root.querySelector(`.region[data-territories="${to}"]`);
  return to === null ? holder?.lastElementChild : holder?.querySelector(`path[fill="${look.fill}"][transform]`);
}

/** Let a piece grow for a moment; `at`: its centre, where its outline is not about the origin. */
function pop(piece, times, at = null) {
  const [, x, y] = /translate\(([-\d.]+)[ ,]+([-\d.]+)\)/.exec(piece.getAttribute("transform") ?? "") ?? [0, 0, 0];
  const frame = (scale) => ({ transform: at ? `translate(${at[0]}px, ${at[1]}px) scale(${scale}) translate(${-at[0]}px, ${-at[1]}px)` : `translate(${x}px, ${y}px) scale(${scale})` });
  piece.animate([frame(1), { ...frame(1.5), offset: 0.4 }, frame(1)], times);
}

function angleOf(emperor) {
  const found = /translate\(([-\d.]+) ([-\d.]+)\) scale\(([\d.]+)\)/.exec(emperor?.getAttribute("transform") ?? "");
  if (!found) return null;
  const [x, y, scale] = found.slice(1).map(Number);
  return { angle: Math.atan2(y - CENTRE, x - CENTRE), radius: Math.hypot(x - CENTRE, y - CENTRE), scale };
}

function outlineOf(region) {
  return region.querySelector("path").getAttribute("d");
}

function overlaps(region, other) {
  const numbers = (group) => [...group.querySelectorAll("text.number, text.f-ink")].map((text) => text.textContent);
  const there = new Set(numbers(other));
  return numbers(region).some((number) => there.has(number));
}

function bare(region) {
  const copy = region.cloneNode(true);
  copy.removeAttribute("class");
  return copy;
}
