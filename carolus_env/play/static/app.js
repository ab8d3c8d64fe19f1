// The entry: opens the page that the address names.

import { get } from "./api.js";
import { copy, isTyping, looks } from "./dom.js";
import { gamePage } from "./game.js";
import { replayPage } from "./replay.js";
import { startPage } from "./start.js";

const help = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
const openHelp = () => help.showModal();
document.getElementById("help-button").addEventListener("click", openHelp);
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event)) openHelp();
});

// A page that Back brings to life again would not know what was chosen and kept since.
addEventListener("pageshow", (event) => event.persisted && location.reload());

async function start() {
  const main = document.getElementById("main");
  const [, page, key] = location.pathname.split("/");
  document.getElementById({ "": "to-start", replay: "to-replay" }[page])?.setAttribute("aria-current", "page");
  try {
    const menu = await get("menu");
    Object.assign(looks, menu.icons);
    if (page === "game") await gamePage(main, menu);
    else if (page === "replay") await replayPage(main, menu, key);
    else startPage(main, menu);
  } catch (error) {
    document.title = "Carolus";
    main.className = "start";
    const { all, reason } = copy("failed");
    reason.textContent = error.message;
    main.replaceChildren(all);
    if (error.constructor !== Error) console.error(error);
  }
}

start();
