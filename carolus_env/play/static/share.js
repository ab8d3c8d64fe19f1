// Positions and games that leave the page: as text, pictures and files.

import { copy, el, notice, say } from "./dom.js";

const WIDTH = 1200; // pixels of a picture

/** Share the position of a view: as text, as a picture. */
export function share({ line, svg }) {
  const { all, dialog, text, copy: copying, png, svg: drawing } = copy("sharing");
  text.value = line;
  text.onfocus = () => text.select();
  copying.onclick = () =>
    navigator.clipboard.writeText(line).then(
      () => tell("Copied."),
      () => tell("The browser does not allow copying; select the text and copy it."),
    );
  png.onclick = () => savePng(svg);
  drawing.onclick = () => save(svg, "image/svg+xml", "carolus.svg");
  show(all, dialog);
}

/** Show a dialog of a template's copy until it is closed. */
export function show(all, dialog) {
  dialog.onclose = () => dialog.remove();
  document.body.append(all);
  dialog.showModal();
}

/** Save a record as a file. */
export function saveRecord(record) {
  save(`${JSON.stringify(record)}\n`, "application/jsonl", "carolus.jsonl");
}

async function savePng(svg) {
  const [across, down] = /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(svg).slice(1).map(Number);
  const height = Math.round((WIDTH * down) / across);
  const image = new Image(WIDTH, height);
  const sized = svg.replace("<svg ", `<svg width="${WIDTH}" height="${height}" `);
  image.src = URL.createObjectURL(new Blob([sized], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = el("canvas", { width: WIDTH, height });
  canvas.getContext("2d").drawImage(image, 0, 0, WIDTH, height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => save(blob, "image/png", "carolus.png"));
}

function save(content, type, name) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  tell(`Saved as ${name}.`);
}

function tell(text) {
  notice(text);
  say(text);
}
