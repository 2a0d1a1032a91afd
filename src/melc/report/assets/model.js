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

/** What the model says at given projections: log-odds, probabilities and the code of the class. */
function answerAt(model, projections) {
  const odds = oddsAt(model, projections);
  return { projections, odds, code: codeOf(odds), probabilities: probabilitiesOf(odds) };
}

const logistic = (x) => x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x));

function probabilitiesOf(odds) {
  if (odds.length === 1) return [logistic(-odds[0]), logistic(odds[0])];
  const most = Math.max(...odds), each = odds.map((value) => Math.exp(value - most));
  const total = each.reduce((a, b) => a + b, 0);
  return each.map((p) => p / total);
}

// ------------------------------------------------------------------------------------------ the nearest change of class

const FARTHEST = 8;  // in standard deviations
const STEPS = 80;
const MOST_SINGLES = 12;  // features that are tried alone

/** The smallest step along a direction of the features (per standardised unit) that changes the class; null if none. */
function changeAlong(model, projections, direction) {
  const own = classAt(model, projections);
  const slopes = model.lines.map(({ weights }) => direction.reduce((sum, d, j) => sum + d * weights[j], 0));
  if (slopes.every((slope) => slope === 0)) return null;
  const at = (t) => classAt(model, projections.map((z, k) => z + t * slopes[k]));
  for (let i = 1; i <= STEPS; i++) {
    const end = FARTHEST * (i / STEPS) ** 2;  // small steps first
    if (at(end) === own) continue;
    let low = FARTHEST * ((i - 1) / STEPS) ** 2, high = end;
    for (let n = 0; n < 50; n++) {
      const middle = (low + high) / 2;
      if (at(middle) === own) low = middle;
      else high = middle;
    }
    return { distance: high, code: at(high) };
  }
  return null;
}

/** Directions of standardised length one that are steepest for a line, if only the features with a spread may change. */
function steepest(line, spreads) {
  const raw = spreads.map((s, j) => s * s * line.weights[j]);
  const length = Math.sqrt(spreads.reduce((sum, s, j) => sum + (s * line.weights[j]) ** 2, 0));
  return length > 0 ? raw.map((value) => value / length) : null;
}

/**
 * The smallest standardised change of the features with a spread that changes the class.
 *
 * Exact for one line: the class depends on its projection only. With several lines, the smallest along the steepest
 * directions of all lines and along each feature alone.
 */
function nearestChange(model, x, spreads) {
  const projections = projectionsOf(model, x);
  const own = classAt(model, projections);
  let best = null;
  const consider = (direction, found) => {
    if (found && (!best || found.distance < best.distance)) best = { ...found, direction };
  };
  const exact = model.lines.length === 1;
  for (const line of model.lines) {
    const up = steepest(line, spreads);
    if (!up) continue;
    for (const direction of [up, up.map((d) => -d)]) {
      consider(direction, exact ? changeOnLine(line, projections[0], direction) : changeAlong(model, projections, direction));
    }
  }
  if (!exact) for (const direction of singles(model, spreads)) consider(direction, changeAlong(model, projections, direction));
  return best && settled(model, x, best, own);
}

/** Steps up and down of the features that move a projection most, one at a time. */
function singles(model, spreads) {
  const pulls = spreads.map((s, j) => Math.max(...model.lines.map(({ weights }) => Math.abs(s * weights[j]))));
  const strongest = pulls.map((_, j) => j).filter((j) => pulls[j] > 0).sort((a, b) => pulls[b] - pulls[a]).slice(0, MOST_SINGLES);
  return strongest.flatMap((j) => [1, -1].map((sign) => spreads.map((_, i) => (i === j ? sign * spreads[j] : 0))));
}

/** The distance to the nearest threshold in a direction: there the class changes. */
function changeOnLine(line, z, direction) {
  const slope = direction.reduce((sum, d, j) => sum + d * line.weights[j], 0);
  const distances = Array.from(line.thresholds, (t) => (t - z) / slope).filter((distance) => distance >= 0);
  return distances.length ? { distance: Math.min(...distances) } : null;
}

/** The changed row: a little beyond the boundary, so that the class has changed in spite of rounding. */
function settled(model, x, { distance, direction }, own) {
  for (let over = 1e-12; over < 0.1; over *= 10) {
    const step = distance * (1 + over) + over * 1e-3;
    const row = x.map((value, j) => value + step * direction[j]);
    const code = classAt(model, projectionsOf(model, row));
    if (code !== own) return { row, code, distance: step };
  }
  return null;
}
