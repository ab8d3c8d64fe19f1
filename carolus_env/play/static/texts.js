// What the page asks of a player, and why it refuses a click.

/** The heading of a game: whose turn it is, or the outcome. */
export function heading(view) {
  if (view.turn === "over") return view.outcome;
  const name = view.names[view.seat];
  return view.round === 0 ? `Set-up: ${name}` : `Round ${view.round}: ${name}`;
}

/** What to do now; `clan` is that of the paladin in hand, or null. */
export function instruction(view, clan) {
  if (view.turn === "over") return "";
  if (view.turn === "agent") return `It is ${view.names[view.seat]}'s turn.`;
  if (view.phase === "disc") return "Play a disc. Low numbers take their turns first; the number is also how many steps you may move the Emperor.";
  if (view.phase === "crown") return `You rolled a crown: choose the clan of your new paladin${view.crowns > 1 ? ` (${view.crowns} crowns left)` : ""}.`;
  if (view.phase === "move") return "Move the Emperor. In the region where he stops, the strongest player builds a castle or takes over those there.";
  const play = view.left === 1 ? "Play your last paladin of this turn" : `Play ${view.left} paladins`;
  return clan ? `${play}: choose your court or a region for the ${clan} one.` : `${play}: choose one from your reserve.`;
}

/** Why a click on a piece of the board does nothing. */
export function refusal(view, piece) {
  if (view.phase === "disc") return piece.kind === "disc" ? "You cannot play that disc now." : "Play a disc first.";
  if (view.phase === "crown") return "Choose a clan from the supply for your crown.";
  if (view.phase === "move") return piece.kind === "region" ? `The Emperor cannot reach ${piece.territories} this turn.` : "Move the Emperor now.";
  return "A paladin goes from your reserve to your court or to a region.";
}
