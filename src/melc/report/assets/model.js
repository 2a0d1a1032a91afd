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

/** An array of numbers: one number repeated, or base64 of little-endian doubles. */
function arrayFrom(stored) {
  if (typeof stored !== "string") return new Float64Array(stored[1]).fill(stored[0]);
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

/** Number of thresholds at or below z: the interval of z. */
function intervalOf(thresholds, z) {
  let n = 0;
  for (const t of thresholds) n += z >= t;
  return n;
}

/** A density with what every evaluation needs. */
function densityFrom({ support: places, weights: masses, variance }) {
  let lightest = Infinity, heaviest = 0;
  for (const mass of masses) { lightest = Math.min(lightest, mass); heaviest = Math.max(heaviest, mass); }
  return { places, masses, exponents: 40 + Math.log(heaviest / lightest), scale: Math.sqrt(0.5) / Math.sqrt(variance),
    constant: 0.5 * Math.log(2 * Math.PI * variance) };
}

/** log f(t). Finite everywhere: the exponent of the nearest support point is taken out, as in melc/kernels/pairs.py. */
function logDensity({ places, masses, exponents, scale, constant }, t) {
  const n = places.length, right = notBelow(places, t);
  let closest = Math.min(right, n - 1);
  if (right > 0 && (right === n || t - places[right - 1] < places[right] - t)) closest = right - 1;
  const nearest = Math.abs(t - places[closest]), exponent = (nearest * scale) ** 2;
  const reach = Math.sqrt(exponent + exponents) / scale;
  const first = Math.min(closest, notBelow(places, t - reach));
  const last = Math.max(closest + 1, notBelow(places, t + reach));
  let total = 0;
  for (let k = first; k < last; k++) {
    const far = Math.abs(t - places[k]);
    total += masses[k] * Math.exp(-((far - nearest) * scale) * ((far + nearest) * scale));
  }
  return Math.log(total) - exponent - constant;
}

const SMALLEST_DECISION = 1e-15;

/** log(1 + exp(x)) without overflow. */
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** log f₁ − log f₀ + log prior ratio, as far as the densities are finite. */
function logRatio(line, z, logPriors = line.log_priors) {
  const t = Math.min(Math.max(z, line.reach[0]), line.reach[1]);
  return logDensity(line.densities[1], t) + logPriors[1] - logDensity(line.densities[0], t) - logPriors[0];
}

/** Log-odds of the second class, or of a class against the rest, at a projection: `Decision.log_odds`. */
function logOdds(line, z) {
  const t = Math.min(Math.max(z, line.reach[0]), line.reach[1]);
  const [centre, scale, logHeight] = line.background;
  const background = logHeight - 2 * Math.log(Math.hypot(1, (t - centre) / scale));
  const first = logDensity(line.densities[0], t) + line.log_priors[0] - background;
  const second = logDensity(line.densities[1], t) + line.log_priors[1] - background;
  const sign = line.codes[intervalOf(line.thresholds, z)] === 1 ? 1 : -1;
  const least = SMALLEST_DECISION * (1 + Math.log1p(Math.max(sign * (second - first), 0)));
  return sign * Math.max(sign * (softplus(second) - softplus(first)), least);
}

/** The curve of a line of an additive model: straight between knots, constant beyond the outermost. */
function curveAt({ knots, log_odds: values }, z) {
  const last = knots.length - 1;
  if (z <= knots[0]) return values[0];
  if (z >= knots[last]) return values[last];
  const i = countNotAbove(knots, z) - 1;
  return (values[i + 1] - values[i]) / (knots[i + 1] - knots[i]) * (z - knots[i]) + values[i];
}

/** Number of ascending numbers at or below z. */
function countNotAbove(sorted, z) {
  let i = notBelow(sorted, z);
  while (i < sorted.length && sorted[i] === z) i++;
  return i;
}

/** The model in the data of the page, ready to answer. */
function modelFrom(answers, nClasses) {
  const lines = answers.additive ? answers.lines
    : answers.lines.map((line) => ({ ...line, densities: line.densities.map(densityFrom) }));
  return { ...answers, lines, nClasses };
}

/** The projections of a row on all lines; `x` holds the features of the form, in their order. */
function projectionsOf(model, x) {
  return model.lines.map(({ weights, rest }) => {
    let z = rest;
    for (let j = 0; j < x.length; j++) z += x[j] * weights[j];
    return Number.isNaN(z) ? 0 : Math.min(Math.max(z, -Number.MAX_VALUE), Number.MAX_VALUE);
  });
}

/** What the model says at given projections: log-odds, probabilities and the code of the class. */
function answerAt(model, projections) {
  const odds = model.additive ? additiveOdds(model, projections)
    : model.lines.map((line, k) => logOdds(line, projections[k]));
  return { projections, odds, code: codeOf(model, projections, odds), probabilities: probabilitiesOf(odds) };
}

function additiveOdds(model, projections) {
  const odds = model.intercept.slice();
  const sums = odds.map(() => 0);
  model.lines.forEach((line, k) => { sums[model.nClasses === 2 ? 0 : line.class_index] += curveAt(line, projections[k]); });
  return odds.map((intercept, k) => sums[k] + intercept);
}

function codeOf(model, projections, odds) {
  if (model.nClasses > 2) return odds.indexOf(Math.max(...odds));
  if (model.additive) return odds[0] > 0 ? 1 : 0;
  const line = model.lines[0];
  return line.codes[intervalOf(line.thresholds, projections[0])];
}

/** The class alone, at given projections: of two classes without the densities. */
function classAt(model, projections) {
  if (model.nClasses === 2 && !model.additive) return codeOf(model, projections, null);
  return answerAt(model, projections).code;
}

const logistic = (x) => x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x));

function probabilitiesOf(odds) {
  if (odds.length === 1) return [logistic(-odds[0]), logistic(odds[0])];
  const each = odds.map(logistic), total = each.reduce((a, b) => a + b, 0);
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
  const exact = model.lines.length === 1 && !model.additive;
  for (const line of model.lines) {
    const up = steepest(line, spreads);
    if (!up) continue;
    for (const direction of [up, up.map((d) => -d)]) {
      consider(direction, exact ? changeOnLine(line, projections[0], direction, own) : changeAlong(model, projections, direction));
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

function changeOnLine(line, z, direction, own) {
  const slope = direction.reduce((sum, d, j) => sum + d * line.weights[j], 0);
  const distances = Array.from(line.thresholds, (t) => (t - z) / slope).filter((distance) => distance >= 0);
  return distances.length ? { distance: Math.min(...distances), code: 1 - own } : null;
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
