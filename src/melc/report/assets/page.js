"use strict";
// The page: the sections in their order.

function start() {
  const stored = JSON.parse(document.getElementById("data").textContent);
  const data = resolved(stored.data, stored.arrays.map(arrayFrom));
  document.getElementById("lead").append(...leadOf(data));
  document.getElementById("verdict").append(...verdictOf(data.verdict).filter(Boolean));
  document.getElementById("summary").append(...summaryOf(data));
  for (const [id, title, nodes] of sectionsOf(data)) {
    document.getElementById("contents").append(element("a", { href: `#${id}` }, title));
    document.getElementById("main").append(element("section", { id }, element("h2", {}, title), nodes));
  }
}

/** The names of classes, given by their numbers; null stands for all others. */
const sidesOf = (data, codes) => codes.map((code) => (code === null ? "other classes" : data.classes[code]));

function verdictOf({ banner, text, distrust }) {
  return [
    banner ? element("p", { class: "banner", role: "alert" }, banner) : null,
    ...text.map((sentence) => element("p", {}, sentence)),
    distrust.length ? element("div", { class: "distrust" }, element("strong", {}, "What to distrust"),
      element("ul", {}, distrust.map((sentence) => element("li", {}, withSigns(sentence))))) : null,
  ];
}

function leadOf(data) {
  const of = data.classes.length === 2 ? ["tells ", named(data.classes[1]), " from ", named(data.classes[0])] : [`tells ${data.classes.length} classes apart`];
  const several = data.n_lines > 1 ? ` by ${data.n_lines} lines, whose curves add up to the log-odds.` : " by one column.";
  const how = data.line ? " by thresholds on one line: a weighted sum of the features." : several;
  return [`This ${data.kind} model `, ...of, how];
}

const summaryOf = (data) => [
  tile("rows", whole(data.n_rows)), tile("features", whole(data.n_features)), tile("classes", whole(data.classes.length))];

/** The sections in their order: name in the address, title and nodes. */
function sectionsOf(data) {
  const policy = policyFrom(data.decisions), limits = data.lines.length ? sharedLimits(data.lines) : [-1, 1];
  return [
    ["decisions", data.decisions.held_out ? "Decisions on new rows" : "Decisions", decisionsNodes(data, policy)],
    data.line ? ["line", "The line", lineNodes(data, policy)] : null,
    ["weights", "Features", weightsSection(data.weights)],
    data.lines.length ? ["curves", curvesTitle(data), curvesNodes(data, limits)] : null,
    ["what-if", "What if", whatIfNodes(data, policy, limits)],
    ["scores", "Held-out scores", scoresSection(data.scores, data.classes)],
    data.path ? ["path", "How many features", [element("p", {}, data.path.text), pathFigure(data.path)]] : null,
    ["stability", "Stability", stabilitySection(data.stability)],
    ["card", "Model card", [cardSection(data.card)]],
    ["rule", "The rule", ruleNodes(data)],
  ].filter(Boolean).map(([id, title, nodes]) => [id, title, nodes.filter(Boolean)]);
}

function lineNodes(data, policy) {
  return [
    element("p", {}, "The densities of the classes along the line, and the thresholds between them. Drag a threshold, or move it with the arrow keys, and the matrix follows. It counts the ",
      `${whole(data.n_rows)} rows given to this report; if the model was fitted on them, there are more errors on new rows, as shown above.`,
      data.line.intervals.length ? " Grey bands are intervals of the thresholds." : ""),
    lineSection(data.line, sidesOf(data, data.line.sides), policy),
  ];
}

function curvesTitle(data) {
  if (data.n_lines > 1) return "Lines with their curves";
  return data.classes.length > 2 ? "The curves" : "The curve";
}

/** The lines with their curves; minor ones are folded away. */
function curvesNodes(data, limits) {
  const grid = (lines) => element("div", { class: "grid" }, lines.map((line) => curveFigure(line, data.classes, limits)));
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
  return element("p", {}, what, ", above the densities of the classes along it. The band below has the colour of the class that the line favours.",
    data.lines.some(({ curves }) => curves.some(({ errors }) => errors !== null)) ? " Around a curve are ± 1.96 standard errors." : "",
    data.lines.some(({ levels }) => levels) ? " Levels of a category have bars or points of their own, and small bars for their shares in the classes." : "",
    data.lines.some(({ missing }) => missing) ? " Points right of a curve are what a missing value adds." : "",
    data.lines.length > 1 ? " All pictures have the same scale of log-odds." : "",
    most < data.classes.length ? ` Shown are the ${most} classes with the most rows.` : "");
}

function whatIfNodes(data, policy, limits) {
  if (!data.answers) return [element("p", {}, "The numbers that this form needs would make the page too large, so it is left out. melc.explain answers such questions in Python.")];
  const more = data.n_features - data.answers.features.length;
  return [element("p", {}, "Enter a row and see what the model says and why. It answers as the model’s predict does, unless the sliders above were moved.",
    more > 0 ? ` ${whole(more)} features of little weight stay at their medians, or their most frequent levels.` : ""),
  whatIfSection(data, policy, limits)];
}

function ruleNodes(data) {
  const text = element("pre", { tabindex: 0 }, data.rule);
  return [text, copyable("SQL", data.sql, data.sql_why), copyable("JSON", data.document && jsonText(data.document), data.document_why)];
}

start();
