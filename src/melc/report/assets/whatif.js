"use strict";
// The form: the values of a row, and what the model says of it.

const FIELDS_AT_FIRST = 12;
// Milliseconds without a change of the form before the nearest change of class is looked for.
const PAUSE = 80;

/** The coded values of the columns of the form from those of its fields: NaN where they are missing. */
function featuresFrom(fields, values, nFeatures) {
  const x = new Array(nFeatures).fill(0);
  fields.forEach((field, i) => { x[field.feature] = values[i]; });
  return x;
}

/** The standard deviations of the numbers that may change; zero for other columns, and for missing numbers. */
function spreadsOf(fields, values, free, nFeatures) {
  const spreads = new Array(nFeatures).fill(0);
  fields.forEach((field, i) => { if (free[i] && !Number.isNaN(values[i])) spreads[field.feature] = field.spread; });
  return spreads;
}

/** The section with the form. `rows` are example rows to begin with, if there are any. */
function whatIfSection(model, fields, classes, rows) {
  const nFeatures = model.features.length;
  const inputs = fields.map((field) => fieldInput(field, () => answer()));
  const result = element("div", { class: "answer", "aria-live": "polite" });
  const change = element("div", { class: "change" });
  let waiting = 0;

  function answer() {
    const values = inputs.map((input) => input.value());
    const wrong = values.findIndex((value) => value === undefined);
    clearTimeout(waiting);
    if (wrong >= 0) {
      result.replaceChildren(element("p", { class: "refused" }, "Enter a value for ", named(fields[wrong].name), "."));
      change.replaceChildren();
      return;
    }
    const x = featuresFrom(fields, values, nFeatures), found = answerAt(model, projectionsOf(model, x));
    result.dataset.code = found.code;
    result.dataset.probabilities = JSON.stringify(found.probabilities);
    result.replaceChildren(...answerNodes(model, fields, found, classes));
    const show = () => change.replaceChildren(...changeNodes(model, fields, values, inputs, found, classes));
    waiting = setTimeout(show, PAUSE);
  }

  const start = () => { inputs.forEach((input, i) => input.set(fields[i].typical)); answer(); };
  const visible = inputs.slice(0, FIELDS_AT_FIRST), further = inputs.slice(FIELDS_AT_FIRST);
  const form = element("form", { class: "fields", onsubmit: (event) => event.preventDefault() },
    visible.map((input) => input.node),
    further.length ? element("details", {}, element("summary", {}, `${further.length} more features`),
      element("div", { class: "fields" }, further.map((input) => input.node))) : null);
  start();
  return element("div", { class: "what-if" },
    element("div", {}, rowChoice(rows, (row) => { row.forEach((value, i) => inputs[i].set(value)); answer(); }),
      form, element("button", { type: "button", onclick: start }, "Typical values")),
    element("div", { class: "verdict" }, result, change));
}

function rowChoice(rows, choose) {
  if (!rows.length) return null;
  const select = element("select", { onchange: () => { if (select.value !== "") choose(rows[Number(select.value)]); } },
    element("option", { value: "" }, "choose…"), rows.map((_, i) => element("option", { value: i }, `row ${i + 1}`)));
  return element("label", { class: "rows" }, "Start from a row of the data ", select);
}

/** A field: its node, its value (NaN if it is missing, undefined if it cannot be read), and how to set it. */
function fieldInput(field, changed) {
  const choice = field.kind === "choice";
  const keep = element("input", { type: "checkbox", checked: !choice, disabled: choice, onchange: changed });
  const control = { number: numberInput, date: dateInput, choice: choiceInput }[field.kind](field, changed);
  const label = element("label", {}, element("span", { class: "name" }, named(field.name)), control.nodes);
  const may = choice ? null
    : element("label", { class: "may", title: "Whether the nearest change of class may change this feature" }, keep, "may change");
  return { ...control, free: () => keep.checked, node: element("div", { class: "field" }, label, may) };
}

/** The value of an input that may be empty: `read` makes a number of its text. */
function enteredIn(input, read) {
  if (input.validity.badInput) return undefined;
  return input.value === "" ? NaN : read(input.value);
}

function numberInput(field, changed) {
  const number = element("input", { type: "number", step: "any", placeholder: "missing", oninput: () => { range.value = number.value; changed(); } });
  const range = element("input", { type: "range", min: field.low, max: field.high, step: "any", tabindex: -1, "aria-hidden": "true",
    oninput: () => { number.value = Number(Number(range.value).toPrecision(4)); changed(); } });
  return {
    nodes: [number, field.high > field.low ? range : null],
    value: () => enteredIn(number, Number),
    set: (value) => { number.value = value === null ? "" : String(value); if (value !== null) range.value = value; },
  };
}

function dateInput(field, changed) {
  const date = element("input", { type: "date", oninput: changed });
  // The input has whole days; what was set keeps its hours until another day is chosen.
  let exact = field.typical;
  const days = (text) => (exact !== null && dateOf(exact) === text ? exact : Date.parse(text) / DAY);
  return {
    nodes: [date, element("small", {}, "empty: missing")],
    value: () => enteredIn(date, days),
    set: (value) => { exact = value; date.value = value === null ? "" : dateOf(value); },
  };
}

/** A list of levels. Their values are coded; null stands for one that is missing or not known. */
function choiceInput(field, changed) {
  const select = element("select", { onchange: changed, oninput: changed },
    field.choices.map(([name], i) => element("option", { value: i }, shortened(name, 60))));
  const more = field.n_hidden ? element("small", {}, `and ${whole(field.n_hidden)} rarer levels, not listed`) : null;
  return {
    nodes: [select, more],
    value: () => field.choices[select.selectedIndex]?.[1] ?? NaN,
    set: (value) => { select.selectedIndex = field.choices.findIndex(([, code]) => code === value); },
  };
}

/** A coded value of a field as it is shown. */
function valueText(field, value) {
  if (field.kind === "choice") return field.choices.find(([, code]) => Object.is(code ?? NaN, value))?.[0] ?? "";
  if (Number.isNaN(value)) return "missing";
  return field.kind === "date" ? dateOf(value) : short(value, 6);
}

// -------------------------------------------------------------------------------------------------------- the answer

function answerNodes(model, fields, found, classes) {
  const order = found.probabilities.map((_, k) => k);
  if (classes.length > 2) order.sort((a, b) => found.probabilities[b] - found.probabilities[a]);
  return [
    element("p", { class: "class" }, "Class ", element("strong", {}, named(classes[found.code]))),
    element("div", { class: "bars" }, order.slice(0, 8).map((k) => probabilityBar(classes[k], found.probabilities[k], k))),
    ...oddsNodes(found, classes), ...linesNodes(model, fields, found, classes),
  ];
}

function oddsNodes({ odds }, classes) {
  if (classes.length === 2) return [element("p", { class: "scores" }, `log-odds ${short(odds[0], 6)}`)];
  const rows = classes.slice(0, 30).map((name, k) => [named(name), short(odds[k], 6)]);
  return [element("details", { class: "scores" }, element("summary", {}, "log-odds of each class"), table(["class", "log-odds"], rows))];
}

/** Where the row is on the line, or what each of several lines adds to the log-odds of the class predicted. */
function linesNodes(model, fields, { projections, code }, classes) {
  const place = (k) => placeText(model, fields, k, projections[k]);
  if (model.lines.length === 1) {
    if (model.lines[0].reads !== null) return [];  // there is a single column
    return [element("p", { class: "scores" }, `projection z ${place(0)}`), placeOnLine(model, projections[0], classes)];
  }
  const adds = addsAt(model, projections, code), of = classes[classes.length === 2 ? 1 : code];
  const rows = model.lines.slice(0, 60).map((_, k) => [`Line ${k + 1}`, place(k), short(adds[k], 4)]);
  const head = ["line", "place on it", element("span", {}, "adds to the log-odds of ", named(of))];
  return [element("details", {}, element("summary", {}, "place on each line"), table(head, rows))];
}

/** Where a row is on a line: the value of a single column, or the projection. */
function placeText(model, fields, k, z) {
  const { reads } = model.lines[k], field = fields.find(({ feature }) => feature === reads);
  return field ? valueText(field, z) : short(z, 6);
}

function probabilityBar(name, p, k) {
  const fill = element("span", { class: `fill ${sideStyle(k)}` });
  fill.style.width = `${100 * p}%`;
  return element("div", { class: "bar" }, named(name), element("span", { class: "track" }, fill), percent(p));
}

/** The intervals of the line with a mark at the row. */
function placeOnLine({ lines: [line], log_odds: [{ curves: [{ knots }] }] }, z, sides) {
  const low = Math.min(z, knots[0]), high = Math.max(z, knots[knots.length - 1]);
  const x = scale(low, high, 8, 392);
  const ends = [low, ...line.thresholds, high];
  return picture(400, 44, `z = ${short(z)}, in an interval of ${sides[line.codes[countNotAbove(line.thresholds, z)]]}`,
    line.codes.map((code, i) => svg("g", { class: `band ${sideStyle(code)}` },
      svg("rect", { x: x(ends[i]), width: Math.max(0, x(ends[i + 1]) - x(ends[i])), y: 18, height: 12 }))),
    svg("path", { class: "mark", d: `M${x(z)} 32l-6 10h12z` }), svg("line", { class: "mark", x1: x(z), x2: x(z), y1: 10, y2: 32 }));
}

// ----------------------------------------------------------------------------------------------------- what would change it

function changeNodes(model, fields, values, inputs, found, classes) {
  const free = inputs.map((input) => input.free());
  const x = featuresFrom(fields, values, model.features.length);
  const nearest = nearestChange(model, x, spreadsOf(fields, values, free, x.length));
  const heading = element("h3", {}, "Nearest change of class");
  if (!nearest) {
    return [heading, element("p", {}, free.some(Boolean)
      ? "No change of the chosen features within eight standard deviations changes the class."
      : "Choose features that may change."), ...aloneNodes(model, fields, values, free, found, classes)];
  }
  const moved = fields.map((field, i) => ({ field, i, to: nearest.row[field.feature] }))
    .filter(({ field, i, to }) => field.spread > 0 && !Number.isNaN(to) && differ(field, values[i], to))
    .sort((a, b) => Math.abs(b.to - values[b.i]) / b.field.spread - Math.abs(a.to - values[a.i]) / a.field.spread);
  const rows = moved.slice(0, 6).map(({ field, i, to }) => [named(field.name), ...changed(field, values[i], to)]);
  const rest = moved.length > 6 ? ` and smaller changes of ${moved.length - 6} more features` : "";
  const exact = model.lines.length === 1;
  return [heading,
    element("p", {}, "It would be ", element("strong", {}, named(classes[nearest.code])),
      ` after ${exact ? "the smallest possible" : "a"} change of ${short(nearest.distance, 3)} standard deviations${rest}:`),
    table(["feature", "from", "to"], rows),
    ...aloneNodes(model, fields, values, free, found, classes)];
}

/** Whether two values of a field differ, of dates by a day. */
const differ = (field, from, to) => (field.kind === "date" ? dateOf(from) !== dateOf(to) : from !== to);

/** Two values as texts that differ. */
function changed(field, from, to) {
  if (field.kind === "date") return [dateOf(from), dateOf(to)];
  for (let digits = 5; digits < 17; digits++) {
    if (short(from, digits) !== short(to, digits)) return [short(from, digits), short(to, digits)];
  }
  return [String(from), String(to)];
}

/** What one feature alone would have to be: looked for when it is asked for. */
function aloneNodes(model, fields, values, free, found, classes) {
  const details = element("details", {}, element("summary", {}, "One feature alone"));
  details.addEventListener("toggle", () => {
    const rows = aloneRows(model, fields, values, free, found, classes);
    details.append(rows.length ? table(["feature", "change", "class"], rows)
      : element("p", {}, "No change of one feature alone leads to another class."));
  }, { once: true });
  return [details];
}

function aloneRows(model, fields, values, free, found, classes) {
  return fields.slice(0, FIELDS_AT_FIRST).flatMap((field, i) => {
    if (field.kind === "choice") return otherChoices(model, fields, values, i, found, classes);
    const movable = free[i] && field.spread > 0 && !Number.isNaN(values[i]);
    const best = movable ? singleChange(model, found.projections, field, model.features.length) : null;
    return best ? [[named(field.name), `to ${changed(field, values[i], values[i] + best.step)[1]}`, named(classes[best.code])]] : [];
  });
}

/** The levels of a field that would lead to another class. */
function otherChoices(model, fields, values, i, found, classes) {
  return fields[i].choices.flatMap(([name, coded]) => {
    const other = values.map((value, at) => (at === i ? coded ?? NaN : value));
    const code = classAt(model, projectionsOf(model, featuresFrom(fields, other, model.features.length)));
    return code === found.code ? [] : [[named(fields[i].name), element("span", {}, "to ", named(name)), named(classes[code])]];
  }).slice(0, 8);
}

function singleChange(model, projections, field, nFeatures) {
  let best = null;
  for (const sign of [1, -1]) {
    const direction = new Array(nFeatures).fill(0);
    direction[field.feature] = sign * field.spread;
    const found = changeAlong(model, projections, direction);
    if (found && (!best || found.distance < Math.abs(best.step) / field.spread)) best = { step: sign * field.spread * found.distance, code: found.code };
  }
  return best;
}
