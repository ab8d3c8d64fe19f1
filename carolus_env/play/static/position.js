// A position in text: shared, pasted, shown as a board, and judged by bots.

import { post } from "./api.js";
import { button, el, notice, say, select } from "./dom.js";
import { Opinions } from "./opinions.js";
import { heading, layout, onLayout, Stage } from "./stage.js";

const WIDTH = 1200; // pixels of a picture

export async function positionPage(main, menu) {
  document.title = "Position · Carolus";
  let view = null;
  const stage = new Stage((piece) => (piece?.kind === "region" && !view.outcome ? view.regions[piece.region] : null));
  const opinions = new Opinions({ "aria-live": "polite" });
  const agent = select({ "aria-label": "Bot to ask" }, menu.advisers);
  const ask = el(
    "button",
    {
      type: "button",
      onclick: () => opinions.ask(agent.value, view.line, view.team_names),
    },
    "Ask",
  );
  const title = el("h1", {});
  async function draw() {
    view = await post(`positions?${layout()}`, { text: plain(location.hash.slice(1)) });
    title.textContent = heading(view);
    ask.disabled = !view.decides;
    stage.show(view);
  }
  await draw();
  main.className = "table";
  main.replaceChildren(
    el("div", { class: "left" }, stage.element, stage.words),
    el(
      "section",
      { class: "right", "aria-label": "The position" },
      el(
        "div",
        { class: "card" },
        title,
        el(
          "div",
          { class: "tools" },
          agent,
          ask,
          shareButton(() => view),
        ),
        opinions.element,
      ),
      pasteCard(),
    ),
  );
  addEventListener("hashchange", () => location.reload());
  onLayout(draw);
}

/** A card that takes a position as text. */
export function pasteCard() {
  const text = el("textarea", {
    "aria-label": "A position as text",
    rows: 3,
    spellcheck: "false",
    placeholder: "2 | 7 | 1 place 1 | …",
  });
  const problem = el("p", { class: "problem", role: "alert" });
  const show = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const link = /^https?:\S*#(\S+)$/.exec(text.value.trim());
    try {
      const { line } = await post("positions", { text: link ? plain(link[1]) : text.value.trim() });
      location.assign(linkTo(line));
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const form = el(
    "form",
    { class: "paste", onsubmit: show, "aria-label": "Paste a position" },
    text,
    problem,
    el("button", { type: "submit" }, "Show it"),
  );
  return el("section", { class: "card" }, el("h2", {}, "Paste a position"), form);
}

/** A button that shares the position of `view()`: as text, as a link, as a picture. */
export function shareButton(view) {
  return button("Share", null, () => {
    const { line, svg } = view();
    const text = el("input", {
      readonly: true,
      value: line,
      "aria-label": "The position as text",
      onfocus: () => text.select(),
    });
    const dialog = el(
      "dialog",
      { class: "sharing", "aria-labelledby": "share-title", onclose: () => dialog.remove() },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "share-title" }, "Share this position"),
        el("button", { class: "primary" }, "Close"),
      ),
      text,
      el(
        "div",
        { class: "tools" },
        button("Copy position", null, () => copy(line)),
        button("Copy link", null, () => copy(linkTo(line))),
        button("Save PNG", null, () => savePng(svg)),
        button("Save SVG", null, () => save(new Blob([svg], { type: "image/svg+xml" }), "carolus.svg")),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

function linkTo(line) {
  return `${location.origin}/position#${encodeURIComponent(line)}`;
}

async function copy(text) {
  const isCopied = await navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
  tell(isCopied ? "Copied." : "The browser does not allow copying; select the text and copy it.");
}

async function savePng(svg) {
  const [across, down] = /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(svg).slice(1).map(Number);
  const height = Math.round((WIDTH * down) / across);
  const image = new Image(WIDTH, height);
  image.src = URL.createObjectURL(
    new Blob([svg.replace("<svg ", `<svg width="${WIDTH}" height="${height}" `)], { type: "image/svg+xml" }),
  );
  await image.decode();
  const canvas = el("canvas", { width: WIDTH, height });
  canvas.getContext("2d").drawImage(image, 0, 0, WIDTH, height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => save(blob, "carolus.png"));
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  tell(`Saved as ${name}.`);
}

function tell(text) {
  notice(text);
  say(text);
}

/** Text as it was before it became part of an address. */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
