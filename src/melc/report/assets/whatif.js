"use strict";
// The form: the values of a row, and what the model says of it.

const FIELDS_AT_FIRST = 12;
// Milliseconds without a change of the form before reasons are drawn and the nearest change of class is looked for.
const PAUSE = 80;
// Features with a bar of their own, and lines on which the place of the row is shown.
const MOST_PARTS = 10, MOST_PLACES = 12;

/** The coded values of the columns of the form from those of its fields: NaN where they are missing. */
function featuresFrom(fields, values, nFeatures) {
  const x = new Array(nFeatures).fill(0);
  fields.forEach((field, i) => { x[field.feature] = values[i]; });
  return x;
}

/** The section with the form, and what the model says of the row in it. */
function whatIfSection(data, policy, limits) {
  const { answers: model, fields, classes, rows } = data;
  const inputs = fields.map((field) => fieldInput(field, () => answer()));
  const result = element("div", { class: "answer", "aria-live": "polite" });
  const why = element("div"), change = element("div", { class: "change" }), places = element("div", { class: "places" });
  let waiting = 0;

  function answer() {
    const values = inputs.map((input) => input.value());
    const wrong = values.findIndex((value) => value === undefined);
    clearTimeout(waiting);
    if (wrong >= 0) {
      result.replaceChildren(element("p", { class: "refused" }, "Enter a value for ", named(fields[wrong].name), "."));
      [why, change, places].forEach((node) => node.replaceChildren());
      return;
    }
    const row = asked(data, policy, values);
    result.dataset.code = row.code;
    result.dataset.probabilities = JSON.stringify(row.probabilities);
    result.replaceChildren(...answerNodes(data, policy, row));
    waiting = setTimeout(() => {
      why.replaceChildren(...whyNodes(data, row));
      places.replaceChildren(...placesNodes(data, row, limits));
      change.replaceChildren(...changeNodes(data, policy, row, inputs.map((input) => input.free())));
    }, PAUSE);
  }

  const start = () => { inputs.forEach((input, i) => input.set(fields[i].typical)); answer(); };
  const visible = inputs.slice(0, FIELDS_AT_FIRST), further = inputs.slice(FIELDS_AT_FIRST);
  const form = element("form", { class: "fields", onsubmit: (event) => event.preventDefault() },
    visible.map((input) => input.node),
    further.length ? element("details", {}, element("summary", {}, `${further.length} more feature${further.length > 1 ? "s" : ""}`),
      element("div", { class: "fields" }, further.map((input) => input.node))) : null);
  policy.onchange(answer);
  start();
  return element("div", { class: "what-if" },
    element("div", {}, rowChoice(rows, (row) => { row.forEach((value, i) => inputs[i].set(value)); answer(); }),
      form, element("button", { type: "button", onclick: start }, "Typical values")),
    element("div", {}, result, why, change), places);
}

/** A row, and what the model says of it under a policy. */
function asked({ answers: model, fields }, policy, values) {
  const x = featuresFrom(fields, values, model.features.length), projections = projectionsOf(model, x), odds = oddsAt(model, projections);
  return { values, x, projections, odds, code: codeOf(oddsWith(odds, policy.code, policy.added())), probabilities: probabilitiesWith(odds, policy) };
}

function rowChoice(rows, choose) {
  if (!rows.length) return null;
  const select = element("select", { onchange: () => { if (select.value !== "") choose(rows[Number(select.value)]); } },
    element("option", { value: "" }, "choose…"), rows.map((_, i) => element("option", { value: i }, `row ${i + 1}`)));
  return element("label", { class: "rows" }, "Start from a row of the data ", select);
}

/** A field: its node, its value (NaN if it is missing, undefined if it cannot be read), and how to set it. */
function fieldInput(field, changed) {
  const keep = element("input", { type: "checkbox", checked: true, onchange: changed });
  const control = { number: numberInput, date: dateInput, choice: choiceInput, rank: choiceInput }[field.kind](field, changed);
  const label = element("label", {}, element("span", { class: "name" }, named(field.name)), control.nodes);
  const may = element("label", { class: "may", title: "Whether the nearest change of class may change this feature" }, keep, "may change");
  return { ...control, free: () => keep.checked, node: element("div", { class: "field" }, label, may) };
}

/** The value of an input that may be empty: `read` makes a number of its text. */
function enteredIn(input, read) {
  if (input.validity.badInput) return undefined;
  return input.value === "" ? NaN : read(input.value);
}

function numberInput(field, changed) {
  const number = element("input", { type: "number", step: field.whole ? 1 : "any", placeholder: "missing", oninput: () => { range.value = number.value; changed(); } });
  const range = element("input", { type: "range", min: field.low, max: field.high, step: field.whole ? 1 : "any", tabindex: -1, "aria-hidden": "true",
    oninput: () => { number.value = field.whole ? range.value : Number(Number(range.value).toPrecision(4)); changed(); } });
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
  if (field.choices.length) return field.choices.find(([, code]) => Object.is(code ?? NaN, value))?.[0] ?? "";
  if (Number.isNaN(value)) return "missing";
  return field.kind === "date" ? dateOf(value) : short(value, 6);
}

// -------------------------------------------------------------------------------------------------------- the answer

function answerNodes({ answers: model, classes }, policy, { code, odds, probabilities }) {
  const order = probabilities.map((_, k) => k), own = codeOf(odds), likeliest = probabilities.indexOf(Math.max(...probabilities));
  if (classes.length > 2) order.sort((a, b) => probabilities[b] - probabilities[a]);
  return [
    element("p", { class: "class" }, "Class ", element("strong", {}, named(classes[code]))),
    code === own ? null : note("The sliders above changed this: the model itself says ", named(classes[own]), "."),
    element("p", { class: "aside" }, "Probabilities ", sharesText(policy, classes), ":"),
    element("div", { class: "bars" }, order.slice(0, 8).map((k) => probabilityBar(classes[k], probabilities[k], k))),
    likeliest === code ? null
      : note("The decision is not for the most probable class, because errors on rows of other classes cost more in it: see the sliders above."),
    classes.length > 2 ? element("details", { class: "scores" }, element("summary", {}, "log-odds of each class"),
      table(["class", "log-odds"], classes.slice(0, 30).map((name, k) => [named(name), short(odds[k])]))) : null,
  ].filter(Boolean);
}

function probabilityBar(name, p, k) {
  const fill = element("span", { class: `fill ${sideStyle(k)}` });
  fill.style.width = `${100 * p}%`;
  return element("div", { class: "bar" }, named(name), element("span", { class: "track" }, fill), percent(p));
}

// ---------------------------------------------------------------------------------------------------------------- why

/** What each feature adds to the log-odds. */
function whyNodes({ answers: model, fields, classes }, { x, values, odds }) {
  const of = classes.length === 2 ? 1 : codeOf(odds), { base, parts, others } = partsOf(model, x, of);
  const bars = fields.map((field, i) => ({ name: field.name, text: valueText(field, values[i]), part: parts[field.feature] }))
    .filter(({ part }) => part !== 0).sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const rest = bars.splice(MOST_PARTS), more = others + sum(rest.map(({ part }) => part));
  if (rest.length || Math.abs(others) > 1e-9) bars.push({ name: "all other features", text: null, part: more });
  return [
    element("h3", {}, "Why"),
    element("p", { class: "aside" }, "What each feature adds to the log-odds of ", named(classes[of]),
      `. An average row has ${short(base, 3)}, this row ${short(odds[odds.length === 1 ? 0 : of], 3)}.`),
    partsPicture(bars, classes.length === 2, of),
  ];
}

/** The place of the row on the curve of every line. */
function placesNodes({ classes, lines }, { projections }, limits) {
  const figures = lines.slice(0, MOST_PLACES).map((line) => element("figure", {},
    element("figcaption", {}, element("strong", {}, line.title), " ", element("bdi", {}, inTerms(line.terms))),
    linePicture(line, classes, limits, projections[line.number])));
  return figures.length ? [element("h3", {}, `The place of the row on ${lines.length > 1 ? "each line" : "the line"}`), element("div", { class: "grid" }, figures)] : [];
}

/** Bars of the parts of features. Of two classes, their sign means the class, so they have its colour. */
/** What a feature adds, short enough to stand beside its bar. */
const partText = (part) => (Math.abs(part) < 0.0005 ? "0" : (part > 0 ? "+" : "") + short(part, 2));

function partsPicture(bars, two, of) {
  const wide = 420, left = 190, high = 22 * bars.length + 4, ends = bars.map(({ part }) => part);
  const x = scale(Math.min(0, ...ends), Math.max(0, ...ends), left + 8, wide - 56);
  const style = (part) => (two ? sideStyle(Number(part > 0)) : part > 0 ? sideStyle(of) : "others");
  return picture(wide, high, "What each feature adds to the log-odds", bars.map(({ name, text, part }, i) => {
    const label = text === null ? name : `${shortened(name, 16)} = ${shortened(text, 10)}`;
    return svg("g", { class: `part ${style(part)}` }, svg("title", {}, `${name}${text === null ? "" : ` = ${text}`}: ${short(part)}`),
      svg("text", { x: left, y: 22 * i + 16, "text-anchor": "end" }, label),
      svg("rect", { x: Math.min(x(0), x(part)), y: 22 * i + 4, width: Math.max(1, Math.abs(x(part) - x(0))), height: 15 }),
      svg("text", { x: x(Math.max(0, part)) + 5, y: 22 * i + 16 }, partText(part)));
  }), svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: high }));
}

// ----------------------------------------------------------------------------------------------------- what would change it

function changeNodes(data, policy, row, free) {
  const { answers: model, fields, classes } = data, { x, values } = row;
  const odds = (changed) => oddsWith(oddsAt(model, projectionsOf(model, changed)), policy.code, policy.added());
  const decide = (changed) => codeOf(odds(changed));
  const allowed = allowedOf(fields, values, free, x.length);
  const nearest = nearestChange(model, x, allowed, decide, (own) => (changed) => leadOver(odds(changed), own));
  const heading = element("h3", {}, "Nearest change of class"), single = aloneNodes(data, row, allowed, decide);
  if (!nearest) {
    return [heading, element("p", {}, free.some(Boolean)
      ? "No change of the chosen features within the range of the data was found that changes the class."
      : "Choose features that may change."), single];
  }
  const moved = fields.map((field, i) => ({ field, from: values[i], to: nearest.row[field.feature] }))
    .filter(({ from, to }) => !Object.is(from, to))
    .sort((a, b) => size(b) - size(a));
  const rows = moved.slice(0, 6).map(({ field, from, to }) => [named(field.name), ...changed(field, from, to)]);
  const rest = moved.length > 6 ? `, and smaller changes of ${moved.length - 6} more features` : "";
  return [heading,
    element("p", {}, "It would be ", element("strong", {}, named(classes[nearest.code])),
      ` after this change${rest}, which is ${counted(short(nearest.distance, 3), "standard deviation")} long (another level counts as one):`),
    table(["feature", "from", "to"], rows), single];
}

/** The length of a change in standard deviations; another level counts one. */
const size = ({ field, from, to }) => (field.kind === "choice" ? 1 : Math.abs(to - from) / field.spread);

/** By how much the best other class is ahead of a row's own. */
function leadOver(odds, own) {
  const all = odds.length === 1 ? [0, odds[0]] : odds;
  return Math.max(...all.filter((_, k) => k !== own)) - all[own];
}

/** Two values as texts that differ. */
function changed(field, from, to) {
  if (field.choices.length || field.kind === "date") return [valueText(field, from), valueText(field, to)];
  for (let digits = 4; digits < 17; digits++) {
    if (short(from, digits) !== short(to, digits)) return [short(from, digits), short(to, digits)];
  }
  return [String(from), String(to)];
}

/** What one feature alone would have to be: looked for when it is asked for. */
function aloneNodes({ answers: model, fields, classes }, row, allowed, decide) {
  const details = element("details", {}, element("summary", {}, "One feature alone"));
  details.addEventListener("toggle", () => {
    const rows = fields.slice(0, FIELDS_AT_FIRST).flatMap((field, i) => aloneChanges(model, row, field.feature, allowed, decide)
      .map(({ row: to, code }) => [named(field.name), element("span", {}, "to ", changed(field, row.values[i], to[field.feature])[1]), named(classes[code])]));
    details.append(rows.length ? table(["feature", "change", "class"], rows)
      : element("p", {}, "No change of one feature alone leads to another class."));
  }, { once: true });
  return details;
}

/** The levels of a column that lead to another class, or the smallest change of a number that does. */
function aloneChanges(model, { x, code: own }, j, allowed, decide) {
  if (allowed[j]?.levels) {
    return allowed[j].levels.map(({ code }) => x.with(j, code)).map((row) => ({ row, code: decide(row) })).filter(({ code }) => code !== own).slice(0, 8);
  }
  if (!allowed[j]) return [];
  const spreads = allowed.map((each) => each?.spread ?? 0);
  const found = [1, -1].map((sign) => changeAlong(model, x, alone(spreads, j, sign), allowed, decide, own)).filter(Boolean);
  return found.sort((a, b) => a.distance - b.distance).slice(0, 1).map(({ row }) => ({ row, code: decide(row) }));
}
