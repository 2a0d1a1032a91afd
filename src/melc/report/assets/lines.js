"use strict";
// An axis with the densities of its sides, which are classes, thresholds that can be moved, and the counts that follow.

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

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function measuresOf(matrix) {
  const right = matrix.map((row, side) => row[side]);
  const recall = matrix.map((row, side) => right[side] / sum(row));
  const precision = matrix.map((_, side) => right[side] / sum(matrix.map((row) => row[side])));
  const known = recall.filter(Number.isFinite);  // without sides that have no rows
  return { recall, precision, balanced: sum(known) / known.length, accuracy: sum(right) / sum(matrix.map(sum)) };
}

/** The side of the highest log-odds at an edge, and how far they are above the next. */
function leaderAt(axis, i, added) {
  const odds = axis.log_odds.map((values, side) => (values ? values[i] : 0) + added[side]);
  const best = odds.indexOf(Math.max(...odds));
  return { best, lead: odds[best] - Math.max(...odds.filter((_, side) => side !== best)) };
}

/** Move the thresholds to where they would be with another prior of a side: it is added to the log-odds. */
function setPrior(axis, side, prior) {
  if (Math.abs(prior - axis.priors[side]) < 1e-9) return resetAxis(axis);
  const added = axis.priors.map((own, k) => (k === side ? logit(prior) - logit(own) : 0));
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

const logit = (p) => Math.log(p / (1 - p));

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

/** The section of one axis: picture, prior, matrix and measures. `sides` are the names of its classes. */
function axisSection(data, sides, label, title) {
  const axis = axisFrom(data);
  const x = scale(axis.edges[0], axis.edges[axis.edges.length - 1], LEFT, WIDE - RIGHT);
  const y = scale(0, 1050, HIGH - FOOT, HEAD);
  const bands = svg("g"), handles = svg("g"), figures = element("div", { class: "figures" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "line", role: "group", "aria-label": title },
    bands, axis.heights.map((values, side) => densityPath(axis, values, x, y, side)),
    axis.intervals.map(([low, high]) => intervalBar(low, high, x)),
    horizontalAxis(x, HIGH - FOOT + 22, label, 6, axis.scale), handles);
  const update = (rebuild = true) => {
    bands.replaceChildren(...bandsOf(axis, x, sides));
    if (rebuild) handles.replaceChildren(...axis.chosen.map((_, i) => handle(axis, i, x, drawing, sides, update)));
    else [...handles.children].forEach((node, i) => placeHandle(node, axis, i, x, sides));
    figures.replaceChildren(...figuresOf(axis, sides));
  };
  update();
  const prior = priorControl(axis, sides, update);
  const section = element("div", { class: "axis-panel" }, key(axis.sides, sides), drawing,
    element("div", { class: "controls" }, prior,
      element("button", { type: "button", onclick: () => { resetAxis(axis); prior.reset(); update(); } },
        "Back to the model")),
    figures);
  section.axis = axis;
  return section;
}

function densityPath(axis, values, x, y, side) {
  const xs = Array.from(axis.edges, x), line = pathOf(xs, values.map(y));
  return svg("g", { class: `density ${sideStyle(axis.sides[side])} dash${side % 2}` },
    svg("path", { class: "area", d: `${line}L${xs[xs.length - 1]} ${y(0)}L${xs[0]} ${y(0)}Z` }),
    svg("path", { class: "edge", d: line }));
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
  node.setAttribute("aria-valuetext", `${thresholdText(axis, value)}: ${sides[axis.shownCodes[index]]} below, ${sides[axis.shownCodes[index + 1]]} above`);
  node.setAttribute("aria-label", `Threshold ${index + 1}`);
}

/** A threshold as text: of dates as a date. */
const thresholdText = ({ scale: { kind, sign } }, value) => (kind === "date" ? dateOf(sign * value) : short(value));

function priorControl(axis, sides, update) {
  let side = sides.length - 1;
  const shown = element("output", {});
  const slider = element("input", { type: "range", min: -5, max: 5, step: 0.05,
    oninput: () => {
      const p = logistic(Number(slider.value));
      shown.textContent = percent(p);
      setPrior(axis, side, p);
      update();
    } });
  const reset = () => { slider.value = logit(axis.priors[side]); shown.textContent = percent(axis.priors[side]); };
  const choose = element("select", { onchange: () => { side = Number(choose.value); resetAxis(axis); reset(); update(); } },
    sides.map((name, k) => element("option", { value: k, selected: k === side }, shortened(name, 40))));
  const label = element("label", {}, "Prior of ", sides.length > 2 ? "the class" : named(sides[1]), " ", slider);
  const control = element("div", { class: "prior" }, sides.length > 2 ? choose : null, label, " ", shown);
  control.reset = reset;
  reset();
  return control;
}

function figuresOf(axis, sides) {
  const matrix = confusionOf(axis), { recall, precision, balanced, accuracy } = measuresOf(matrix);
  const rows = sides.map((side, i) => [named(side), ...matrix[i].map(whole), percent(recall[i]), percent(precision[i])]);
  const values = axis.chosen.map((i) => thresholdText(axis, axis.edges[i]));
  return [
    table(["true class", ...sides.map((side) => element("span", {}, "as ", named(side))), "recall", "precision"], rows),
    element("dl", { class: "tiles" },
      tile("balanced accuracy", percent(balanced)), tile("accuracy", percent(accuracy)),
      tile(axis.chosen.length === 1 ? "threshold" : "thresholds", values.join(", ") || "none")),
  ];
}

const tile = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
