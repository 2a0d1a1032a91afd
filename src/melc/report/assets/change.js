"use strict";
// The nearest change of class: other levels of categories, and numbers within the range of the data, in whole steps if
// they are whole numbers. The meaning of a change is that of melc.explain.nearest_change.

const FARTHEST = 12;  // in standard deviations
const STEPS = 120;
const MOST_SINGLES = 12;  // numbers that are tried alone
const COARSE = 5;  // whole numbers with a smaller standard deviation have large steps
const FIRST_CHANGES = 3, MOST_LEVEL_CHANGES = 4;  // changes of one level before a second, and before numbers are moved

/** What may change in a row: for each column of the form null, or levels with what they cost, or a range of numbers. A
 * number that is missing stays missing, and one beyond the range may stay or move towards it. */
function allowedOf(fields, values, free, nFeatures) {
  const allowed = new Array(nFeatures).fill(null);
  fields.forEach((field, i) => {
    const from = values[i];
    if (!free[i] || !(field.spread > 0)) return;
    if (field.choices.length) {
      const step = (code) => (field.kind === "rank" && !Number.isNaN(from) ? Math.abs(code - from) / field.spread : 1);
      const codes = field.choices.filter(([name, code]) => code !== null && code !== from && name !== "(missing)" && name !== "(others)").map(([, code]) => code);
      allowed[field.feature] = { levels: codes.map((code) => ({ code, cost: step(code) })) };
    } else if (!Number.isNaN(from)) {
      allowed[field.feature] = { spread: field.spread, low: Math.min(field.low, from), high: Math.max(field.high, from), whole: field.whole };
    }
  });
  return allowed;
}

/** The smallest change that was found, or null. `decide` gives the code of a row's class. With one line, and numbers
 * that need not be whole, there is no smaller one. */
function nearestChange(model, x, allowed, decide, lead) {
  const own = decide(x);
  let best = null;
  for (const { row, cost } of [{ row: x, cost: 0 }, ...levelChanges(x, allowed, lead(own))]) {
    const found = decide(row) === own ? numberChange(model, row, allowed, decide, own) : { row, distance: 0 };
    const distance = found && Math.hypot(found.distance, cost);
    if (found && (!best || distance < best.distance)) best = { row: found.row, distance, code: decide(found.row) };
  }
  return best;
}

/** Rows with one level changed, or two, that lead farthest to another class, with what the changes cost. */
function levelChanges(x, allowed, lead) {
  const changes = (row, cost) => allowed.flatMap((each, j) => (each?.levels ?? []).map(({ code, cost: step }) => {
    const changed = row.with(j, code);
    return row[j] === x[j] ? { row: changed, cost: Math.hypot(cost, step), lead: lead(changed) } : null;
  })).filter(Boolean);
  const promise = (each) => (each.lead > 0 ? 1e6 - each.cost : each.lead), byPromise = (a, b) => promise(b) - promise(a);
  const singles = changes(x, 0).sort((a, b) => b.lead - a.lead);
  const pairs = singles.slice(0, FIRST_CHANGES).flatMap(({ row, cost }) => changes(row, cost));
  return [...singles, ...pairs].sort(byPromise).slice(0, MOST_LEVEL_CHANGES);
}

/** The smallest change of numbers along the steepest directions of all lines, and of each number alone. */
function numberChange(model, x, allowed, decide, own) {
  const spreads = allowed.map((each) => each?.spread ?? 0);
  // One step of such a whole number may be more than is needed, so they also stay as they are.
  const fine = allowed.map((each) => (each?.whole && each.spread < COARSE ? 0 : each?.spread ?? 0));
  const kinds = fine.some((spread, j) => spread !== spreads[j]) ? [spreads, fine] : [spreads];
  let best = null;
  for (const direction of [...kinds.flatMap((each) => model.lines.flatMap((line) => steepest(line, each))), ...singles(model, spreads)]) {
    const found = changeAlong(model, x, direction, allowed, decide, own);
    if (found && (!best || found.distance < best.distance)) best = found;
  }
  return best;
}

/** Directions of standardised length one, up and down, that are steepest for a line. */
function steepest({ weights }, spreads) {
  const raw = spreads.map((s, j) => s * s * weights[j]), length = Math.sqrt(spreads.reduce((sum, s, j) => sum + (s * weights[j]) ** 2, 0));
  return length > 0 ? [1, -1].map((sign) => raw.map((value) => sign * value / length)) : [];
}

/** Steps up and down of the numbers that move a projection most, one at a time. */
function singles(model, spreads) {
  const pulls = spreads.map((s, j) => Math.max(...model.lines.map(({ weights }) => Math.abs(s * weights[j]))));
  const strongest = pulls.map((_, j) => j).filter((j) => pulls[j] > 0).sort((a, b) => pulls[b] - pulls[a]).slice(0, MOST_SINGLES);
  return strongest.flatMap((j) => [1, -1].map((sign) => alone(spreads, j, sign)));
}

const alone = (spreads, j, sign) => spreads.map((spread, i) => (i === j ? sign * spread : 0));

/** The first change of class along a direction. Numbers that reach the end of their range stay there. */
function changeAlong(model, x, direction, allowed, decide, own) {
  const at = (t) => x.map((value, j) => (direction[j] ? Math.min(Math.max(value + t * direction[j], allowed[j].low), allowed[j].high) : value));
  const reach = Math.max(...x.map((value, j) => (direction[j] ? ((direction[j] > 0 ? allowed[j].high : allowed[j].low) - value) / direction[j] : 0)));
  const stops = stopsAlong(model, at, Math.min(reach, FARTHEST));
  const end = stops.findIndex((t) => decide(at(t)) !== own);
  if (end < 0) return null;
  let low = end ? stops[end - 1] : 0, high = stops[end];
  for (let n = 0; n < 60; n++) {
    const middle = (low + high) / 2;
    if (decide(at(middle)) === own) low = middle;
    else high = middle;
  }
  return inWholeSteps(x, at(beyond(high)), allowed, decide, own);
}

/** A little beyond a boundary, so that the class has changed in spite of rounding. */
const beyond = (distance) => distance * (1 + 1e-9) + 1e-12;

/** Distances at which the class is looked at: small steps first, and just beyond each knot of an only line, so that no
 * interval is passed over. */
function stopsAlong(model, at, reach) {
  const stops = Array.from({ length: STEPS }, (_, i) => reach * ((i + 1) / STEPS) ** 2);
  if (model.lines.length > 1 || model.lines[0].reads !== null) return stops;
  const z = (t) => projectionsOf(model, at(t))[0], from = z(0), to = z(reach);
  for (const threshold of model.lines[0].thresholds) {
    if ((threshold - from) * (threshold - to) >= 0) continue;
    let low = 0, high = reach;
    for (let n = 0; n < 60; n++) {
      const middle = (low + high) / 2;
      if ((z(middle) - from) / (threshold - from) < 1) low = middle;
      else high = middle;
    }
    stops.push(high * (1 + 1e-9));
  }
  return stops.sort((a, b) => a - b);
}

/** A changed row with whole numbers where there must be, and as little change of them as is needed; null if the class
 * is then the same. */
function inWholeSteps(x, row, allowed, decide, own) {
  const isWhole = (j) => allowed[j]?.whole && row[j] !== x[j];
  const whole = row.map((value, j) => (isWhole(j) ? roundedAway(value, x[j], allowed[j]) : value));
  if (decide(whole) === own) return null;
  const steps = whole.map((_, j) => j).filter(isWhole).sort((a, b) => Math.abs(whole[a] - x[a]) / allowed[a].spread - Math.abs(whole[b] - x[b]) / allowed[b].spread);
  for (const j of steps) if (decide(whole.with(j, x[j])) !== own) whole[j] = x[j];
  const back = (part) => whole.map((value, j) => (isWhole(j) ? value : x[j] + part * (value - x[j])));
  if (!steps.length) return changedRow(x, whole, allowed);
  let low = 0, high = 1;
  if (decide(back(0)) !== own) return changedRow(x, back(0), allowed);
  for (let n = 0; n < 40; n++) {
    const middle = (low + high) / 2;
    if (decide(back(middle)) === own) low = middle;
    else high = middle;
  }
  return changedRow(x, back(beyond(high)), allowed);
}

function roundedAway(value, from, { low, high }) {
  const rounded = value > from ? Math.ceil(value) : Math.floor(value);
  return rounded > high ? Math.max(Math.floor(high), from) : rounded < low ? Math.min(Math.ceil(low), from) : rounded;
}

const changedRow = (x, row, allowed) =>
  ({ row, distance: Math.hypot(...row.map((value, j) => (value === x[j] || Number.isNaN(value) ? 0 : (value - x[j]) / allowed[j].spread))) });
