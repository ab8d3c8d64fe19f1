// The first choice: whom to play against; a game starts at once.

import { get, post } from "./api.js";
import { el } from "./dom.js";
import { setSetting, setting } from "./store.js";

const AGAIN = 1000; // milliseconds until the server is asked again how far it is

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

  async function start(level) {
    problem.textContent = "";
    for (const button of buttons) button.disabled = true; // a second click would start a second game
    const name = setting("start", {}).seats?.[0]?.name ?? null;
    const bot = `${title(level.name)} bot`;
    try {
      const game = await post("games", { rules: { ...menu.rules, players: 2 }, agents: [null, level.agent], names: [name, bot], seed: null });
      setSetting("tour", toured.checked ? game.key : null);
      location.assign(`/game/${game.key}`);
    } catch (error) {
      problem.textContent = error.message;
      for (const button of buttons) button.disabled = false;
    }
  }

  return el(
    "section",
    { class: "card first", "aria-labelledby": "first-title" },
    el("h1", { id: "first-title" }, "Play against a bot"),
    el("div", { class: "levels" }, buttons),
    el("label", { class: "with-tour" }, toured, "Explain the board in the first round"),
    warmth(menu, buttons),
    problem,
  );
}

/** How far the server is with preparing the engine; the buttons wait for it. */
function warmth(menu, buttons) {
  const bar = el("progress", { max: 1, value: 0 });
  const text = el("span", {});
  const place = el("p", { class: "warmth", hidden: true }, bar, text);
  const show = ({ warm }) => {
    const isReady = warm?.ready ?? true;
    place.hidden = isReady;
    for (const button of buttons) button.disabled = !isReady;
    if (isReady) return;
    bar.max = warm.all || 1;
    bar.value = warm.done;
    text.textContent = warm.text;
    setTimeout(ask, AGAIN);
  };
  const ask = () => get("menu").then(show, () => setTimeout(ask, AGAIN));
  show(menu);
  return place;
}

function title(name) {
  return name[0].toUpperCase() + name.slice(1);
}
