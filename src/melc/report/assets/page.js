"use strict";
// The page: the sections in their order.

function start() {
  const stored = JSON.parse(document.getElementById("data").textContent);
  const data = resolved(stored.data, stored.arrays.map(arrayFrom));
  document.getElementById("lead").append(...leadOf(data));
  document.getElementById("summary").append(...summaryOf(data));
  if (data.left_out.length) {
    document.getElementById("summary").after(note(`Left out to keep this page small: ${data.left_out.join(", ")}.`));
  }
  for (const [id, title, nodes] of sectionsOf(data)) {
    document.getElementById("contents").append(element("a", { href: `#${id}` }, title));
    document.getElementById("main").append(element("section", { id }, element("h2", {}, title), nodes));
  }
}

/** The names of the classes whose rows are counted along an axis. */
const sidesOf = (data, axis) => axis.sides.map((code) => (code === null ? "other classes" : data.classes[code]));

function leadOf(data) {
  const of = data.classes.length === 2 ? ["tells ", named(data.classes[1]), " from ", named(data.classes[0])] : [`tells ${data.classes.length} classes apart`];
  const several = data.n_lines > 1 ? ` by ${data.n_lines} lines, whose curves add up to the log-odds.` : " by one column.";
  const how = data.alone ? " by thresholds on one line: a weighted sum of the features." : several;
  return [`This ${data.kind} model `, ...of, how];
}

function summaryOf(data) {
  const scores = data.scores.models ? data.scores.models[0].folds.map((fold) => fold[0]) : [];
  const mean = scores.reduce((a, b) => a + b, 0) / scores.length;
  return [
    tile("rows", whole(data.n_rows)), tile("features", whole(data.n_features)), tile("classes", whole(data.classes.length)),
    scores.length ? tile("balanced accuracy, held out", percent(mean)) : null,
  ].filter(Boolean);
}

function sectionsOf(data) {
  return [
    ["line", data.alone ? "The line" : "Log-odds and thresholds", lineNodes(data)],
    ["weights", "Features", weightsSection(data.weights)],
    data.lines.length ? ["curves", curvesTitle(data), curvesNodes(data)] : null,
    ["what-if", "What if", whatIfNodes(data)],
    ["scores", "Held-out scores", scoresSection(data.scores, data.classes)],
    ["stability", "Stability", stabilitySection(data.stability)],
    ["card", "Model card", [cardSection(data.card)]],
    ["rule", "The rule", ruleNodes(data)],
  ].filter(Boolean).map(([id, title, nodes]) => [id, title, nodes.filter(Boolean)]);
}

function lineNodes(data) {
  const label = data.alone ? "projection z" : "log-odds";
  const figures = data.axes.map((axis) => {
    const sides = sidesOf(data, axis), title = data.alone ? "The line" : `Log-odds of ${sides[1]}`;
    return [title, axisSection(axis, sides, label, title)];
  });
  const remark = data.classes.length > 2 && !data.alone
    ? note("The log-odds of a class are those of its probability, and above zero where it is more than one half. The model predicts the class with the largest; the matrix below counts what those of one class alone say.") : null;
  return [
    element("p", {}, "Drag a threshold, or move it with the arrow keys, and the matrix follows. It counts the ",
      `${whole(data.n_rows)} rows given to this report; if the model was fitted on them, held-out scores are lower.`,
      data.axes.some(({ intervals }) => intervals.length) ? " Grey bands are intervals of the thresholds." : ""),
    remark, several(figures),
  ];
}

function curvesTitle(data) {
  if (data.n_lines > 1) return "Lines with their curves";
  return data.classes.length > 2 ? "The curves" : "The curve";
}

/** The lines with their curves; minor ones are folded away. */
function curvesNodes(data) {
  const grid = (lines) => element("div", { class: "grid" }, lines.map((line) => curveFigure(line, data.classes)));
  const minor = data.lines.filter((line) => line.minor), main = data.lines.filter((line) => !line.minor);
  const hidden = data.n_lines - data.lines.length, { classes } = data.lines[0];
  return [curvesText(data), data.classes.length > 2 ? key(classes, classes.map((code) => data.classes[code])) : null,
    main.length ? grid(main) : null,
    minor.length ? element("details", { class: "minor" },
      element("summary", {}, `${minor.length} minor line${minor.length > 1 ? "s" : ""}, each of one feature`), grid(minor)) : null,
    hidden ? note(`${whole(hidden)} less important lines are not shown.`) : null];
}

function curvesText(data) {
  const two = data.classes.length === 2, of = two ? element("span", {}, "of ", named(data.classes[1])) : "of each class";
  const what = data.n_lines === 1 ? ["The log-odds ", of, " along the line"] : ["What each line adds to the log-odds ", of];
  const most = data.lines[0].classes.length;
  return element("p", {}, what, ", above the densities of the classes along it. The band below has the colour of the class that the line speaks for.",
    data.lines.some(({ curves }) => curves.some(({ errors }) => errors !== null)) ? " Around a curve are ± 1.96 standard errors." : "",
    data.lines.some(({ levels }) => levels) ? " Levels of a category have bars or points of their own, and small bars for their shares in the classes." : "",
    data.lines.some(({ missing }) => missing) ? " Points right of a curve are what a missing value adds." : "",
    most < data.classes.length ? ` Shown are the ${most} classes with the most rows.` : "");
}

function whatIfNodes(data) {
  if (!data.answers) return [element("p", {}, "The numbers that this form needs would make the page too large, so it is left out. melc.explain answers such questions in Python.")];
  const more = data.n_features - data.answers.features.length;
  return [element("p", {}, "Change a feature and see what the model says. It answers as the model’s predict does.",
    more > 0 ? ` ${whole(more)} features of little weight stay at their medians, or their most frequent levels.` : ""),
  whatIfSection(data.answers, data.fields, data.classes, data.rows)];
}

function ruleNodes(data) {
  const text = element("pre", { tabindex: 0 }, data.rule);
  return [text, copyable("SQL", data.sql, data.sql_why), copyable("JSON", data.document && jsonText(data.document), data.document_why)];
}

start();
