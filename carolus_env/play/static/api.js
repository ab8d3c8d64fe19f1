// Requests to the server, whose errors carry its sentence; and what the browser keeps.

import { layout } from "./stage.js";

async function ask(path, options) {
  let response, answer;
  try {
    response = await fetch(`/api/${path}`, options);
    answer = await (response.ok ? response.json() : response.json().catch(() => ({})));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server is not responding. This tab keeps the game: restart the server and reload this page.");
  }
  if (!response.ok) throw new Error(answer.error ?? "the server failed without a reason");
  return answer;
}

export function get(path) {
  return ask(path, {});
}

export function post(path, data, signal) {
  const headers = { "content-type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(data), signal });
}

/** A game or a position as the server shows it in this window: its answer to `view` or `decide`. */
export function look(request, data, signal) {
  return post(request, { ...data, layout: layout() }, signal);
}

/** The record of a game after its first `at` events. */
export function cut(record, at) {
  return { ...record, events: record.events.slice(0, at), result: null };
}

const browser = () => localStorage; // even to name a storage may not be allowed
const tab = () => sessionStorage;

/** Read from a storage; null: nothing is there, or it may not be read. */
function read(storage, name) {
  try {
    return JSON.parse(storage().getItem(`carolus.${name}`));
  } catch {
    return null;
  }
}

/** Write to a storage; false: it is full or not allowed, and has nothing of that name. */
function write(storage, name, value) {
  try {
    storage().removeItem(`carolus.${name}`);
    storage().setItem(`carolus.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** A setting of this browser. */
export function setting(name, otherwise) {
  return read(browser, name) ?? otherwise;
}

export function setSetting(name, value) {
  write(browser, name, value);
}

/** The record that this tab keeps under a name, also when it is loaded again; null: none. */
export function kept(name) {
  return read(tab, name) ?? named()[name] ?? null;
}

/** Keep a record in this tab; false: only from page to page, by the name of the window. */
export function keep(name, record) {
  const isKept = write(tab, name, record);
  window.name = JSON.stringify({ ...named(), [name]: isKept ? undefined : record });
  return isKept;
}

/** The records that the name of the window holds. */
function named() {
  try {
    return Object(JSON.parse(window.name));
  } catch {
    return {};
  }
}

/** Keep the game in play: as the last one of this browser, and in this tab; false: not for long. */
export function keepGame(record) {
  setSetting("game", record);
  return keep("game", record);
}
