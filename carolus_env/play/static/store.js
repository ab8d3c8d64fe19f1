// Games and settings kept in the browser; a restarted server continues the games.

const LIST = "carolus.games";
const MOST = 20;

function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** The games that are kept, the latest first: `{key, names, text, when}`. */
export function keptGames() {
  const games = read(LIST, []);
  return Array.isArray(games) ? games.filter((game) => typeof game?.key === "string") : [];
}

export function keptRecord(key) {
  return read(`carolus.game.${key}`, null);
}

/** Keep a game, if the browser can. */
export function keep(key, view) {
  const text = view.outcome ?? (view.round ? `round ${view.round}` : "set-up");
  const entry = { key, names: view.names, text, when: Date.now(), over: view.turn === "over" };
  const games = [entry, ...keptGames().filter((game) => game.key !== key)];
  try {
    for (const gone of games.splice(MOST)) localStorage.removeItem(`carolus.game.${gone.key}`);
    localStorage.setItem(`carolus.game.${key}`, JSON.stringify(view.record));
    localStorage.setItem(LIST, JSON.stringify(games));
  } catch {
    /* the storage is full or not allowed */
  }
}

export function forget(key) {
  try {
    localStorage.removeItem(`carolus.game.${key}`);
    localStorage.setItem(LIST, JSON.stringify(keptGames().filter((game) => game.key !== key)));
  } catch {
    /* as above */
  }
}

/** A setting of this browser. */
export function setting(name, otherwise) {
  return read(`carolus.${name}`, otherwise);
}

export function setSetting(name, value) {
  try {
    localStorage.setItem(`carolus.${name}`, JSON.stringify(value));
  } catch {
    /* as above */
  }
}
