// The entry: opens the page that the address names.

import { get, openFile } from "./api.js";
import { el, isTyping, onDrop, setIcons } from "./dom.js";
import { gamePage } from "./game.js";
import { positionPage } from "./position.js";
import { replayPage } from "./replay.js";
import { startPage } from "./start.js";

const help = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
const openHelp = () => help.showModal();
document.getElementById("help-button").addEventListener("click", openHelp);
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event)) openHelp();
});
onDrop(openFile);

async function start() {
  const main = document.getElementById("main");
  const [, page, key] = location.pathname.split("/");
  if (page !== "game" && page !== "position")
    document.getElementById(page === "replay" ? "to-replay" : "to-start").setAttribute("aria-current", "page");
  try {
    const menu = await get("menu");
    setIcons(menu.icons);
    if (page === "game") await gamePage(main, menu, key);
    else if (page === "replay") await replayPage(main, menu, key);
    else if (page === "position") await positionPage(main, menu);
    else startPage(main, menu);
  } catch (error) {
    document.title = "Carolus";
    main.className = "start";
    main.replaceChildren(
      el(
        "section",
        { class: "card" },
        el("h1", {}, "This page cannot be shown"),
        el("p", { role: "alert" }, error.message),
        el("a", { class: "button primary", href: "/" }, "New game"),
      ),
    );
    if (!error.status) console.error(error);
  }
}

start();
