// The board as it would be after a step of the Emperor, laid over the board.

import { drawing } from "./board.js";
import { el } from "./dom.js";

export class StepPreview {
  /** `fetchStep(action)` asks the server for the board after a step. */
  constructor(fetchStep) {
    this.fetchStep = fetchStep;
    this.element = el("div", { class: "future", hidden: true });
    this.answers = new Map(); // by action
    this.action = null; // of the step that is shown, or asked for
  }

  /** Hide the preview and forget what the server answered for another position. */
  clear() {
    this.answers.clear();
    this.show(null);
  }

  /** Show a step; null: the board as it is. */
  async show(step) {
    if (this.action === (step?.action ?? null)) return;
    this.action = step?.action ?? null;
    if (step === null) {
      this.element.hidden = true;
      this.element.replaceChildren();
      return;
    }
    if (!this.answers.has(step.action)) this.answers.set(step.action, this.fetchStep(step.action));
    const answer = this.answers.get(step.action);
    try {
      const { svg } = await answer;
      if (this.answers.get(step.action) !== answer || this.action !== step.action) return;
      this.element.replaceChildren(drawing(svg), el("p", {}, `After ${step.text}: ${step.result}`));
      this.element.hidden = false;
    } catch {
      this.answers.delete(step.action); // the step's button shows the result as well
    }
  }
}
