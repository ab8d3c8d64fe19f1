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

/** A setting of this browser. */
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

/** The record that this tab keeps under a name, also when it is loaded again; null: none. */
export function kept(name) {
  return JSON.parse(sessionStorage.getItem(`carolus.${name}`));
}

export function keep(name, record) {
  sessionStorage.setItem(`carolus.${name}`, JSON.stringify(record));
}

/** Keep the game in play: in this tab, and as the last one of this browser. */
export function keepGame(record) {
  keep("game", record);
  setSetting("game", record);
}
