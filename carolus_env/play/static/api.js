// Requests to the server. Errors carry the server's sentence.

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
    throw new ServerError(0, { error: "The server is not responding. Your game is saved in this browser: restart the server and reload this page." });
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

export function get(path, signal) {
  return ask(path, { signal });
}

export function post(path, data, signal) {
  const headers = { "content-type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(data), signal });
}

export function remove(path) {
  return ask(path, { method: "DELETE" });
}

/** Send a file to the server. */
export function postFile(name, content) {
  const headers = { "content-type": "application/octet-stream" };
  return ask(`files?name=${encodeURIComponent(name)}`, { method: "POST", headers, body: content });
}
