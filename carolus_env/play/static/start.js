// The start page: a game against a bot at once, any other new game, the last game, recorded games.

import { keep, keepGame, look, setSetting, setting } from "./api.js";
import { copy, el, fill, teamIcon } from "./dom.js";

const PERSON = "";
const OTHER = "other";

export function startPage(main, menu) {
  document.title = "Carolus";
  main.className = "start";
  const page = copy("start");
  const last = setting("game");
  page.levels.append(...levelButtons(menu, page.levels, page.problem));
  page.more.append(newGameForm(menu));
  page.last.hidden = !last;
  page.link.textContent = last?.names?.join(", ");
  page.link.onclick = () => keep("game", last);
  page.right.append(recordsCard(menu));
  main.replaceChildren(page.all);
}

/** A card that lists the files named on the command line, and takes a record as text. */
export function recordsCard(menu) {
  const card = copy("records");
  const link = (name, file) => el("li", {}, el("a", { href: `/replay/${file}` }, name));
  card.files.append(...menu.files.map(link));
  card.paste.onsubmit = async (event) => {
    event.preventDefault();
    try {
      const record = JSON.parse(card.text.value);
      await look("view", { record, at: 0 });
      keep("replay", record);
      location.assign("/replay/own");
    } catch (error) {
      card.problem.textContent = error.message;
    }
  };
  return card.all;
}

/** Start a game and go to it; `place` is inert meanwhile, as a second click would start a second game. */
async function startGame(asked, problem, place) {
  problem.textContent = "";
  place.inert = true;
  try {
    keepGame((await look("view", asked)).record);
    location.assign("/game");
  } catch (error) {
    problem.textContent = error.message;
    place.inert = false;
  }
}

function levelButtons(menu, levels, problem) {
  return menu.levels.map(({ name, about, agent }) => {
    const title = name[0].toUpperCase() + name.slice(1);
    const start = () => {
      const names = [setting("start")?.seats?.[0]?.name ?? null, `${title} bot`];
      const asked = { rules: { ...menu.rules, players: 2 }, agents: [null, agent], names };
      return startGame(asked, problem, levels);
    };
    const inside = [el("b", {}, title), el("span", {}, about), el("small", {}, agent)];
    return el("button", { type: "button", class: `level ${name}`, onclick: start }, inside);
  });
}

/** The form; `position`: the rules, seats and record of a game to go on with; null: a new game. */
export function newGameForm(menu, position = null) {
  const before = position ?? setting("start", {});
  const known = { ...menu.rules, ...before.rules };
  const parts = copy("new-game");
  const { form, players, legend, options, problem, send, seed } = parts;
  const seats = [0, 1, 2, 3].map((seat) => seatFields(menu, seat, before.seats?.[seat]));
  const rules = menu.options
    .filter((option) => option.name !== "players")
    .map((option) => ruleField(option, known[option.name], position !== null));
  const partners = rules.find((rule) => rule.name === "partners").field;
  const count = () => Number(form.elements.players.value);
  form.elements.players.value = known.players;
  seed.max = menu.max_seed;
  parts.seats.append(...seats.map((fields) => fields.row));
  parts.rules.prepend(...rules.map((rule) => rule.row));
  if (position) {
    players.disabled = true; // the rules are the record's
    parts.title.textContent = "Play from here";
    send.textContent = "Play";
  }

  function show() {
    seats.forEach((fields, seat) => {
      fields.row.hidden = seat >= count();
      const team = partners.value === "adjacent" ? Math.floor(seat / 2) : seat % 2;
      fields.team.replaceChildren(teamIcon(count() === 4 ? team : Math.min(seat, 2)));
    });
    if (!position) partners.disabled = count() !== 4;
    legend.textContent = count() === 4 ? "Seats, clockwise; partners share castles" : "Seats, clockwise";
  }

  form.onchange = show;
  form.onsubmit = (event) => {
    event.preventDefault();
    const chosen = seats.slice(0, count()).map((fields) => fields.value());
    const asked = {
      record: position?.record,
      rules: { players: count(), ...Object.fromEntries(rules.map((rule) => [rule.name, rule.value()])) },
      agents: chosen.map((seat) => seat.agent),
      names: chosen.map((seat) => seat.name),
      seed: seed.value === "" ? null : Number(seed.value),
    };
    if (!position) setSetting("start", { rules: asked.rules, seats: chosen });
    return startGame(asked, problem, form);
  };
  form.addEventListener("invalid", () => (options.open = true), true); // to show the field that is wrong
  show();
  return form;
}

/** The field of an option of the rules, as the server describes it. */
function ruleField({ name, about, among, or_none: orNone, default: usual }, known, disabled) {
  const isWord = typeof usual === "string";
  const field = isWord
    ? el("select", { name, disabled })
    : el("input", { type: "number", name, min: among[0], max: among[1], value: known ?? "", disabled });
  if (isWord) fill(field, among, known);
  const title = name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
  const empty = orNone ? null : usual;
  return {
    name,
    field,
    row: el("label", { title: about }, el("span", {}, orNone ? `${title} (empty: none)` : title), field),
    value: () => (isWord ? field.value : field.value === "" ? empty : Number(field.value)),
  };
}

function seatFields(menu, seat, given) {
  const before = given ?? { name: "", agent: seat === 0 ? null : "planner" };
  const isOther = before.agent !== null && !menu.agents.some((agent) => agent.spec === before.agent);
  const { row, team, kind, name, spec } = copy("seat");
  kind.append(
    ...menu.agents.map((agent) => el("option", { value: agent.spec }, `${agent.spec}: ${agent.about}`)),
    el("option", { value: OTHER }, "another bot…"),
  );
  kind.value = isOther ? OTHER : (before.agent ?? PERSON);
  kind.ariaLabel = `Seat ${seat + 1}`;
  name.ariaLabel = `Name in seat ${seat + 1}`;
  name.placeholder = `Player ${seat + 1}`;
  name.value = before.name ?? "";
  spec.ariaLabel = `Bot in seat ${seat + 1}`;
  spec.value = isOther ? before.agent : "";
  const show = () => {
    name.hidden = kind.value !== PERSON;
    spec.hidden = kind.value !== OTHER;
  };
  kind.onchange = show;
  show();
  return {
    row,
    team,
    value: () => ({
      name: kind.value === PERSON ? name.value.trim() || null : null,
      agent: kind.value === PERSON ? null : kind.value === OTHER ? spec.value.trim() : kind.value,
    }),
  };
}
