"use strict";
// The page: the sections in their order.

function start() {
  const stored = JSON.parse(document.getElementById("data").textContent);
  const data = resolved(stored.data, stored.arrays.map(arrayFrom));
  const model = data.answers ? modelFrom(data.answers, data.classes.length) : null;
  document.getElementById("lead").append(...leadOf(data));
  document.getElementById("summary").append(...summaryOf(data));
  for (const [id, title, nodes] of sectionsOf(data, model)) {
    document.getElementById("contents").append(element("a", { href: `#${id}` }, title));
    document.getElementById("main").append(element("section", { id }, element("h2", {}, title), nodes));
  }
}

function sidesOf(data, axis) {
  return axis.class_index === null ? data.classes : ["the rest", data.classes[axis.class_index]];
}

function leadOf(data) {
  const of = data.classes.length === 2 ? ["tells ", named(data.classes[1]), " from ", named(data.classes[0])] : [`tells ${data.classes.length} classes apart`];
  const how = data.additive ? ` by ${data.answers ? data.answers.lines.length : data.lines.length} lines, whose curves add up to the log-odds.`
    : data.classes.length === 2 ? " by thresholds on one line: a weighted sum of the features." : " by thresholds on a line for each class: a weighted sum of the features.";
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

function sectionsOf(data, model) {
  return [
    ["line", data.axes.length > 1 || data.additive ? "Lines and thresholds" : "The line", lineNodes(data, model)],
    ["weights", "Features", weightsSection(data.weights)],
    data.lines.length ? ["curves", "Lines with their curves", [curvesText(data), element("div", { class: "grid" },
      data.lines.map((line) => curveFigure(line, data.classes)))]] : null,
    ["what-if", "What if", whatIfNodes(data, model)],
    ["scores", "Held-out scores", scoresSection(data.scores, data.classes)],
    ["stability", "Stability", stabilitySection(data.stability)],
    ["card", "Model card", [cardSection(data.card)]],
    ["rule", "The rule", ruleNodes(data)],
  ].filter(Boolean).map(([id, title, nodes]) => [id, title, nodes.filter(Boolean)]);
}

function lineNodes(data, model) {
  const label = data.additive ? "log-odds" : "projection z";
  const figures = data.axes.map((axis, i) => {
    const sides = sidesOf(data, axis), line = model && (model.additive ? {} : model.lines[axis.line]);
    const title = axis.class_index === null ? `${sides[1]} against ${sides[0]}` : `${sides[1]} against the rest`;
    return [title, axisSection(axis, line, sides, { label, title, intervals: data.intervals[i] })];
  });
  const remark = data.classes.length > 2
    ? note("Each class has a line of its own, against the rest. The model predicts the class with the best odds on its line; the matrix below counts what this line alone says.") : null;
  return [
    element("p", {}, "Drag a threshold, or move it with the arrow keys, and the matrix follows. It counts the ",
      `${whole(data.n_rows)} rows given to this report; if the model was fitted on them, held-out scores are lower.`,
      data.intervals.some((each) => each.length) ? " Grey bands are intervals of the thresholds." : ""),
    remark, several(figures),
  ];
}

function curvesText(data) {
  return element("p", {}, "What each line adds to the log-odds ", data.classes.length === 2 ? element("span", {}, "of ", named(data.classes[1])) : "of its class",
    ", above the densities of both sides along it.");
}

function whatIfNodes(data, model) {
  if (!model) return [element("p", {}, "The numbers that this form needs would make the page too large, so it is left out. melc.explain answers such questions in Python.")];
  const more = data.n_features - data.answers.features.length;
  const remark = data.answers.difference === 0 ? "It answers as the model’s predict does."
    : `Its densities have fewer points than those of the model: the log-odds differ by at most ${short(data.answers.difference, 2)} on the rows given.`;
  return [element("p", {}, "Change a feature and see what the model says. ", remark,
    more > 0 ? ` ${whole(more)} features of little weight stay at their medians.` : ""),
  whatIfSection(model, data.fields, data.classes, data.rows)];
}

function ruleNodes(data) {
  const text = element("pre", { tabindex: 0 }, data.rule);
  return [text, copyable("SQL", data.sql, data.sql_why), copyable("JSON", data.document && jsonText(data.document), data.document_why)];
}

start();
