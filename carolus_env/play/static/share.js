// Sharing: the position as text and as a link, the board as a picture, the game as a film or a record.

import { look } from "./board.js";
import { el, notice, say } from "./dom.js";

/** The address that shows a position, given as text. */
export function linkTo(line) {
  return `${location.origin}/position#${encodeURIComponent(line)}`;
}

/**
 * A button that opens the choices.
 * @param line the position as text, when it is asked for
 * @param picture the request of the board as a picture of a kind, `png` or `svg`
 * @param film the request of the game as a film, `gif` or `html`; null: there is no game
 * @param record the request of the record; null: there is none
 */
export function shareButton({ line, picture, film = null, record = null }) {
  return el("button", { type: "button", class: "quiet", "aria-haspopup": "dialog", onclick: open }, "Share");

  function open() {
    const dialog = el("dialog", { class: "sharing", "aria-labelledby": "share-title" });
    const part = (title, ...children) => el("section", {}, el("h3", {}, title), el("div", { class: "tools" }, children));
    const text = el("input", { readonly: true, value: line(), "aria-label": "The position as text", onfocus: () => text.select() });
    dialog.append(
      el("form", { method: "dialog" }, el("h2", { id: "share-title" }, "Share"), el("button", { class: "primary" }, "Close")),
      part("This position", text, copier("Copy position", line), copier("Copy link", () => linkTo(line()))),
      el("p", {}, el("small", {}, "A link opens the position on any machine where this page runs at the same address. Paste a position on the start page.")),
      part("A picture of the board", saver("PNG", picture("png")), saver("SVG", picture("svg"))),
    );
    if (film) dialog.append(part("The game as a film", saver("GIF", film("gif")), saver("page that plays", film("html"))));
    if (record) dialog.append(part("The game's record", saver("record", record())));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
}

function copier(label, content) {
  return el("button", { type: "button", onclick: async () => tell((await copied(content())) ? "Copied." : "The browser does not allow copying; select the text and copy it.") }, label);
}

async function copied(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    return false;
  }
}

function tell(text) {
  notice(text);
  say(text);
}

/** A button that fetches a file and hands it to the user; making a film can take seconds. */
function saver(label, path) {
  const button = el("button", { type: "button", onclick: save }, `Save ${label}`);
  async function save() {
    button.disabled = true;
    button.classList.add("thinking");
    try {
      const asked = `/api/${path}${path.includes("?") ? "&" : "?"}${look()}`;
      const answer = await fetch(asked);
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? "the server failed without a reason");
      const address = URL.createObjectURL(await answer.blob());
      const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "carolus";
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      tell(`Saved as ${name}.`);
    } catch (error) {
      tell(error.message);
    } finally {
      button.disabled = false;
      button.classList.remove("thinking");
    }
  }
  return button;
}
