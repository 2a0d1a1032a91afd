"use strict";
// The model: from the numbers of a row to projections, odds, probabilities and a class, as `predict` computes them.
// Nothing in this file touches the page.

/** The data of the page with its arrays in their places: `{"$": i}` stands for array i. */
function resolved(value, arrays) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((each) => resolved(each, arrays));
  if ("$" in value) return arrays[value.$];
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolved(each, arrays)]));
}

/** An array of numbers from base64 of little-endian doubles. */
function arrayFrom(stored) {
  const view = new DataView(Uint8Array.from(atob(stored), (character) => character.charCodeAt(0)).buffer);
  return Float64Array.from({ length: view.byteLength / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/** Index of the first of ascending numbers that is not below t. */
function notBelow(sorted, t) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The curve of a line: straight between knots, constant beyond the outermost; NaN stands for a missing value. As in melc/model/curve.py, it is computed
 * from the end of the piece at which it is nearer to zero, so that rounding does not change its sign. */
function curveAt({ knots, log_odds: values, missing }, z) {
  if (Number.isNaN(z)) return missing;
  const above = countNotAbove(knots, z), below = above - 1;
  if (above === 0) return values[0];
  if (above === knots.length) return values[below];
  const anchor = Math.abs(values[below]) <= Math.abs(values[above]) ? below : above;
  const slope = (values[above] - values[below]) / (knots[above] - knots[below]);
  return values[anchor] + slope * (z - knots[anchor]);
}

/** Number of ascending numbers at or below z: of thresholds, the interval of z. */
function countNotAbove(sorted, z) {
  let i = notBelow(sorted, z);
  while (i < sorted.length && sorted[i] === z) i++;
  return i;
}

/** What a line of several columns reads of a column: the score of a level, or a number, missing ones at their place. */
function quantityOf({ scores, place }, value) {
  if (scores) return Number.isNaN(value) ? 0 : scores[value];
  return Number.isNaN(value) ? place : value;
}

/** The projections of a row on all lines; `x` holds the coded values of the columns of the form, in their order. A line
 * that reads a single column has its value as it is, NaN if it is missing. */
function projectionsOf(model, x) {
  const quantities = x.map((value, j) => quantityOf(model.columns[j], value));
  return model.lines.map(({ weights, rest, reads }) => {
    if (reads !== null) return x[reads];
    let z = rest;
    for (let j = 0; j < x.length; j++) z += quantities[j] * weights[j];
    return Number.isNaN(z) ? 0 : Math.min(Math.max(z, -Number.MAX_VALUE), Number.MAX_VALUE);
  });
}

/** What each line adds, at given projections, to the log-odds of the second of two classes, or of one of more. */
function addsAt(model, projections, code) {
  const { curves } = model.log_odds[model.log_odds.length === 1 ? 0 : code];
  return curves.map((curve, k) => curveAt(curve, projections[k]));
}

/** Log-odds of the second of two classes, or of each of more, at given projections. */
function oddsAt(model, projections) {
  return model.log_odds.map(({ constant }, code) => addsAt(model, projections, code).reduce((a, b) => a + b, 0) + constant);
}

const codeOf = (odds) => (odds.length === 1 ? Number(odds[0] > 0) : odds.indexOf(Math.max(...odds)));
const classAt = (model, projections) => codeOf(oddsAt(model, projections));

const logistic = (x) => x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x));

function probabilitiesOf(odds) {
  if (odds.length === 1) return [logistic(-odds[0]), logistic(odds[0])];
  const most = Math.max(...odds), each = odds.map((value) => Math.exp(value - most));
  const total = each.reduce((a, b) => a + b, 0);
  return each.map((p) => p / total);
}

/** The parts of the columns of the form in the log-odds of the second of two classes, or of one of more: integrated
 * gradients from the mean of the training rows, as melc/explain/parts.py computes them. `base` are the log-odds of the
 * mean, and `others` is the part of all columns without a field. */
function partsOf(model, x, code) {
  const { constant, curves } = model.log_odds[model.log_odds.length === 1 ? 0 : code];
  const z = projectionsOf(model, x), deviations = x.map((value, j) => quantityOf(model.columns[j], value) - model.columns[j].mean);
  const found = { base: constant, parts: x.map(() => 0), others: 0 };
  curves.forEach((curve, k) => {
    const { weights, reads, centre } = model.lines[k], gain = curveAt(curve, z[k]) - curve.there;
    found.base += curve.there;
    if (reads !== null) {
      found.parts[reads] += gain;
      return;
    }
    const each = deviations.map((deviation, j) => weights[j] * deviation), step = z[k] - centre;
    const apart = Math.abs(step) > 1e-11 * each.reduce((sum, part) => sum + Math.abs(part), 0);
    const slope = apart ? gain / step : 0;
    each.forEach((part, j) => { found.parts[j] += slope * part; });
    found.others += gain - slope * each.reduce((sum, part) => sum + part, 0);
  });
  return found;
}
