// While the server compiles: how far it is, and whether the bots that were chosen can play at once.

import { get } from "./api.js";
import { el } from "./dom.js";

const AGAIN = 700; // milliseconds until the server is asked again

export class Warmth {
  /**
   * @param state the menu's `warm`
   * @param changed called when it has changed
   */
  constructor(state, changed) {
    this.state = state;
    this.changed = changed;
    this.bar = el("progress", { max: state.all || 1, value: state.done, "aria-label": "Preparing the engine" });
    this.text = el("span", {}, state.text);
    this.element = el("p", { class: "warmth", role: "status" }, this.bar, " ", this.text);
    this.show();
    this.follow();
  }

  /** Whether these agents can play at once; specs, and null for people. */
  isReady(agents) {
    const { done, all, cold } = this.state;
    if (all > 0 && done === 0) return false; // the game itself
    return agents.every((spec) => spec === null || !cold.includes(spec.split(":")[0]));
  }

  show() {
    const { ready, done, text } = this.state;
    this.element.hidden = ready;
    this.bar.value = done;
    if (this.text.textContent !== text) this.text.textContent = text;
  }

  async follow() {
    while (!this.state.ready || this.state.cold.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
      try {
        this.state = await get("warm");
      } catch {
        continue; // the server may come back
      }
      this.show();
      this.changed();
    }
  }
}
