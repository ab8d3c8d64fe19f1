// The end of a game: how it went, beside the board.

import { post } from "./api.js";
import { el } from "./dom.js";
import { graph } from "./graph.js";
import { moments } from "./moments.js";
import { thinking } from "./opinions.js";

export class EndCard {
  /** `path(request)`: of a request about the game. */
  constructor(path) {
    this.path = path;
    this.body = el("div", { class: "looking-back" });
    this.element = el("section", { class: "card end", hidden: true, "aria-labelledby": "end-title" }, el("h2", { id: "end-title" }, "How the game went"), this.body);
    this.shown = null; // the version of the game that is looked back at
  }

  /** Look back at a game that is over; hide the card before that. */
  async show(view) {
    this.element.hidden = view.turn !== "over";
    if (view.turn !== "over") this.shown = null;
    if (view.turn !== "over" || this.shown === view.version) return;
    const version = (this.shown = view.version);
    this.body.replaceChildren(thinking("value"), el("p", { class: "doing" }, "The first time, the engine is prepared for this; that can take a minute."));
    try {
      const found = await post(this.path("review"), {});
      if (this.shown !== version) return;
      const address = (position) => `/replay/${found.file}#0/${position}`;
      const drawn = graph(found.values, [...found.decisions, found.events], found.rounds, found.events, found.team_names, (position) => location.assign(address(position)));
      drawn.mark(found.events);
      this.body.replaceChildren(drawn.root, ...moments(found, address));
    } catch (error) {
      if (this.shown === version) this.body.replaceChildren(el("p", { role: "alert" }, error.message));
    }
  }
}
