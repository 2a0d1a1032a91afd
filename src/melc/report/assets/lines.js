"use strict";
// The only line of a model: the densities of the classes, thresholds that can be moved, and the counts that follow.

const WIDE = roomFor(760), HIGH = 270, LEFT = 14, RIGHT = 14, FOOT = 62, HEAD = 12;

/** The state of an axis: edges, cumulated counts, and the thresholds as places among the edges. */
function axisFrom(data) {
  const { edges } = data;
  const below = data.counts.map((counts) => {
    let sum = 0;
    return counts.slice(0, -1).map((count) => (sum += count));
  });
  const totals = data.counts.map((counts) => counts.reduce((a, b) => a + b, 0));
  const own = Array.from(data.thresholds, (t) => notBelow(edges, t));
  return { ...data, below, totals, own, chosen: own.slice(), shownCodes: data.codes.slice() };
}

/** Rows of each side in each interval between thresholds, given as places among the edges. */
function rowsBetween(axis, places) {
  return axis.totals.map((total, side) => {
    const cumulated = [0, ...places.map((i) => axis.below[side][i]), total];
    return cumulated.slice(1).map((value, i) => value - cumulated[i]);
  });
}

/** matrix[true side][predicted side] for the thresholds as they are now. */
function confusionOf(axis) {
  return rowsBetween(axis, axis.chosen).map((rows) => {
    const found = axis.totals.map(() => 0);
    rows.forEach((count, i) => { found[axis.shownCodes[i]] += count; });
    return found;
  });
}

/** The side of the highest log-odds at an edge, and how far they are above the next. */
function leaderAt(axis, i, added) {
  const odds = axis.log_odds.map((values, side) => (values ? values[i] : 0) + added[side]);
  const best = odds.indexOf(Math.max(...odds));
  return { best, lead: odds[best] - Math.max(...odds.filter((_, side) => side !== best)) };
}

/** Move the thresholds to where they are if a number is added to the log-odds of a side. */
function shiftAxis(axis, side, number) {
  if (number === 0) return resetAxis(axis);
  const added = axis.sides.map((_, k) => (k === side ? number : 0));
  const leaders = Array.from(axis.edges, (_, i) => leaderAt(axis, i, added));
  const places = [], codes = [leaders[0].best];
  for (let i = 1; i < leaders.length; i++) {
    if (leaders[i].best === leaders[i - 1].best) continue;
    places.push(leaders[i].lead < leaders[i - 1].lead ? i : i - 1);
    codes.push(leaders[i].best);
  }
  joinEmpty(axis, places, codes);
  Object.assign(axis, { chosen: places, shownCodes: codes });
}

/** Join intervals without rows of their own side with their neighbours. Two different neighbours share them. */
function joinEmpty(axis, places, codes) {
  for (;;) {
    const rows = rowsBetween(axis, places), i = codes.findIndex((code, k) => codes.length > 1 && rows[code][k] === 0);
    if (i < 0) return;
    const inner = i > 0 && i < codes.length - 1, alike = inner && codes[i - 1] === codes[i + 1];
    const shared = inner && !alike ? [Math.round((places[i - 1] + places[i]) / 2)] : [];
    places.splice(Math.max(0, i - 1), inner ? 2 : 1, ...shared);
    codes.splice(i, alike ? 2 : 1);
  }
}

function resetAxis(axis) {
  axis.chosen = axis.own.slice();
  axis.shownCodes = axis.codes.slice();
}

/** Move one threshold to an edge, but not past its neighbours. */
function moveThreshold(axis, index, place) {
  const low = index ? axis.chosen[index - 1] + 1 : 0;
  const high = index + 1 < axis.chosen.length ? axis.chosen[index + 1] - 1 : axis.edges.length - 1;
  axis.chosen[index] = Math.min(Math.max(place, low), Math.max(low, high));
}

// -------------------------------------------------------------------------------------------------------- the picture

/** The section of the line: picture, matrix and measures. `sides` are the names of its classes. */
function lineSection(data, sides, policy) {
  const axis = axisFrom(data);
  const x = scale(axis.edges[0], axis.edges[axis.edges.length - 1], LEFT, WIDE - RIGHT);
  const y = scale(0, 1050, HIGH - FOOT, HEAD);
  const bands = svg("g"), handles = svg("g"), figures = element("div", { class: "figures" });
  const xs = Array.from(axis.edges, x);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "line", role: "group", "aria-label": "The line" },
    bands, axis.heights.map((values, side) => densityPath(xs, values.map(y), y(0), axis.sides[side], side)),
    axis.intervals.map(([low, high]) => intervalBar(low, high, x)),
    horizontalAxis(x, HIGH - FOOT + 22, "projection z", 6, axis.scale), handles);
  const update = (rebuild = true) => {
    bands.replaceChildren(...bandsOf(axis, x, sides));
    if (rebuild) handles.replaceChildren(...axis.chosen.map((_, i) => handle(axis, i, x, drawing, sides, update)));
    else [...handles.children].forEach((node, i) => placeHandle(node, axis, i, x, sides));
    figures.replaceChildren(...figuresOf(axis, sides));
  };
  policy.onchange(() => { shiftAxis(axis, Math.max(axis.sides.indexOf(policy.code), 0), policy.added()); update(); });
  update();
  const section = element("div", { class: "axis-panel" }, key(axis.sides, sides), drawing,
    element("div", { class: "controls" }, element("button", { type: "button", onclick: policy.reset }, "Back to the model")), figures);
  section.axis = axis;
  return section;
}

function bandsOf(axis, x, sides) {
  const ends = [x.low, ...axis.chosen.map((i) => axis.edges[i]), x.high];
  return axis.shownCodes.map((code, i) => {
    const from = x(ends[i]), width = Math.max(0, x(ends[i + 1]) - from);
    const room = Math.floor(width / 8);
    return svg("g", { class: `band ${sideStyle(axis.sides[code])}` },
      svg("rect", { x: from, y: HIGH - FOOT, width, height: 20 }),
      room >= 3 ? svg("text", { x: from + width / 2, y: HIGH - FOOT + 14, "text-anchor": "middle" }, shortened(sides[code], room)) : null);
  });
}

function intervalBar(low, high, x) {
  const [from, to] = [low, high].map((z) => Math.min(Math.max(x(z), LEFT), WIDE - RIGHT));
  return svg("rect", { class: "uncertain", x: from, width: Math.max(1, to - from), y: HEAD, height: HIGH - FOOT - HEAD });
}

function handle(axis, index, x, drawing, sides, update) {
  const node = svg("g", { class: "threshold", tabindex: 0, role: "slider", "aria-orientation": "horizontal" },
    svg("rect", { class: "grip", x: -16, width: 32, y: 0, height: HIGH - FOOT + 20 }),
    svg("line", { y1: HEAD, y2: HIGH - FOOT + 20 }), svg("circle", { cy: HEAD + 2, r: 8 }));
  const move = (place) => { moveThreshold(axis, index, place); update(false); };
  slidable(node, drawing, WIDE, (at) => move(closestEdge(axis.edges, x.back(at))), (step) => move(axis.chosen[index] + step));
  placeHandle(node, axis, index, x, sides);
  return node;
}

function placeHandle(node, axis, index, x, sides) {
  const value = axis.edges[axis.chosen[index]];
  node.setAttribute("transform", `translate(${x(value)} 0)`);
  setSlider(node, axis.edges, value, `${thresholdText(axis, value)}: ${sides[axis.shownCodes[index]]} below, ${sides[axis.shownCodes[index + 1]]} above`);
  node.setAttribute("aria-label", `Threshold ${index + 1}`);
}

/** A threshold as text: of dates as a date. */
const thresholdText = ({ scale: { kind, sign } }, value) => (kind === "date" ? dateOf(sign * value) : short(value));

function figuresOf(axis, sides) {
  const matrix = confusionOf(axis), measures = measuresOf(matrix);
  const values = axis.chosen.map((i) => thresholdText(axis, axis.edges[i]));
  return [
    matrixTable(matrix, sides, measures),
    element("dl", { class: "tiles" },
      tile("balanced accuracy", percent(measures.balanced)), tile("accuracy", percent(measures.accuracy)),
      tile(axis.chosen.length === 1 ? "threshold" : "thresholds", values.join(", ") || "none")),
  ];
}
