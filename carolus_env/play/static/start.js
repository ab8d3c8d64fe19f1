// The start page: a new game, games to continue, recorded games to view.

import { remove } from "./api.js";
import { el } from "./dom.js";
import { chooser } from "./files.js";
import { newGameForm } from "./newgame.js";
import { forget, keptGames } from "./store.js";

export function startPage(main, menu) {
  document.title = "Carolus";
  main.className = "start";
  main.replaceChildren(
    newGameForm(menu),
    el("div", {}, keptCard(), rulesCard(), filesCard(menu)),
  );
}

function keptCard() {
  const list = el("ul", { class: "games" });
  const card = el("section", { class: "card", "aria-labelledby": "kept-title" }, el("h2", { id: "kept-title" }, "Continue a game"), list);
  const fill = () => {
    const games = keptGames();
    card.hidden = games.length === 0;
    list.replaceChildren(
      ...games.map((game) =>
        el(
          "li",
          {},
          el("a", { href: `/game/${encodeURIComponent(game.key)}` }, names(game.names), el("small", {}, `${game.text}, ${new Date(game.when).toLocaleString()}`)),
          el("button", { class: "quiet", type: "button", "aria-label": `Forget the game: ${names(game.names)}`, onclick: () => { forget(game.key); remove(`games/${encodeURIComponent(game.key)}`).catch(() => {}); fill(); } }, "×"),
        ),
      ),
    );
  };
  fill();
  return card;
}

function rulesCard() {
  return el(
    "section",
    { class: "card", "aria-labelledby": "rules-title" },
    el("h2", { id: "rules-title" }, "New to the game?"),
    el("p", {}, "Each clan serves the player who controls it at court. Where the Emperor stops, the strongest player builds a castle."),
    el("button", { type: "button", onclick: () => document.getElementById("help").showModal() }, "How to play"),
  );
}

function names(list) {
  return Array.isArray(list) ? list.join(", ") : "";
}

function filesCard(menu) {
  return el(
    "section",
    { class: "card", "aria-labelledby": "files-title" },
    el("h2", { id: "files-title" }, "View a recorded game"),
    el("p", {}, "Open a file of game records, or drop it anywhere on this page. You can play on from any position."),
    chooser(),
    menu.files.length > 0 &&
      el("ul", { class: "games" }, menu.files.map((file) => el("li", {}, el("a", { href: `/replay/${file.key}` }, file.name)))),
  );
}
