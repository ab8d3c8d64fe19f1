// Where parts of a drawing are: in its own units, and on the screen.

/** The box of elements of a drawing, `{x, y, width, height}` in the units of the whole; null: of none. */
export function boxIn(root, elements) {
  const back = root.getScreenCTM()?.inverse();
  if (!back) return null;
  const corners = elements.flatMap((element) => {
    const { x, y, width, height } = element.getBBox();
    const way = back.multiply(element.getScreenCTM());
    return [[x, y], [x + width, y], [x, y + height], [x + width, y + height]].map(([across, down]) => new DOMPoint(across, down).matrixTransform(way));
  });
  return corners.length ? around(corners) : null;
}

function around(points) {
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

/** The middle of a box, or of an element on the screen. */
export function middle(box) {
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** What holds the circle of a drawing, whose middle is at 500, 500. */
export function circleOf(root) {
  return root.querySelector(".emperor")?.parentNode ?? root;
}
