// The history of a table as bars, one for each version: rows or bytes, data against maintenance.

import { h, replace, svg } from "./dom.js";
import { bytes, change, exact, number, short } from "./format.js";

const HEIGHT = 190;
const TOP = 22;
const BOTTOM = 24;
const AXIS = 56;
const NARROWEST = 13;
const WIDEST = 72;
const AROUND = 90;
const LINES = 4;
const MEASURES = { rows: ["Rows", short, number], bytes: ["Size", bytes, bytes] };
let measure = "rows";

/** A figure of the versions (newest first) that are loaded; `choose` is called with the one that is clicked. */
export function chart(entries, selected, choose) {
  const oldestFirst = [...entries].reverse();
  const figure = h("figure", { class: "chart" });
  const says = h("p", { class: "says", "aria-live": "polite" });
  const draw = () => replace(figure, legend(draw), picture(oldestFirst, selected, choose, says), says);
  draw();
  describe(says, oldestFirst, indexOf(oldestFirst, selected));
  return figure;
}

function legend(draw) {
  const button = (key) =>
    h("button", { type: "button", "aria-pressed": String(measure === key), onclick: () => { measure = key; draw(); } }, MEASURES[key][0]);
  const mark = (kind, text) => h("span", { class: `mark ${kind}` }, text);
  return h(
    "figcaption",
    {},
    h("span", { class: "switch", role: "group", "aria-label": "Measure" }, Object.keys(MEASURES).map(button)),
    mark("new", "added by the version"),
    mark("before", "there before"),
    mark("maintenance", "maintenance"),
    mark("pinned", "tagged"),
  );
}

function picture(entries, selected, choose, says) {
  const most = ceiling(Math.max(...entries.map((entry) => entry[measure]), LINES));
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const room = document.body.clientWidth - AROUND - AXIS;
  const step = Math.max(NARROWEST, Math.min(WIDEST, room / entries.length));
  const width = Math.max(entries.length * step, room);
  const bars = entries.map((entry, index) => bar(entry, entries[index - 1], index * step, step, y, entry.version === selected));
  const box = h(
    "div",
    {
      class: "plot",
      tabindex: "0",
      role: "slider",
      "aria-label": "Versions",
      "aria-valuemin": entries[0].version,
      "aria-valuemax": entries.at(-1).version,
    },
    drawing(width, lines(most, y, width), bars, labels(entries, step)),
  );
  follow(box, entries, selected, bars, choose, says);
  window.requestAnimationFrame(() => (box.scrollLeft = box.scrollWidth));
  return h("div", { class: "plotted" }, drawing(AXIS, scale(most, y)), box);
}

const drawing = (width, ...parts) =>
  svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" }, parts);

// The next number that is round for people and divides into the lines.
function ceiling(most) {
  const unit = 10 ** Math.floor(Math.log10(most / LINES));
  const round = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * unit * LINES >= most);
  return round * unit * LINES;
}

// With the pointer or the arrow keys.
function follow(box, entries, selected, bars, choose, says) {
  let current = indexOf(entries, selected);
  const point = (index) => {
    bars[current]?.classList.remove("current");
    current = Math.max(0, Math.min(index, entries.length - 1));
    bars[current].classList.add("current");
    box.setAttribute("aria-valuenow", entries[current].version);
    box.setAttribute("aria-valuetext", text(entries, current));
    describe(says, entries, current);
  };
  box.setAttribute("aria-valuenow", entries[current].version);
  box.setAttribute("aria-valuetext", text(entries, current));
  bars.forEach((one, index) => {
    one.addEventListener("pointerenter", () => point(index));
    one.addEventListener("click", () => choose(entries[index].version));
  });
  box.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) point(to);
    else if (event.key === "Enter") choose(entries[current].version);
    else return;
    event.preventDefault();
  });
}

function bar(entry, before, left, step, y, selected) {
  const value = entry[measure];
  const base = entry.maintenance ? value : Math.min(kept(entry, before), value);
  const gap = step / 8;
  const rect = (from, to, kind) =>
    from === to ? null : svg("rect", { class: kind, x: left + gap, width: step - 2 * gap, y: y(to), height: y(from) - y(to), rx: 1.5 });
  return svg(
    "g",
    { class: selected ? "bar selected" : "bar" },
    svg("rect", { class: "hit", x: left, y: 0, width: step, height: HEIGHT }),
    rect(0, base, entry.maintenance ? "maintenance" : "before"),
    rect(base, value, "new"),
    entry.tags.length ? svg("circle", { class: "pinned", cx: left + step / 2, cy: y(value) - 8, r: 3.2 }) : null,
  );
}

// What was there before; all of it where the version before isn't known.
function kept(entry, before) {
  if (entry.version === 1) return 0;
  return before?.version === entry.version - 1 ? before[measure] : entry[measure];
}

const ticks = (most) => Array.from({ length: LINES + 1 }, (_, line) => (most * line) / LINES);

const lines = (most, y, width) => ticks(most).map((value) => svg("line", { class: "line", x1: 0, x2: width, y1: y(value), y2: y(value) }));

const scale = (most, y) =>
  ticks(most).map((value) => svg("text", { x: AXIS - 8, y: y(value) + 4, "text-anchor": "end" }, MEASURES[measure][1](value)));

function labels(entries, step) {
  const every = Math.max(1, Math.ceil(48 / step));
  return entries
    .map((entry, index) => [entry, index])
    .filter(([, index]) => (entries.length - 1 - index) % every === 0)
    .map(([entry, index]) => svg("text", { x: (index + 0.5) * step, y: HEIGHT - 6, "text-anchor": "middle" }, String(entry.version)));
}

const indexOf = (entries, version) => {
  const found = entries.findIndex((entry) => entry.version === version);
  return found < 0 ? entries.length - 1 : found;
};

const describe = (says, entries, index) => replace(says, text(entries, index));

function text(entries, index) {
  const entry = entries[index];
  const before = entries[index - 1];
  const [, , full] = MEASURES[measure];
  const delta = before?.version === entry.version - 1 ? change(entry[measure] - before[measure], full) : "";
  const unit = measure === "rows" ? " rows" : "";
  const what = entry.maintenance ? `${entry.operation}, maintenance` : entry.operation;
  const maker = entry.task ? ` by ${entry.task.dag_id} › ${entry.task.task_id}` : "";
  return `Version ${entry.version}: ${full(entry[measure])}${unit}${delta ? ` (${delta})` : ""}, ${what}${maker}, ${exact(entry.created)}`;
}
