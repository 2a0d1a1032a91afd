"use strict";
// The sections that are read rather than moved: weights, lines, scores, stability, card and rule.

const note = (...text) => element("p", { class: "note" }, ...text);

// ------------------------------------------------------------------------------------------------------------- weights

/** Bars of the contributions of features with their intervals. */
function weightsFigure({ title, rows, hidden, unit }) {
  const high = 24 * rows.length + 52, right = roomFor(560), left = Math.round(0.34 * right);
  const values = rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value, 0]);
  const x = scale(Math.min(...values), Math.max(...values), left, right - 14);
  const bars = rows.map((row, i) => {
    const y = 24 * i + 6;
    return svg("g", { class: "weight" }, svg("title", {}, `${row.name}: ${short(row.value)}`),
      svg("text", { x: left - 10, y: y + 13, "text-anchor": "end" }, shortened(row.name, Math.floor((left - 10) / 7.5))),
      svg("rect", { x: Math.min(x(0), x(row.value)), y: y + 2, width: Math.abs(x(row.value) - x(0)), height: 14 }),
      row.low === null || row.high === null ? null : svg("path", { class: "whisker", d: `M${x(row.low)} ${y + 5}v8m0 -4H${x(row.high)}m0 -4v8` }));
  });
  return element("figure", {}, title ? element("figcaption", {}, title) : null,
    picture(right, high, "Contributions of the features", bars,
      svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: high - 44 }),
      horizontalAxis(x, high - 42, unit, 5)),
    hidden ? note(`${whole(hidden)} more features with smaller contributions are not shown.`) : null);
}

function weightsSection(weights) {
  return [element("p", {}, weights.text), several(weights.figures.map((figure) => [figure.title, weightsFigure(figure)]))];
}

/** One of several figures, by a choice of its title; all of them on paper. */
function several(figures) {
  if (figures.length < 2) return figures.length ? figures[0][1] : null;
  const shown = figures.map(([, node], i) => element("div", { class: i ? "choice hidden" : "choice" }, node));
  const select = element("select", { onchange: () => shown.forEach((node, i) => node.classList.toggle("hidden", i !== Number(select.value))) },
    figures.map(([title], i) => element("option", { value: i }, shortened(title, 70))));
  return element("div", {}, element("label", { class: "chooser" }, "Show ", select), shown);
}

// --------------------------------------------------------------------------------------------------------------- lines

const ERRORS = 1.96;  // half the width of a band around a curve, in standard errors
const MOST_BEYOND = 0.15;  // how far bands may reach beyond all curves, as a part of their height

/** A line with its heading: curves, or the levels of a category; and the points of categories in a sum. */
function curveFigure(line, classes, limits) {
  const share = line.share === null ? "" : `, in ${Math.round(100 * line.share)}% of the resamples`;
  return element("figure", { class: "curve" },
    element("figcaption", {}, element("strong", {}, line.title), " ", element("bdi", {}, inTerms(line.terms)),
      element("span", { class: "aside" }, ` importance ${short(line.importance, 3)}${share}`)),
    linePicture(line, classes, limits), line.points.map(pointsNode));
}

/** The curves of a line, or its levels; `z` is the place of a row, if one is to be marked. */
const linePicture = (line, classes, limits, z) => (line.levels ? levelsPicture : curvesPicture)(line, classes, limits, z);

/** The curves of a line above the densities of the classes, and the classes that it favours below. */
function curvesPicture(line, classes, limits, z) {
  const { densities, curves, range: [low, high], missing } = line, end = missing ? 304 : 350;
  const x = scale(low, high, 44, end), y = scale(...limits, 134, 14), ground = scale(0, 1000, 190, 142);
  const places = densities[0].map((_, i) => low + i / (densities[0].length - 1) * (high - low));
  const two = classes.length === 2;
  return picture(360, 240, `Curve${two ? "" : "s"} of ${line.title}`,
    densities.map((values, i) => {
      const path = pathOf(places.map(x), values.map(ground));
      return svg("g", { class: `density ${sideStyle(line.classes[i])}` },
        svg("path", { class: "area", d: `${path}L${x(high)} 190L${x(low)} 190Z` }));
    }),
    svg("line", { class: "zero", x1: 44, x2: 350, y1: y(0), y2: y(0) }),
    curves.map((curve, i) => svg("g", { class: two ? "alone" : `${sideStyle(line.classes[i])} dash${i % 2}` },
      two ? null : svg("title", {}, classes[line.classes[i]]), curvePaths(curve, x, y))),
    line.codes.map((code, i) => leadingBand(line, code, i, x, classes)),
    missing ? missingMarks(line, y, classes) : null,
    z === undefined || Number.isNaN(z) ? null : rowMark(curves, Math.min(Math.max(z, low), high), x, y),
    verticalAxis(44, y, null, 6), horizontalAxis(x, 198, line.scale.kind === "sum" ? "z" : null, 5, line.scale));
}

/** The place of a row on the curves of a line. */
const rowMark = (curves, z, x, y) => svg("g", { class: "mark" }, svg("line", { x1: x(z), x2: x(z), y1: 14, y2: 198 }),
  curves.map((curve) => svg("circle", { cx: x(z), cy: y(curveAt(curve, z)), r: 4.5 })));

/** What a missing value adds, right of the curves. */
function missingMarks(line, y, classes) {
  const two = classes.length === 2, step = 30 / line.missing.length;
  return svg("g", { class: "missing" },
    svg("rect", { x: 312, width: 38, y: 8, height: 190 }),
    line.missing.map((value, i) => svg("circle", { class: two ? sideStyle(Number(value > 0)) : sideStyle(line.classes[i]), cx: 316 + step * (i + 0.5), cy: y(value), r: 4 },
      svg("title", {}, `missing: ${short(value, 3)}${two ? "" : ` for ${classes[line.classes[i]]}`}`))),
    svg("text", { x: 352, y: 232, "text-anchor": "end" }, `missing (${whole(line.n_missing)})`));
}

/** The levels of a category, one below the other: what they add, and their shares in the classes at the right. */
function levelsPicture({ levels, classes: shown, title }, classes, limits, level) {
  const { names, counts, values, errors, shares, codes } = levels, two = classes.length === 2, row = 17;
  const high = row * names.length + 8, marked = levels.numbers.indexOf(level);
  const x = scale(...limits, 130, 284), across = scale(0, 1000, 0, 52), inside = (value) => x(Math.min(Math.max(value, x.low), x.high));
  const group = values.length;
  const mark = (k, i) => {
    const value = values[k][i], middle = row * i + 4 + (two ? row / 2 : row * (k + 0.5) / group), half = ERRORS * (errors ? errors[k][i] : 0);
    return svg("g", { class: sideStyle(two ? codes[i] : shown[k]) },
      two ? svg("rect", { class: "level", x: Math.min(x(0), x(value)), width: Math.abs(x(value) - x(0)), y: row * i + 6, height: row - 4 })
        : svg("circle", { class: "point", cx: x(value), cy: middle, r: Math.min(3.5, row / group / 1.6) }),
      errors ? svg("path", { class: two ? "whisker" : "curve-line", d: `M${inside(value - half)} ${middle}H${inside(value + half)}` }) : null,
      svg("title", {}, `${names[i]}: ${short(value, 3)}${two ? "" : ` for ${classes[shown[k]]}`}${errors ? ` ± ${short(half, 2)}` : ""}, ${whole(counts[i])} rows`));
  };
  const shareBars = (i) => shares.map((each, k) => svg("rect", { class: `share ${sideStyle(shown[k])}`, x: 300, width: across(each[i]), y: row * i + 5 + k * (row - 3) / shares.length, height: (row - 3) / shares.length },
    svg("title", {}, `share of ${names[i]} in ${classes[shown[k]]}`)));
  return [picture(360, high + 40, `Levels of ${title}`,
    names.map((name, i) => svg("g", {},
      svg("text", { x: 112, y: row * i + 16, "text-anchor": "end" }, `${shortened(name, 11)} (${whole(counts[i])})`),
      svg("g", { class: `band ${sideStyle(codes[i])}` }, svg("title", {}, `favours ${classes[codes[i]]}`), svg("rect", { x: 118, width: 6, y: row * i + 4, height: row - 1 })),
      values.map((_, k) => mark(k, i)), shareBars(i))),
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 2, y2: high }),
    marked < 0 ? null : svg("rect", { class: "chosen", x: 2, width: 356, y: row * marked + 3, height: row }),
    horizontalAxis(x, high + 4, null, 4), svg("text", { x: 300, y: high + 20 }, "shares")),
  levels.n_hidden ? note(`${whole(levels.n_hidden)} rarer levels with ${whole(levels.n_hidden_rows)} rows are not shown.`) : null];
}

/** What the levels of a category add to the sum z, as a table that is folded away. */
function pointsNode({ name, rows, n_hidden: hidden }) {
  const body = rows.map(([level, points]) => [named(level), short(points, 4)]);
  return element("details", {}, element("summary", {}, "Points of ", named(name), " in z"), table(["level", "adds to z"], body),
    hidden ? note(`${whole(hidden)} levels with points between these are not listed.`) : null);
}

/** The ends of the scale that all lines share: their curves and levels, zero, and bands as far as there is room. */
function sharedLimits(lines) {
  const curves = lines.flatMap((line) => (line.levels
    ? line.levels.values.map((values, k) => ({ values, errors: line.levels.errors?.[k] }))
    : line.curves.map(({ log_odds: values, errors }) => ({ values: Array.from(values), errors }))));
  const missing = lines.flatMap((line) => line.missing ?? []);
  const ends = (sign) => curves.flatMap(({ values, errors }) => values.map((v, i) => v + sign * ERRORS * (errors ? errors[i] : 0)));
  const all = [...missing, ...curves.flatMap(({ values }) => values)], low = least(all, -0.1), high = -least(all.map((v) => -v), -0.1);
  const beyond = MOST_BEYOND * (high - low);
  return [Math.max(least(ends(-1), low), low - beyond), Math.min(-least(ends(1).map((v) => -v), -high), high + beyond)];
}

const least = (numbers, start) => numbers.reduce((a, b) => Math.min(a, b), start);

/** A curve, and the band around it if its standard errors are known, cut off at the ends of the scales. */
function curvePaths(curve, x, y) {
  const inside = [x.low, ...Array.from(curve.knots).filter((z) => z > x.low && z < x.high), x.high];
  const at = inside.map((z) => curveAt(curve, z)), across = inside.map((z) => x(z));
  const errors = curve.errors ? inside.map((z) => curveAt({ knots: curve.knots, log_odds: curve.errors }, z)) : null;
  const end = (sign) => at.map((value, i) => y(Math.min(Math.max(value + sign * ERRORS * errors[i], y.low), y.high)));
  return [
    errors ? svg("path", { class: "area", d: `${pathOf(across, end(1))}${pathOf(across.slice().reverse(), end(-1).reverse()).replace("M", "L")}Z` }) : null,
    svg("path", { class: "curve-line", d: pathOf(across, at.map(y)) }),
  ];
}

/** An interval between thresholds as a bar in the colour of its class. */
function leadingBand({ thresholds, codes }, code, i, x, classes) {
  const place = (z) => x(Math.min(Math.max(z, x.low), x.high));
  const from = i ? place(thresholds[i - 1]) : x(x.low), to = i < codes.length - 1 ? place(thresholds[i]) : x(x.high);
  return svg("g", { class: `band ${sideStyle(code)}` }, svg("title", {}, `favours ${classes[code]}`),
    svg("rect", { x: from, width: to - from, y: 192, height: 6 }));
}

// -------------------------------------------------------------------------------------------------------------- scores

const MODEL_CLASSES = ["model0", "model1", "model2"];

function scoresSection(scores, classes) {
  if (scores.reason) return [element("p", {}, scores.reason)];
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const spread = (values) => Math.sqrt(mean(values.map((v) => (v - mean(values)) ** 2)));
  const rows = scores.models.map(({ name, folds }, i) => [
    element("span", {}, element("i", { class: `swatch ${MODEL_CLASSES[i]}` }), name),
    ...scores.measures.map((measure, m) => {
      const values = folds.map((fold) => fold[m]), shown = measure.endsWith("accuracy") ? percent : (value) => value.toFixed(3);
      return `${shown(mean(values))} ± ${shown(spread(values))}`;
    })]);
  const groups = [...new Set(scores.curves.map((curve) => curve.class_index))];
  const names = scores.models.map((model) => model.name);
  return [
    element("p", {}, scores.text),
    table(["held out", ...scores.measures], rows),
    element("div", { class: "row" },
      foldsFigure(scores, names), calibrationFigure(scores.calibration)),
    several(groups.map((k) => [`Curves of ${classes[k]}`, curvesFigure(scores.curves.filter((c) => c.class_index === k), names, classes[k])])),
  ];
}

function foldsFigure({ models }, names) {
  const all = models.flatMap((model) => model.folds.map((fold) => fold[0]));
  const pad = 0.1 * (Math.max(...all) - Math.min(...all)) || 0.02;
  const x = scale(Math.max(0, Math.min(...all) - pad), Math.min(1, Math.max(...all) + pad), 20, 340);
  return element("figure", {}, element("figcaption", {}, `Balanced accuracy on each of the ${models[0].folds.length} folds`),
    picture(360, 60 + 40 * models.length, "Balanced accuracy of each model on each fold",
      models.map((model, i) => svg("g", { class: MODEL_CLASSES[i] },
        svg("text", { x: 20, y: 18 + 40 * i }, names[i]),
        svg("line", { class: "zero", x1: 20, x2: 340, y1: 30 + 40 * i, y2: 30 + 40 * i }),
        model.folds.map((fold) => svg("circle", { cx: x(fold[0]), cy: 30 + 40 * i, r: 5 })))),
      horizontalAxis(x, 22 + 40 * models.length, null, 5)));
}

function calibrationFigure(bins) {
  const x = scale(0, 1, 46, 246), y = scale(0, 1, 216, 16);
  const most = Math.max(...bins.map((bin) => bin[2]));
  return element("figure", {}, element("figcaption", {}, "Calibration of the held-out probabilities"),
    picture(360, 262, "Share of rows of the class against predicted probability",
      svg("line", { class: "zero", x1: 46, y1: 216, x2: 246, y2: 16 }),
      svg("path", { class: "curve-line", d: pathOf(bins.map((b) => x(b[0])), bins.map((b) => y(b[1]))) }),
      bins.map(([p, share, n]) => svg("circle", { class: "model0", cx: x(p), cy: y(share), r: 2.5 + 4 * Math.sqrt(n / most) },
        svg("title", {}, `predicted ${percent(p)}, found ${percent(share)}, ${n} rows`))),
      verticalAxis(46, y, "found", 5), horizontalAxis(x, 216, "predicted", 5)));
}

function curvesFigure(curves, names, label) {
  const draw = (title, field, xLabel, yLabel, x, y, base) => element("figure", {}, element("figcaption", {}, title),
    picture(360, 262, `${title} of ${label}`,
      svg("line", { class: "zero", x1: x(0), y1: y(base[0]), x2: x(1), y2: y(base[1]) }),
      curves.map((curve) => svg("path", { class: `roc ${MODEL_CLASSES[names.indexOf(curve.model)]}`, d: pathOf(curve[field][0].map(x), curve[field][1].map(y)) },
        svg("title", {}, curve.model))),
      verticalAxis(46, y, yLabel, 5), horizontalAxis(x, 216, xLabel, 5)));
  const x = scale(0, 1, 46, 246), y = scale(0, 1, 216, 16), share = curves[0].share;
  return element("div", { class: "row" },
    draw("ROC, held out", "roc", "false positives", "true positives", x, y, [0, 1]),
    draw("Precision and recall, held out", "precision_recall", "recall", "precision", x, y, [share, share]));
}

/** Balanced accuracy against the largest number of features, with standard errors; a broken line for all features. */
function pathFigure({ numbers, means, errors, all }) {
  const ends = means.flatMap((mean, i) => [mean - errors[i], mean + errors[i], all]);
  const x = scale(0.5, numbers.length + 0.5, 56, 346), y = scale(Math.min(...ends), Math.max(...ends), 200, 16);
  return element("figure", {}, element("figcaption", {}, "Held-out balanced accuracy against the largest number of features"),
    picture(360, 250, "Balanced accuracy against the number of features",
      svg("line", { class: "zero", x1: 56, x2: 346, y1: y(all), y2: y(all), "stroke-dasharray": "5 4" }, svg("title", {}, `all features: ${percent(all)}`)),
      svg("path", { class: "curve-line", d: pathOf(numbers.map(x), means.map(y)) }),
      numbers.map((number, i) => svg("g", { class: "model0" },
        svg("line", { class: "curve-line", x1: x(number), x2: x(number), y1: y(means[i] - errors[i]), y2: y(means[i] + errors[i]) }),
        svg("circle", { cx: x(number), cy: y(means[i]), r: 4 }, svg("title", {}, `${number}: ${percent(means[i])}`)),
        svg("text", { x: x(number), y: 218, "text-anchor": "middle" }, number))),
      verticalAxis(56, y, "balanced accuracy", 4),
      svg("text", { x: 201, y: 240, "text-anchor": "middle", class: "label" }, "largest number of features")));
}

// ----------------------------------------------------------------------------------------------------------- stability

function stabilitySection(stability) {
  return [
    ...stability.text.map((text) => element("p", {}, withSigns(text))),
    stability.starts.length ? several(stability.starts.map(({ title, divergences }) => [title, startsFigure(divergences)])) : null,
    stability.table ? table(stability.table.head, stability.table.rows.map((row) => row.map(withSigns)), stability.table.caption) : null,
  ];
}

/** The divergences that the starts led to, as dots that are piled up where they are equal. */
function startsFigure(divergences) {
  const low = Math.min(0, ...divergences), wide = roomFor(560);
  const x = scale(low, Math.max(...divergences) * 1.05 || 1, 20, wide - 20);
  const piles = new Map();
  const dots = divergences.map((value) => {
    const place = Math.round(x(value) / 10) * 10, height = piles.get(place) ?? 0;
    piles.set(place, height + 1);
    return [x(value), height];
  });
  const top = 14 + 12 * Math.max(...piles.values());
  return element("figure", {}, element("figcaption", {}, "Divergence that each start led to"),
    picture(wide, top + 46, "Divergences of the starts", dots.map(([cx, height]) => svg("circle", { class: "model0", cx, cy: top - 8 - 12 * height, r: 5 })),
      horizontalAxis(x, top + 4, "divergence D", 6)));
}

// ------------------------------------------------------------------------------------------------------- card and rule

const cardSection = (card) => element("dl", { class: "card" }, card.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

/** A text to copy, or why it is not on the page. */
function copyable(title, text, why) {
  if (text === null) return element("details", {}, element("summary", {}, title), note(why));
  const status = element("span", { role: "status" });
  const shown = element("pre", { tabindex: 0 }, text);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(shown);
      status.textContent = "selected: copy it with Ctrl-C";
    }
  };
  return element("details", {}, element("summary", {}, title),
    element("p", {}, element("button", { type: "button", onclick: copy }, `Copy ${title}`), " ", status), shown);
}

const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The JSON document of the model as text, with marks of direction escaped: they would show it in another order. */
function jsonText(document) {
  const text = JSON.stringify(document, (_, value) => (value instanceof Float64Array ? Array.from(value) : value));
  return text.replace(DIRECTION_MARKS, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
}
