"use strict";
// Decisions on new rows: the margins of the classes, the counts that follow from a policy, and errors in groups of rows.

const MARGIN_HIGH = 200;

/** matrix[true side][predicted side] if a class is predicted from an edge on, given by its place. */
function matrixAt({ cells, code }, place, sides) {
  const matrix = sides.map(() => sides.map(() => 0)), own = sides.indexOf(code);
  for (let i = 0; i < cells.length; i += 4) {
    matrix[cells[i + 1]][cells[i] > place ? own : cells[i + 2]] += cells[i + 3];
  }
  return matrix;
}

/** The place of the edge from which a class is predicted: the model's own is just above zero. */
const placeOf = ({ edges }, added) => (added === 0 ? countNotAbove(edges, 0) : closestEdge(edges, -added));

function closestEdge(edges, t) {
  const i = Math.min(notBelow(edges, t), edges.length - 1);
  return i > 0 && t - edges[i - 1] < edges[i] - t ? i - 1 : i;
}

/** Recall, precision and accuracies; classes are as frequent as `shares` says, by default as in the matrix. */
function measuresOf(matrix, shares = matrix.map(sum)) {
  const rates = matrix.map((row) => row.map((count) => count / sum(row)));
  const weighted = rates.map((row, i) => row.map((rate) => (shares[i] > 0 && Number.isFinite(rate) ? rate * shares[i] : 0)));
  const recall = rates.map((row, i) => row[i]), known = recall.filter(Number.isFinite);  // without classes that have no rows
  const precision = weighted.map((row, k) => row[k] / sum(weighted.map((each) => each[k])));
  return { recall, precision, balanced: sum(known) / known.length, accuracy: sum(weighted.map((row, i) => row[i])) / sum(weighted.map(sum)) };
}

/** Errors per 1,000 rows, each of them as dear as the policy says. */
function costOf(matrix, sides, policy) {
  const shares = policy.shares();
  return 1000 * sum(sides.map((code, i) => {
    const right = matrix[i][i] / sum(matrix[i]), share = sideShare(shares, sides, code);
    return Number.isFinite(right) ? share * (1 - right) * (code === policy.code ? policy.ratio : 1) : 0;
  }));
}

/** The share of a side: of null, of all classes that are no side of their own. */
const sideShare = (shares, sides, code) => (code === null ? sum(shares.filter((_, k) => !sides.includes(k))) : shares[code]);

function matrixTable(matrix, names, measures) {
  const rows = names.map((name, i) => [named(name), ...matrix[i].map((count, k) => (k === i ? element("strong", {}, whole(count)) : whole(count))),
    percent(measures.recall[i]), percent(measures.precision[i])]);
  return table(["true class", ...names.map((name) => element("span", {}, "as ", named(name))), "recall", "precision"], rows);
}

const tile = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));

function decisionsNodes(data, policy) {
  const { decisions, classes } = data, names = sidesOf(data, decisions.sides), figures = element("div", { class: "figures" }), pictured = element("div");
  const update = () => {
    const axis = decisions.axes.find(({ code }) => code === policy.code), place = placeOf(axis, policy.added());
    const matrix = matrixAt(axis, place, decisions.sides), shares = policy.shares();
    const measures = measuresOf(matrix, decisions.sides.map((code) => sideShare(shares, decisions.sides, code)));
    const all = !decisions.sides.includes(null);  // an error among other classes is not seen
    figures.replaceChildren(matrixTable(matrix, names, measures), !all ? "" : element("dl", { class: "tiles" },
      tile("balanced accuracy", percent(measures.balanced)), tile("accuracy", percent(measures.accuracy)),
      tile("cost per 1,000 rows, in errors on other rows", short(costOf(matrix, decisions.sides, policy), 3))));
    const held = pictured.firstChild && pictured.firstChild.axis === axis;
    if (held) pictured.firstChild.move(place);
    else pictured.replaceChildren(marginPicture(axis, place, policy, classes));
  };
  policy.onchange(update);
  update();
  const kind = decisions.held_out ? `${whole(data.n_sample)} rows, each predicted by a model that was fitted without it` : "the rows given to this report; on new rows there are more errors";
  return [
    element("p", {}, `Counted are ${kind}${data.weighted ? ", by their weights" : ""}. Precision, accuracy and cost are for the share of the class below. `,
      "If the class is more frequent where the model is used, or if errors on its rows cost more, move the sliders or drag the line in the picture: this section, the thresholds below and What if follow."),
    policyControls(policy, decisions.axes, classes), pictured, figures, groupsNode(data)];
}

/** Where the rows of a class and of all others lie between two decisions, with a line that can be dragged. */
function marginPicture(axis, place, policy, classes) {
  const wide = roomFor(760), { edges, heights } = axis, low = MARGIN_HIGH - 44;
  const x = scale(edges[0], edges[edges.length - 1], 14, wide - 14), y = scale(0, 1050, low, 12), two = classes.length === 2;
  const names = [two ? classes[1 - axis.code] : "other classes", classes[axis.code]], codes = [two ? 1 - axis.code : null, axis.code];
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${MARGIN_HIGH}`, class: "line", role: "group", "aria-label": `Log-odds of ${classes[axis.code]}` });
  const grip = svg("g", { class: "threshold", tabindex: 0, role: "slider", "aria-orientation": "horizontal", "aria-label": "Threshold of the log-odds" },
    svg("rect", { class: "grip", x: -16, width: 32, y: 0, height: low }), svg("line", { y1: 12, y2: low }), svg("circle", { cy: 14, r: 8 }));
  let now = place;
  const go = (to) => policy.change({ ratio: policy.ratioFor(-edges[Math.min(Math.max(to, 0), edges.length - 1)]) });
  slidable(grip, drawing, wide, (at) => go(closestEdge(edges, x.back(at))), (step) => go(now + step));
  drawing.append(...heights.map((values, i) => densityPath(Array.from(edges, x), values.map(y), y(0), codes[i], i)),
    horizontalAxis(x, low, two ? "log-odds" : "log-odds against the most probable other class", 6), grip);
  const node = element("div", {}, key(codes, names), drawing);
  node.axis = axis;
  node.move = (to) => {
    now = to;
    grip.setAttribute("transform", `translate(${x(edges[to])} 0)`);
    setSlider(grip, edges, edges[to], `${short(edges[to])}: ${names[0]} below, ${names[1]} above`);
  };
  node.move(place);
  return node;
}

/** The shares of errors in groups of rows, by a column that can be chosen. */
function groupsNode(data) {
  if (!data.groups.length) return null;
  const two = data.classes.length === 2;
  const tables = data.groups.map(({ name, rows }) => {
    const all = rows.filter(([, totals]) => sum(totals) > 0);
    const body = all.map(([group, totals, right]) => {
      const wrong = 1 - sum(right) / sum(totals);
      return [named(withSigns(group)), whole(sum(totals)), errorBar(wrong), ...(two ? totals.map((n, k) => (n > 0 ? percent(right[k] / n) : "–")) : [])];
    });
    const head = [name, "rows", "errors", ...(two ? data.classes.map((label) => element("span", {}, "recall of ", named(label))) : [])];
    return [`by ${name}`, table(head, body)];
  });
  return element("div", { class: "groups" }, element("h3", {}, "Errors in groups of rows"), several(tables));
}

function errorBar(share) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${100 * share}%`;
  return element("span", { class: "error" }, element("span", { class: "track" }, fill), percent(share));
}
