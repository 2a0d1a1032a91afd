"use strict";
// Elements, numbers as text, scales and axes. Text is always set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** The width of a picture that fills the screen: less than `width` on a narrow one, so that its text stays legible. */
const roomFor = (width) => Math.min(width, Math.max(280, document.documentElement.clientWidth - 64));

/** An element with attributes and children; `on…` attributes are listeners, strings become text. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A name of a feature or class, isolated from the direction of the text around it. */
const named = (name) => element("bdi", { title: name.length > 40 ? name : null }, shortened(name, 40));

function shortened(name, most) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const end = Math.floor(most / 3);
  return letters.slice(0, most - end - 1).join("") + "…" + letters.slice(-end).join("");
}

/** A number with so many significant digits, short. */
function short(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) < 1e-300) return "0";
  const text = value.toPrecision(digits);
  const plain = text.includes("e") ? text.replace(/\.?0+e/, "e") : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return (/e[+-]\d$/.test(plain) && Math.abs(value) < 1e6 && Math.abs(value) >= 1 ? String(Math.round(value)) : plain).replace("-", "−");
}

/** A number as shown with a word, which has no plural if the number is shown as 1. */
const counted = (shown, word) => `${shown} ${word}${shown === "1" ? "" : "s"}`;
const whole = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (value) => (Number.isFinite(value) ? (100 * value).toFixed(1) + "%" : "–");
/** A text from Python with the minus signs of this page before numbers; dates and names keep their hyphens. */
const withSigns = (text) => text.replace(/(^|[\s(])-(?=[ ]?[\d.])/g, "$1−");
/** A sum with spaces that no line is broken at between a sign, its weight and the name. */
const inTerms = (text) => withSigns(text).replace(/([+−=]) (−?[\d.]\S*) /g, "$1\u00a0$2\u00a0");

/** A linear scale from numbers to places. */
function scale(low, high, from, to) {
  const span = high - low || 1;
  return Object.assign((value) => from + (value - low) / span * (to - from),
    { low, high, back: (place) => low + (place - from) / (to - from) * span });
}

/** Round numbers within a scale. */
function ticksOf({ low, high }, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) + 1e-300; k++) ticks.push(k * step);
  return ticks.map((tick) => (Math.abs(tick) < step / 1e6 ? 0 : tick));
}

const DAY = 86400000;
const dateOf = (days) => new Date(days * DAY).toISOString().slice(0, 10);

/** Places of the ticks of a line with their texts: numbers, dates, or the names of ranks (see melc/model/places.py). */
function ticksAlong(x, about, { kind, sign, labels } = { kind: "sum" }) {
  if (kind === "date") return dateTicks(...[sign * x.low, sign * x.high].sort((a, b) => a - b), about).map(([day, text]) => [sign * day, text]);
  if (kind !== "rank") return ticksOf(x, about).map((tick) => [tick, short(tick, 3)]);
  const step = Math.ceil(labels.length / about);
  return labels.map((label, i) => [sign * i, shortened(label, 14)]).filter(([z], i) => i % step === 0 && z >= x.low && z <= x.high);
}

/** First days of years or months between two days, or single days, with their texts. */
function dateTicks(low, high, about) {
  const months = (high - low) / 30.44 / about;
  if (months < 1) return ticksOf({ low, high }, Math.min(about, 4)).filter(Number.isInteger).map((day) => [day, dateOf(day)]);
  const step = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((n) => n >= months) ?? 2400;
  const ticks = [], first = new Date(low * DAY);
  let month = Math.floor((12 * first.getUTCFullYear() + first.getUTCMonth()) / step) * step;
  for (; ; month += step) {
    const day = Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY;
    if (!(day <= high)) return ticks;
    if (day >= low) ticks.push([day, dateOf(day).slice(0, step % 12 ? 7 : 4)]);
  }
}

/** The path through points; `breaks` lifts the pen. */
const pathOf = (xs, ys) => xs.map((x, i) => (i ? "L" : "M") + x.toFixed(1) + " " + ys[i].toFixed(1)).join("");

function horizontalAxis(x, y, label, about = 6, meaning = undefined) {
  const [from, to] = [x(x.low), x(x.high)];
  return svg("g", { class: "axis", "aria-hidden": "true" },
    svg("line", { x1: from, x2: to, y1: y, y2: y }),
    ticksAlong(x, about, meaning).map(([tick, text]) => [
      svg("line", { x1: x(tick), x2: x(tick), y1: y, y2: y + 4 }),
      svg("text", { x: x(tick), y: y + 16, "text-anchor": "middle" }, text),
    ]).flat(),
    label ? svg("text", { x: (from + to) / 2, y: y + 34, "text-anchor": "middle", class: "label" }, label) : null);
}

function verticalAxis(x, y, label, about = 4) {
  return svg("g", { class: "axis", "aria-hidden": "true" },
    ticksOf(y, about).map((tick) => [
      svg("line", { x1: x - 4, x2: x, y1: y(tick), y2: y(tick) }),
      svg("text", { x: x - 7, y: y(tick) + 4, "text-anchor": "end" }, short(tick, 3)),
    ]).flat(),
    svg("line", { x1: x, x2: x, y1: y(y.low), y2: y(y.high) }),
    label ? svg("text", { x: x - 38, y: (y(y.low) + y(y.high)) / 2, "text-anchor": "middle", class: "label",
      transform: `rotate(-90 ${x - 38} ${(y(y.low) + y(y.high)) / 2})` }, label) : null);
}

/** A picture with a title for those who cannot see it. */
function picture(width, height, title, ...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, ...children);
}

/** A table from texts and nodes; numbers are aligned by the class of their column. */
function table(head, rows, caption) {
  return element("div", { class: "scroll" }, element("table", {},
    caption ? element("caption", {}, caption) : null,
    element("thead", {}, element("tr", {}, head.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell, i) =>
      i ? element("td", {}, cell) : element("th", { scope: "row" }, cell)))))));
}

const N_COLOURS = 10;

/** The name of the style of a class: null stands for all other classes together. */
const sideStyle = (code) => (code === null ? "others" : `side${code % N_COLOURS}`);

/** A key of classes, given by their numbers. */
function key(sides, names) {
  return element("p", { class: "key" }, sides.map((code, i) =>
    element("span", {}, element("i", { class: `swatch ${sideStyle(code)}` }), named(names[i]))));
}

/** The density of a class, given by its number: a line and the area below it. */
function densityPath(xs, ys, ground, code, i) {
  const line = pathOf(xs, ys);
  return svg("g", { class: `density ${sideStyle(code)} dash${i % 2}` },
    svg("path", { class: "area", d: `${line}L${xs[xs.length - 1]} ${ground}L${xs[0]} ${ground}Z` }),
    svg("path", { class: "edge", d: line }));
}

/** Let a node of a drawing be dragged to a place, or moved by steps with the keys. */
function slidable(node, drawing, wide, to, by) {
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    node.focus({ preventScroll: true });
    node.setPointerCapture(event.pointerId);
    node.classList.add("dragged");
  });
  node.addEventListener("pointermove", (event) => {
    if (!node.hasPointerCapture(event.pointerId)) return;
    const box = drawing.getBoundingClientRect();
    to((event.clientX - box.left) / box.width * wide);
  });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => node.classList.remove("dragged"));
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e6, End: 1e6 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    by(step * (event.shiftKey ? 10 : 1));
  });
}

function setSlider(node, edges, value, text) {
  node.setAttribute("aria-valuemin", edges[0]);
  node.setAttribute("aria-valuemax", edges[edges.length - 1]);
  node.setAttribute("aria-valuenow", value);
  node.setAttribute("aria-valuetext", text);
}
