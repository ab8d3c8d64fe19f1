// The start page: a new game, games to continue, recorded games to view.

import { remove } from "./api.js";
import { el } from "./dom.js";
import { chooser } from "./files.js";
import { openHelp } from "./help.js";
import { levelsCard } from "./levels.js";
import { newGameForm } from "./newgame.js";
import { pasteCard } from "./position.js";
import { forget, keptGames, setSetting, setting } from "./store.js";

export function startPage(main, menu) {
  document.title = "Carolus";
  main.className = "start";
  main.replaceChildren(
    el("div", {}, levelsCard(menu), moreCard(menu)),
    el("div", {}, keptCard(), rulesCard(), filesCard(menu), pasteCard()),
  );
}

/** All other games: more players, other bots, options; it stays open for those who opened it. */
function moreCard(menu) {
  const details = el("details", { class: "more", ontoggle: () => setSetting("more", details.open) }, el("summary", {}, el("b", {}, "More"), " players, other bots, partners, rules"), newGameForm(menu));
  details.open = setting("more", false) === true;
  return details;
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
    el("button", { type: "button", onclick: openHelp }, "How to play"),
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
