// Requests to the server, whose errors carry its sentence; and what the browser keeps.

import { el, notice } from "./dom.js";

export class ServerError extends Error {
  constructor(status, answer) {
    super(answer.error ?? "the server failed without a reason");
    this.status = status;
    this.answer = answer;
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(`/api/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, {
      error:
        "The server is not responding. This browser keeps your last game: restart the server and reload this page.",
    });
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    answer = {};
  }
  if (!response.ok) throw new ServerError(response.status, answer);
  return answer;
}

export function get(path) {
  return ask(path, {});
}

export function post(path, data, signal) {
  const headers = { "content-type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(data), signal });
}

// ------------------------------------------------------------------------------------ files

/** Send a file of records to the server and open the viewer. */
export async function openFile(file) {
  await openRecords(file.name, file);
}

/** Send the content of a file of records to the server and open the viewer. */
export async function openRecords(name, content) {
  const headers = { "content-type": "application/octet-stream" };
  try {
    const { key } = await ask(`files?name=${encodeURIComponent(name)}`, { method: "POST", headers, body: content });
    location.assign(`/replay/${key}`);
  } catch (error) {
    notice(error.message);
  }
}

/** A card that takes a file, and lists those named on the command line. */
export function filesCard(menu) {
  const input = el("input", { type: "file", accept: ".jsonl,.json,.gz", id: "record-file", onchange: choose });
  async function choose() {
    if (input.files.length) await openFile(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  }
  return el(
    "section",
    { class: "card", "aria-labelledby": "files-title" },
    el("h2", { id: "files-title" }, "View a recorded game"),
    el("p", {}, "Open a file of game records. You can play on from any position."),
    el("label", { class: "chooser", for: "record-file" }, "Choose a file or drop it here", input),
    el(
      "ul",
      { class: "games" },
      menu.files.map((file) => el("li", {}, el("a", { href: `/replay/${file.key}` }, file.name))),
    ),
  );
}

// ------------------------------------------------------------------------------------ the browser

/** A setting of this browser, or the game that it keeps. */
export function setting(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`carolus.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function setSetting(name, value) {
  try {
    localStorage.setItem(`carolus.${name}`, JSON.stringify(value));
  } catch {
    /* the storage is full or not allowed */
  }
}
