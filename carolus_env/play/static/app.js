// The entry: opens the page that the address names.

import { get } from "./api.js";
import { el, isTyping, onDrop, say, setLooks } from "./dom.js";
import { openFile } from "./files.js";
import { gamePage } from "./game.js";
import { openHelp } from "./help.js";
import { positionPage } from "./position.js";
import { replayPage } from "./replay.js";
import { startPage } from "./start.js";
import { setSetting } from "./store.js";

const THEMES = { auto: "same as system", light: "light", dark: "dark" };

document.getElementById("help-button").addEventListener("click", openHelp);
const themeButton = document.getElementById("theme-button");
const root = document.documentElement;
if (!(root.dataset.theme in THEMES)) root.dataset.theme = "auto";
const showTheme = () => (themeButton.title = `Theme: ${THEMES[root.dataset.theme]}`);
themeButton.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  root.dataset.theme = names[(names.indexOf(root.dataset.theme) + 1) % names.length];
  setSetting("theme", root.dataset.theme);
  showTheme();
  say(themeButton.title);
  document.dispatchEvent(new Event("theme"));
});
showTheme();
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event)) openHelp();
});
onDrop(openFile);

async function start() {
  const main = document.getElementById("main");
  const [, page, key] = location.pathname.split("/");
  document.getElementById(page === "replay" ? "to-replay" : "to-start").setAttribute("aria-current", page ? (page === "replay" ? "page" : "false") : "page");
  try {
    const menu = await get("menu");
    setLooks(menu.looks);
    if (page === "game") await gamePage(main, menu, key);
    else if (page === "replay") await replayPage(main, menu, key);
    else if (page === "position") await positionPage(main, menu);
    else startPage(main, menu);
  } catch (error) {
    document.title = "Carolus";
    main.className = "start";
    main.replaceChildren(el("section", { class: "card" }, el("h1", {}, "This page cannot be shown"), el("p", { role: "alert" }, error.message), el("a", { class: "button primary", href: "/" }, "New game")));
    if (!error.status) console.error(error);
  }
}

start();
