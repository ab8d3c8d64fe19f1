// A position in text: the board, and what bots think of it.

import { post } from "./api.js";
import { look, onLook } from "./board.js";
import { el } from "./dom.js";
import { Opinions } from "./opinions.js";
import { linkTo, shareButton } from "./share.js";
import { Stage } from "./stage.js";
import { heading } from "./texts.js";

export async function positionPage(main, menu) {
  document.title = "Position · Carolus";
  await new PositionPage(main, menu).open();
}

class PositionPage {
  constructor(main, menu) {
    this.menu = menu;
    this.main = main;
    this.stage = new Stage({ point: (piece) => this.point(piece), leave: () => this.stage.tip.hide() });
    this.title = el("h1", {});
    this.opinions = new Opinions({ "aria-live": "polite" });
    this.agent = el("select", { "aria-label": "Bot to ask" }, menu.advisers.map((spec) => el("option", { value: spec }, spec)));
    this.ask = el("button", { type: "button", onclick: () => this.opine() }, "Ask");
    const share = shareButton({ line: () => this.view.line, picture: (kind) => `positions/picture.${kind}?text=${encodeURIComponent(this.view.line)}` });
    main.className = "table";
    main.replaceChildren(
      this.stage.element,
      el(
        "section",
        { class: "panel", "aria-label": "The position" },
        el("div", { class: "card" }, this.title, el("div", { class: "tools" }, this.agent, this.ask, share), this.opinions.element),
        pasteCard(),
        this.stage.words.card,
      ),
    );
    addEventListener("hashchange", () => location.reload());
    onLook(() => this.draw());
  }

  async open() {
    await this.draw();
    this.title.textContent = this.view.outcome ?? heading({ ...this.view, turn: "person" });
    this.ask.disabled = !this.view.decides;
  }

  async draw() {
    this.view = await post(`positions?${look()}`, { text: plain(location.hash.slice(1)) });
    this.stage.show(this.view);
  }

  opine() {
    return this.opinions.ask([this.agent.value], "positions/hint", { text: this.view.line }, this.view.team_names);
  }

  point(piece) {
    this.stage.tip.show(piece?.element, piece?.kind === "region" && !this.view.outcome ? this.view.regions[piece.region] : null);
  }
}

/** A card that takes a position as text. */
export function pasteCard() {
  const text = el("textarea", { "aria-label": "A position as text", rows: 3, spellcheck: "false", placeholder: "2 | 7 | 1 place 1 | …" });
  const problem = el("p", { class: "problem", role: "alert" });
  const show = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const { line } = await post("positions", { text: bare(text.value) });
      location.assign(linkTo(line));
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const form = el("form", { class: "paste", onsubmit: show, "aria-label": "Paste a position" }, text, problem, el("button", { type: "submit" }, "Show it"));
  return el("section", { class: "card" }, el("h2", {}, "Paste a position"), form);
}

/** A position's text, of itself or of a link to it. */
function bare(text) {
  const hash = /^https?:\S*#(\S+)$/.exec(text.trim());
  return hash ? plain(hash[1]) : text.trim();
}

/** Text as it was before it became part of an address. */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
