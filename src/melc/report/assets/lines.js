"use strict";
// An axis with the densities of both sides, thresholds that can be moved, and the counts that follow from them.

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

/** Rows of both sides in each interval between thresholds, given as places among the edges. */
function rowsBetween(axis, places) {
  return axis.totals.map((total, side) => {
    const cumulated = [0, ...places.map((i) => axis.below[side][i]), total];
    return cumulated.slice(1).map((value, i) => value - cumulated[i]);
  });
}

/** matrix[true side][predicted side] for the thresholds as they are now. */
function confusionOf(axis) {
  return rowsBetween(axis, axis.chosen).map((rows) => {
    const found = [0, 0];
    rows.forEach((count, i) => { found[axis.shownCodes[i]] += count; });
    return found;
  });
}

function measuresOf(matrix) {
  const recall = matrix.map((row, side) => row[side] / (row[0] + row[1]));
  const precision = [0, 1].map((side) => matrix[side][side] / (matrix[0][side] + matrix[1][side]));
  const total = matrix.flat().reduce((a, b) => a + b, 0);
  return { recall, precision, balanced: (recall[0] + recall[1]) / 2, accuracy: (matrix[0][0] + matrix[1][1]) / total };
}

/** Move the thresholds to where they would be with another prior of the second side: it is added to the log-odds. */
function setPrior(axis, prior) {
  if (Math.abs(prior - axis.prior) < 1e-9) return resetAxis(axis);
  const odds = Array.from(axis.log_odds, (value) => value + logit(prior) - logit(axis.prior));
  const places = [], codes = [Number(odds[0] > 0)];
  for (let i = 1; i < odds.length; i++) {
    if ((odds[i] > 0) === (odds[i - 1] > 0)) continue;
    places.push(Math.abs(odds[i]) < Math.abs(odds[i - 1]) ? i : i - 1);
    codes.push(Number(odds[i] > 0));
  }
  joinEmpty(axis, places, codes);
  Object.assign(axis, { chosen: places, shownCodes: codes });
}

const logit = (p) => Math.log(p / (1 - p));

/** Join intervals without rows of their own side with their neighbours. */
function joinEmpty(axis, places, codes) {
  for (;;) {
    const rows = rowsBetween(axis, places), i = codes.findIndex((code, k) => codes.length > 1 && rows[code][k] === 0);
    if (i < 0) return;
    const outermost = i === 0 || i === codes.length - 1;
    places.splice(Math.max(0, i - 1), outermost ? 1 : 2);
    codes.splice(i, outermost ? 1 : 2);
  }
}

function resetAxis(axis) {
  axis.chosen = axis.own.slice();
  axis.shownCodes = axis.codes.slice();
}

function closestEdge(edges, t) {
  const i = Math.min(notBelow(edges, t), edges.length - 1);
  return i > 0 && t - edges[i - 1] < edges[i] - t ? i - 1 : i;
}

/** Move one threshold to an edge, but not past its neighbours. */
function moveThreshold(axis, index, place) {
  const low = index ? axis.chosen[index - 1] + 1 : 0;
  const high = index + 1 < axis.chosen.length ? axis.chosen[index + 1] - 1 : axis.edges.length - 1;
  axis.chosen[index] = Math.min(Math.max(place, low), Math.max(low, high));
}

// -------------------------------------------------------------------------------------------------------- the picture

/** The section of one axis: picture, prior, matrix and measures. */
function axisSection(data, sides, label, title) {
  const axis = axisFrom(data);
  const x = scale(axis.edges[0], axis.edges[axis.edges.length - 1], LEFT, WIDE - RIGHT);
  const y = scale(0, 1050, HIGH - FOOT, HEAD);
  const bands = svg("g"), handles = svg("g"), figures = element("div", { class: "figures" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "line", role: "group", "aria-label": title },
    bands, axis.heights.map((values, side) => densityPath(axis, values, x, y, side)),
    axis.intervals.map(([low, high]) => intervalBar(low, high, x)),
    horizontalAxis(x, HIGH - FOOT + 22, label), handles);
  const update = (rebuild = true) => {
    bands.replaceChildren(...bandsOf(axis, x, sides));
    if (rebuild) handles.replaceChildren(...axis.chosen.map((_, i) => handle(axis, i, x, drawing, sides, update)));
    else [...handles.children].forEach((node, i) => placeHandle(node, axis, i, x, sides));
    figures.replaceChildren(...figuresOf(axis, sides));
  };
  update();
  const prior = priorControl(axis, sides, update);
  const section = element("div", { class: "axis-panel" }, key(sides), drawing,
    element("div", { class: "controls" }, prior,
      element("button", { type: "button", onclick: () => { resetAxis(axis); prior.reset(); update(); } },
        "Back to the model")),
    figures);
  section.axis = axis;
  return section;
}

function densityPath(axis, values, x, y, side) {
  const xs = Array.from(axis.edges, x), line = pathOf(xs, values.map(y));
  return svg("g", { class: `density side${side}` },
    svg("path", { class: "area", d: `${line}L${xs[xs.length - 1]} ${y(0)}L${xs[0]} ${y(0)}Z` }),
    svg("path", { class: "edge", d: line }));
}

function bandsOf(axis, x, sides) {
  const ends = [x.low, ...axis.chosen.map((i) => axis.edges[i]), x.high];
  return axis.shownCodes.map((code, i) => {
    const from = x(ends[i]), width = Math.max(0, x(ends[i + 1]) - from);
    const room = Math.floor(width / 8);
    return svg("g", { class: `band side${code}` },
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
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    node.focus({ preventScroll: true });
    node.setPointerCapture(event.pointerId);
    node.classList.add("dragged");
  });
  node.addEventListener("pointermove", (event) => {
    if (!node.hasPointerCapture(event.pointerId)) return;
    const box = drawing.getBoundingClientRect();
    move(closestEdge(axis.edges, x.back((event.clientX - box.left) / box.width * WIDE)));
  });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => node.classList.remove("dragged"));
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e6, End: 1e6 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(axis.chosen[index] + step * (event.shiftKey ? 10 : 1));
  });
  placeHandle(node, axis, index, x, sides);
  return node;
}

function placeHandle(node, axis, index, x, sides) {
  const value = axis.edges[axis.chosen[index]];
  node.setAttribute("transform", `translate(${x(value)} 0)`);
  node.setAttribute("aria-valuemin", axis.edges[0]);
  node.setAttribute("aria-valuemax", axis.edges[axis.edges.length - 1]);
  node.setAttribute("aria-valuenow", value);
  node.setAttribute("aria-valuetext", `${short(value)}: ${sides[axis.shownCodes[index]]} below, ${sides[axis.shownCodes[index + 1]]} above`);
  node.setAttribute("aria-label", `Threshold ${index + 1}`);
}

function priorControl(axis, sides, update) {
  const shown = element("output", {}, percent(axis.prior));
  const slider = element("input", { type: "range", min: -5, max: 5, step: 0.05, value: logit(axis.prior),
    oninput: () => {
      const p = logistic(Number(slider.value));
      shown.textContent = percent(p);
      setPrior(axis, p);
      update();
    } });
  const control = element("label", { class: "prior" }, "Prior of ", named(sides[1]), " ", slider, " ", shown);
  control.reset = () => { slider.value = logit(axis.prior); shown.textContent = percent(axis.prior); };
  return control;
}

function figuresOf(axis, sides) {
  const matrix = confusionOf(axis), { recall, precision, balanced, accuracy } = measuresOf(matrix);
  const rows = sides.map((side, i) => [named(side), whole(matrix[i][0]), whole(matrix[i][1]), percent(recall[i]), percent(precision[i])]);
  const values = axis.chosen.map((i) => short(axis.edges[i]));
  return [
    table(["true class", ["as ", named(sides[0])], ["as ", named(sides[1])], "recall", "precision"]
      .map((cell) => (Array.isArray(cell) ? element("span", {}, ...cell) : cell)), rows),
    element("dl", { class: "tiles" },
      tile("balanced accuracy", percent(balanced)), tile("accuracy", percent(accuracy)),
      tile(axis.chosen.length === 1 ? "threshold" : "thresholds", values.join(", ") || "none")),
  ];
}

const tile = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
