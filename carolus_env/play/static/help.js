// The pictures of the help: parts of one example board, drawn by the server.

import { get } from "./api.js";
import { drawing } from "./board.js";
import { CROWN, diceRow } from "./dice.js";
import { clanNames, notice } from "./dom.js";
import { boxIn } from "./geometry.js";

/** What each picture shows, and how much around it, in the drawing's units. */
const PARTS = {
  regions: [".region", 8],
  discs: ['.seat[data-seat="0"] .disc', 12],
  reserve: ['.reserve[data-seat="0"]', 12],
  court: ['.court[data-seat="0"]', 8],
  castles: ['.seat[data-seat="0"] .castles, .seat[data-seat="0"] > path', 12],
  emperor: ['.emperor, .step, .region[data-region="0"], .region[data-region="1"]', 6],
};

export function openHelp() {
  const dialog = document.getElementById("help");
  dialog.showModal();
  drawPictures(dialog).catch((error) => notice(error.message)); // the words are there without
}

/** Fill the figures of the help. */
async function drawPictures(dialog) {
  const { theme } = document.documentElement.dataset;
  if (dialog.dataset.drawn === theme) return;
  const { svg } = await get(`example?layout=wide&theme=${theme}`);
  dialog.dataset.drawn = theme;
  const whole = drawing(svg);
  whole.classList.add("measured");
  dialog.append(whole); // boxes are known only of what is laid out
  for (const figure of dialog.querySelectorAll("figure[data-part]")) {
    const [parts, edge] = PARTS[figure.dataset.part];
    const box = boxIn(whole, [...whole.querySelectorAll(parts)]);
    if (!box) continue;
    const crop = whole.cloneNode(true);
    crop.classList.remove("measured");
    crop.setAttribute("viewBox", [box.x - edge, box.y - edge, box.width + 2 * edge, box.height + 2 * edge].join(" "));
    crop.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    figure.querySelector("svg")?.remove();
    figure.prepend(crop);
  }
  whole.remove();
  const dice = dialog.querySelector("figure[data-dice]");
  const row = diceRow([...clanNames(), CROWN], dice.querySelector("figcaption").textContent);
  row.setAttribute("class", `carolus carolus-${theme}`);
  dice.querySelector("svg")?.remove();
  dice.prepend(row);
}
