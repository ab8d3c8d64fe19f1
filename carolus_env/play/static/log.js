// The log of a game: a line for each event, in words.

import { el, teamIcon } from "./dom.js";

export class Log {
  constructor(element) {
    this.element = element;
    this.list = element.appendChild(el("ol"));
    this.lines = [];
  }

  /** Show the lines of a view in place of those from event number `since` on. */
  fill({ log, names, teams }, since) {
    this.lines = this.lines.filter((line) => line.event < since);
    while (this.list.children.length > this.lines.length) this.list.lastChild.remove();
    for (const line of log) {
      const isNew = line.round !== this.lines.at(-1)?.round;
      const round = line.round === 0 ? "set-up" : `round ${line.round}`;
      const told = { "data-event": line.event, "data-round": isNew && round, title: line.text };
      this.list.append(el("li", told, teamIcon(teams[line.seat]), el("b", {}, names[line.seat]), " ", line.words));
      this.lines.push(line);
    }
    this.element.scrollTop = this.element.scrollHeight;
  }

  /** Mark the events that are news, by their numbers. */
  markFresh(events) {
    this.lines.forEach((line, k) => {
      this.list.children[k].classList.toggle("fresh", events.includes(line.event));
    });
  }

  /** Mark the last event before a position, and scroll to it. */
  markPlace(position) {
    this.element.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const item = this.list.children[position - 1];
    item?.setAttribute("aria-current", "true");
    this.element.scrollTop = item ? item.offsetTop - this.element.clientHeight / 2 : 0;
  }
}
