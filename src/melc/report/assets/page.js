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

function sidesOf(data, axis) {
  return axis.class_index === null ? data.classes : ["the rest", data.classes[axis.class_index]];
}

function leadOf(data) {
  const of = data.classes.length === 2 ? ["tells ", named(data.classes[1]), " from ", named(data.classes[0])] : [`tells ${data.classes.length} classes apart`];
  const how = data.alone ? ` by thresholds on ${data.n_lines === 1 ? "one line" : "a line for each class"}: a weighted sum of the features.`
    : ` by ${data.n_lines} lines, whose curves add up to the log-odds.`;
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
    ["line", data.n_lines > 1 ? "Lines and thresholds" : "The line", lineNodes(data)],
    ["weights", "Features", weightsSection(data.weights)],
    data.lines.length ? ["curves", data.n_lines > 1 ? "Lines with their curves" : "The curve", [curvesText(data), element("div", { class: "grid" },
      data.lines.map(curveFigure))]] : null,
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
    const sides = sidesOf(data, axis), title = `${sides[1]} against ${sides[0]}`;
    return [title, axisSection(axis, sides, label, title)];
  });
  const remark = data.classes.length > 2
    ? note("Each class has log-odds of its own, against the rest. The model predicts the class with the largest; the matrix below counts what those of one class alone say.") : null;
  return [
    element("p", {}, "Drag a threshold, or move it with the arrow keys, and the matrix follows. It counts the ",
      `${whole(data.n_rows)} rows given to this report; if the model was fitted on them, held-out scores are lower.`,
      data.axes.some(({ intervals }) => intervals.length) ? " Grey bands are intervals of the thresholds." : ""),
    remark, several(figures),
  ];
}

function curvesText(data) {
  const of = data.classes.length === 2 ? element("span", {}, "of ", named(data.classes[1])) : "of its class";
  const what = data.alone ? ["The log-odds ", of, data.n_lines === 1 ? " along the line" : " along each line"] : ["What each line adds to the log-odds ", of];
  return element("p", {}, what, ", above the densities of both sides along it.");
}

function whatIfNodes(data) {
  if (!data.answers) return [element("p", {}, "The numbers that this form needs would make the page too large, so it is left out. melc.explain answers such questions in Python.")];
  const more = data.n_features - data.answers.features.length;
  return [element("p", {}, "Change a feature and see what the model says. It answers as the model’s predict does.",
    more > 0 ? ` ${whole(more)} features of little weight stay at their medians.` : ""),
  whatIfSection(data.answers, data.fields, data.classes, data.rows)];
}

function ruleNodes(data) {
  const text = element("pre", { tabindex: 0 }, data.rule);
  return [text, copyable("SQL", data.sql, data.sql_why), copyable("JSON", data.document && jsonText(data.document), data.document_why)];
}

start();
