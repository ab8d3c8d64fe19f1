// The form of a new game, and of a game continued from a recorded position.

import { post } from "./api.js";
import { el, teamIcon } from "./dom.js";
import { setSetting, setting } from "./store.js";
import { Warmth } from "./warm.js";

const PERSON = "";
const OTHER = "other";

/** The form; `position`: the rules, seats and place in a file of a recorded game; null: a new game. */
export function newGameForm(menu, position = null) {
  const kept = setting("start", {});
  const known = { ...menu.rules, ...(position ? position.rules : kept.rules) };
  const seats = [0, 1, 2, 3].map((seat) => seatFields(menu, seat, (position ?? kept).seats?.[seat]));
  const players = radios("players", "Players", [2, 3, 4], known.players);
  const crowns = select("crown_choice", menu.crown_choice, known.crown_choice);
  const partners = select("partners", menu.partners, known.partners);
  const paladins = number("paladins_per_clan", 3, 200, known.paladins_per_clan);
  const rounds = number("max_rounds", 1, 65535, known.max_rounds ?? "");
  const seed = number("seed", 0, menu.max_seed, "");
  const legend = el("legend", {});
  const problem = el("p", { class: "problem", role: "alert" });
  const fixed = position !== null; // the rules are the record's
  let isSent = false;

  function rulesGiven() {
    return {
      players: Number(players.value()),
      crown_choice: crowns.value,
      partners: partners.value,
      paladins_per_clan: Number(paladins.value || menu.rules.paladins_per_clan),
      max_rounds: rounds.value === "" ? null : Number(rounds.value),
    };
  }

  function show() {
    const count = Number(players.value());
    seats.forEach((fields, seat) => {
      fields.row.hidden = seat >= count;
      const adjacent = partners.value === "adjacent" ? Math.floor(seat / 2) : seat % 2;
      fields.team.replaceChildren(teamIcon(count === 4 ? adjacent : Math.min(seat, 2)));
    });
    partners.disabled = fixed || count !== 4;
    send.disabled = isSent || !warmth.isReady(seats.slice(0, count).map((fields) => fields.value().agent));
    legend.textContent = count === 4 ? "Seats, clockwise; partners share castles" : "Seats, clockwise";
  }

  async function start(event) {
    event.preventDefault();
    problem.textContent = "";
    const rules = rulesGiven();
    const chosen = seats.slice(0, rules.players).map((fields) => fields.value());
    const asked = {
      agents: chosen.map((seat) => seat.agent),
      names: chosen.map((seat) => seat.name),
      seed: seed.value === "" ? null : Number(seed.value),
    };
    if (fixed) asked.replay = position.replay;
    else {
      asked.rules = rules;
      setSetting("start", { rules, seats: chosen });
    }
    isSent = send.disabled = true; // a second click would start a second game
    try {
      const game = await post("games", asked);
      location.assign(`/game/${game.key}`);
    } catch (error) {
      problem.textContent = error.message;
      isSent = false;
      show();
    }
  }

  for (const field of fixed ? [crowns, partners, paladins, rounds, ...players.inputs] : []) field.disabled = true;
  const warmth = new Warmth(menu.warm, show);
  const send = el("button", { class: "primary", type: "submit" }, fixed ? "Play" : "Start");
  let options;
  const form = el(
    "form",
    { class: "card", onsubmit: start, "aria-labelledby": "new-title" },
    el(fixed ? "h1" : "h2", { id: "new-title" }, fixed ? "Play from here" : "New game"),
    players.row,
    el("fieldset", { class: "seats" }, legend, seats.map((fields) => fields.row)),
    (options = el(
      "details",
      {},
      el("summary", {}, "Options"),
      el(
        "div",
        { class: "options" },
        labelled("Crowns become paladins", crowns),
        labelled("Partners sit", partners),
        labelled("Paladins per clan", paladins),
        labelled("Round limit (empty: none)", rounds),
        labelled("Seed (empty: random)", seed),
      ),
    )),
    problem,
    warmth.element,
    send,
  );
  form.addEventListener("change", show);
  form.addEventListener("invalid", () => (options.open = true), true); // to show the field that is wrong
  show();
  return form;
}

function seatFields(menu, seat, given) {
  const before = given ?? { name: "", agent: seat === 0 ? null : "planner" };
  const offered = menu.agents.map((agent) => agent.spec);
  const isOther = before.agent !== null && !offered.includes(before.agent);
  const kind = el(
    "select",
    { "aria-label": `Seat ${seat + 1}` },
    el("option", { value: PERSON }, "a person"),
    menu.agents.map((agent) => el("option", { value: agent.spec }, `${agent.spec}: ${agent.about}`)),
    el("option", { value: OTHER }, "another bot…"),
  );
  kind.value = before.agent === null ? PERSON : isOther ? OTHER : before.agent;
  const name = el("input", { "aria-label": `Name in seat ${seat + 1}`, maxlength: 40, placeholder: `Player ${seat + 1}`, value: before.name ?? "", autocomplete: "off" });
  const spec = el("input", { "aria-label": `Bot in seat ${seat + 1}`, maxlength: 200, placeholder: "mcts:sims=400", value: isOther ? before.agent : "", autocomplete: "off", spellcheck: "false" });
  const team = el("span", { class: "team" });
  const row = el("div", { class: "seat" }, team, kind, name, spec);
  const show = () => {
    name.hidden = kind.value !== PERSON;
    spec.hidden = kind.value !== OTHER;
  };
  kind.addEventListener("change", show);
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

function radios(name, legend, values, chosen) {
  const inputs = values.map((value) => el("input", { type: "radio", name, value, id: `${name}-${value}` }));
  inputs.forEach((input) => (input.checked = Number(input.value) === chosen));
  const row = el(
    "fieldset",
    { class: "segments" },
    el("legend", {}, legend),
    inputs.map((input) => el("span", {}, input, el("label", { for: input.id }, input.value))),
  );
  return { row, inputs, value: () => inputs.find((input) => input.checked)?.value ?? values[0] };
}

function select(name, values, chosen) {
  const field = el("select", { name }, values.map((value) => el("option", { value }, value.replace("_", " "))));
  field.value = chosen;
  return field;
}

function number(name, min, max, value) {
  return el("input", { type: "number", name, min, max, step: 1, value });
}

function labelled(text, field) {
  return el("label", {}, el("span", {}, text), field);
}
