// The start page: a game against a bot at once, any other new game, the last game, recorded games.

import { filesCard, post, setSetting, setting } from "./api.js";
import { el, select, teamIcon } from "./dom.js";
import { pasteCard } from "./position.js";

const PERSON = "";
const OTHER = "other";

export function startPage(main, menu) {
  document.title = "Carolus";
  main.className = "start";
  const last = setting("game");
  const more = el(
    "details",
    { class: "more" },
    el("summary", {}, el("b", {}, "More"), " players, other bots, partners, rules"),
    newGameForm(menu),
  );
  main.replaceChildren(
    el("div", {}, levelsCard(menu), more),
    el(
      "div",
      {},
      last?.key &&
        el(
          "section",
          { class: "card", "aria-labelledby": "last-title" },
          el("h2", { id: "last-title" }, "Continue your last game"),
          el(
            "ul",
            { class: "games" },
            el("li", {}, el("a", { href: `/game/${encodeURIComponent(last.key)}` }, [last.names].flat().join(", "))),
          ),
        ),
      filesCard(menu),
      pasteCard(),
    ),
  );
}

/** Start a game and go to it; `change(isSent)` lets buttons wait, as a second click would start a second game. */
async function startGame(asked, problem, change) {
  problem.textContent = "";
  change(true);
  try {
    const game = await post("games", asked);
    location.assign(`/game/${game.key}`);
  } catch (error) {
    problem.textContent = error.message;
    change(false);
  }
}

function levelsCard(menu) {
  const problem = el("p", { class: "problem", role: "alert" });
  const buttons = menu.levels.map((level) => {
    const title = level.name[0].toUpperCase() + level.name.slice(1);
    const asked = () => ({
      rules: { ...menu.rules, players: 2 },
      agents: [null, level.agent],
      names: [setting("start")?.seats?.[0]?.name ?? null, `${title} bot`],
      seed: null,
    });
    const start = () =>
      startGame(asked(), problem, (isSent) => {
        for (const one of buttons) one.disabled = isSent;
      });
    return el(
      "button",
      { type: "button", class: `level ${level.name}`, onclick: start },
      el("b", {}, title),
      el("span", {}, level.about),
      el("small", {}, level.agent),
    );
  });
  return el(
    "section",
    { class: "card first", "aria-labelledby": "first-title" },
    el("h1", { id: "first-title" }, "Play against a bot"),
    el("div", { class: "levels" }, buttons),
    problem,
  );
}

/** The form; `position`: the rules, seats and place in a file of a recorded game; null: a new game. */
export function newGameForm(menu, position = null) {
  const isFixed = position !== null; // the rules are the record's
  const kept = setting("start", {});
  const known = { ...menu.rules, ...(position ?? kept).rules };
  const seats = [0, 1, 2, 3].map((seat) => seatFields(menu, seat, (position ?? kept).seats?.[seat]));
  const players = [2, 3, 4].map((value) =>
    el("input", { type: "radio", name: "players", value, id: `players-${value}`, disabled: isFixed }),
  );
  for (const input of players) input.checked = Number(input.value) === known.players;
  const rules = menu.options
    .filter((option) => option.name !== "players")
    .map((option) => ruleField(option, known[option.name], isFixed));
  const partners = rules.find((rule) => rule.name === "partners").field;
  const seed = el("input", { type: "number", name: "seed", min: 0, max: menu.max_seed, value: "" });
  const legend = el("legend", {});
  const problem = el("p", { class: "problem", role: "alert" });
  const send = el("button", { class: "primary", type: "submit" }, isFixed ? "Play" : "Start");
  const count = () => Number(players.find((input) => input.checked).value);

  function show() {
    seats.forEach((fields, seat) => {
      fields.row.hidden = seat >= count();
      const team = partners.value === "adjacent" ? Math.floor(seat / 2) : seat % 2;
      fields.team.replaceChildren(teamIcon(count() === 4 ? team : Math.min(seat, 2)));
    });
    if (!isFixed) partners.disabled = count() !== 4;
    legend.textContent = count() === 4 ? "Seats, clockwise; partners share castles" : "Seats, clockwise";
  }

  function start(event) {
    event.preventDefault();
    const chosen = seats.slice(0, count()).map((fields) => fields.value());
    const asked = {
      agents: chosen.map((seat) => seat.agent),
      names: chosen.map((seat) => seat.name),
      seed: seed.value === "" ? null : Number(seed.value),
    };
    if (isFixed) asked.replay = position.replay;
    else {
      asked.rules = { players: count(), ...Object.fromEntries(rules.map((rule) => [rule.name, rule.value()])) };
      setSetting("start", { rules: asked.rules, seats: chosen });
    }
    return startGame(asked, problem, (isSent) => (send.disabled = isSent));
  }

  const options = el(
    "details",
    {},
    el("summary", {}, "Options"),
    el(
      "div",
      { class: "options" },
      rules.map((rule) => rule.row),
      el("label", {}, el("span", {}, "Seed (empty: random)"), seed),
    ),
  );
  const form = el(
    "form",
    { class: "card", onsubmit: start, onchange: show, "aria-labelledby": "new-title" },
    el(isFixed ? "h1" : "h2", { id: "new-title" }, isFixed ? "Play from here" : "New game"),
    el(
      "fieldset",
      { class: "segments" },
      el("legend", {}, "Players"),
      players.map((input) => el("span", {}, input, el("label", { for: input.id }, input.value))),
    ),
    el(
      "fieldset",
      { class: "seats" },
      legend,
      seats.map((fields) => fields.row),
    ),
    options,
    problem,
    send,
  );
  form.addEventListener("invalid", () => (options.open = true), true); // to show the field that is wrong
  show();
  return form;
}

/** The field of an option of the rules, as the server describes it. */
function ruleField({ name, about, among, or_none: orNone, default: usual }, known, disabled) {
  const isWord = typeof usual === "string";
  const field = isWord
    ? select({ name, disabled }, among, known)
    : el("input", { type: "number", name, min: among[0], max: among[1], value: known ?? "", disabled });
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
  const kind = el(
    "select",
    { "aria-label": `Seat ${seat + 1}` },
    el("option", { value: PERSON }, "a person"),
    menu.agents.map((agent) => el("option", { value: agent.spec }, `${agent.spec}: ${agent.about}`)),
    el("option", { value: OTHER }, "another bot…"),
  );
  kind.value = before.agent === null ? PERSON : isOther ? OTHER : before.agent;
  const name = el("input", {
    "aria-label": `Name in seat ${seat + 1}`,
    maxlength: 40,
    placeholder: `Player ${seat + 1}`,
    value: before.name ?? "",
    autocomplete: "off",
  });
  const spec = el("input", {
    "aria-label": `Bot in seat ${seat + 1}`,
    maxlength: 200,
    placeholder: "mcts:sims=400",
    value: isOther ? before.agent : "",
    autocomplete: "off",
    spellcheck: "false",
  });
  const team = el("span", { class: "team" });
  const show = () => {
    name.hidden = kind.value !== PERSON;
    spec.hidden = kind.value !== OTHER;
  };
  kind.addEventListener("change", show);
  show();
  return {
    row: el("div", { class: "seat" }, team, kind, name, spec),
    team,
    value: () => ({
      name: kind.value === PERSON ? name.value.trim() || null : null,
      agent: kind.value === PERSON ? null : kind.value === OTHER ? spec.value.trim() : kind.value,
    }),
  };
}
