// A recorded game that plays by itself: a button, and how fast.

import { el, isTyping } from "./dom.js";
import { setSetting, setting } from "./store.js";

const PACES = { slow: 2500, normal: 1200, fast: 400 }; // milliseconds at a position

export class Autoplay {
  /** `next()` goes one position on and returns whether there is one after it; `rest()` is called at the end of it. */
  constructor(next, rest) {
    this.next = next;
    this.rest = rest;
    this.run = 0; // numbers the runs, so that one that was stopped does not go on
    this.isPlaying = false;
    this.button = el("button", { type: "button", class: "primary", "aria-keyshortcuts": "Space", onclick: () => this.toggle() });
    const chosen = setting("pace", "normal");
    this.pace = el("select", { "aria-label": "Pace", onchange: () => setSetting("pace", this.pace.value) }, Object.keys(PACES).map((name) => el("option", { value: name }, name)));
    this.pace.value = chosen in PACES ? chosen : "normal";
    this.element = el("div", { class: "autoplay" }, this.button, this.pace);
    document.addEventListener("keydown", (event) => {
      if (event.key !== " " || isTyping(event) || event.target.closest("button, a, summary")) return;
      event.preventDefault();
      this.toggle();
    });
    this.label();
  }

  label() {
    this.button.textContent = this.isPlaying ? "Pause" : "Play";
  }

  toggle() {
    if (this.isPlaying) this.stop();
    else this.start();
  }

  async start() {
    const run = ++this.run;
    this.isPlaying = true;
    this.label();
    while (await this.next()) {
      await new Promise((resolve) => setTimeout(resolve, PACES[this.pace.value]));
      if (run !== this.run) return; // stopped meanwhile
    }
    if (run === this.run) this.stop();
  }

  stop() {
    if (!this.isPlaying) return;
    this.run += 1;
    this.isPlaying = false;
    this.label();
    this.rest();
  }
}
