// Which page is asked for.

import { get } from "./api.js";
import { el, isTyping, notice, onDrop, setLooks } from "./dom.js";
import { gamePage } from "./game.js";
import { openFile, replayPage } from "./replay.js";
import { startPage } from "./start.js";

const help = document.getElementById("help");
document.getElementById("help-button").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event)) help.showModal();
});
onDrop(openFile);

async function start() {
  const main = document.getElementById("main");
  const [, page, key] = location.pathname.split("/");
  document.getElementById(page === "replay" ? "to-replay" : "to-start").setAttribute("aria-current", page === "game" ? "false" : "page");
  try {
    const menu = await get("menu");
    setLooks(menu.looks);
    if (page === "game") await gamePage(main, menu, key);
    else if (page === "replay") await replayPage(main, menu, key);
    else startPage(main, menu);
  } catch (error) {
    main.replaceChildren(el("p", { class: "card" }, error.message, " ", el("a", { href: "/" }, "To the start")));
    notice(error.message);
    if (!error.status) console.error(error);
  }
}

start();
