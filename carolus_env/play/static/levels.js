// The first choice: whom to play against; a game starts at once.

import { post } from "./api.js";
import { el } from "./dom.js";
import { setSetting, setting } from "./store.js";
import { Warmth } from "./warm.js";

export function levelsCard(menu) {
  const problem = el("p", { class: "problem", role: "alert" });
  const toured = el("input", { type: "checkbox" });
  toured.checked = setting("toured", false) !== true;
  const buttons = menu.levels.map((level) =>
    el(
      "button",
      { type: "button", class: `level ${level.name}`, onclick: () => start(level) },
      el("b", {}, title(level.name)),
      el("span", {}, level.about),
      el("small", {}, level.agent),
    ),
  );

  let isSent = false;

  async function start(level) {
    problem.textContent = "";
    isSent = true; // a second click would start a second game
    show();
    const name = setting("start", {}).seats?.[0]?.name ?? null;
    const bot = `${title(level.name)} bot`;
    try {
      const game = await post("games", { rules: { ...menu.rules, players: 2 }, agents: [null, level.agent], names: [name, bot], seed: null });
      setSetting("tour", toured.checked ? game.key : null);
      location.assign(`/game/${game.key}`);
    } catch (error) {
      problem.textContent = error.message;
      isSent = false;
      show();
    }
  }

  /** A level can be chosen when its bot can play at once. */
  function show() {
    buttons.forEach((button, k) => (button.disabled = isSent || !warmth.isReady([menu.levels[k].agent])));
  }

  const warmth = new Warmth(menu.warm, show);
  show();
  return el(
    "section",
    { class: "card first", "aria-labelledby": "first-title" },
    el("h1", { id: "first-title" }, "Play against a bot"),
    el("div", { class: "levels" }, buttons),
    el("label", { class: "with-tour" }, toured, "Explain the board in the first round"),
    warmth.element,
    problem,
  );
}

function title(name) {
  return name[0].toUpperCase() + name.slice(1);
}
