// The history of a table as bars, one for each version: rows or bytes, data against maintenance.

import { h, replace, svg } from "./dom.js";
import { bytes, change, exact, number, short } from "./format.js";

const HEIGHT = 190;
const TOP = 22;
const BOTTOM = 24;
const LEFT = 52;
const BAR = 13;
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
  const width = LEFT + entries.length * BAR + 8;
  const most = Math.max(...entries.map((entry) => entry[measure]), 1);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const bars = entries.map((entry, index) => bar(entry, entries[index - 1], index, y, entry.version === selected));
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" },
    axis(most, y, width),
    bars,
    labels(entries),
  );
  const box = h("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": "Versions", "aria-valuemin": entries[0].version, "aria-valuemax": entries.at(-1).version }, drawing);
  follow(box, entries, selected, bars, choose, says);
  window.requestAnimationFrame(() => (box.scrollLeft = box.scrollWidth));
  return box;
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

function bar(entry, before, index, y, selected) {
  const value = entry[measure];
  const known = before && before.version === entry.version - 1;
  const base = entry.maintenance ? value : Math.min(known ? before[measure] : index ? value : 0, value);
  const left = LEFT + index * BAR;
  const rect = (from, to, kind) =>
    from === to ? null : svg("rect", { class: kind, x: left + 1.5, width: BAR - 3, y: y(to), height: y(from) - y(to), rx: 1.5 });
  const kind = entry.maintenance ? "maintenance" : "before";
  return svg(
    "g",
    { class: selected ? "bar selected" : "bar" },
    svg("rect", { class: "hit", x: left, y: 0, width: BAR, height: HEIGHT }),
    rect(0, base, kind),
    rect(base, value, entry.maintenance ? kind : "new"),
    entry.tags.length ? svg("circle", { class: "pinned", cx: left + BAR / 2, cy: y(value) - 8, r: 3.2 }) : null,
  );
}

function axis(most, y, width) {
  const says = MEASURES[measure][1];
  return Array.from({ length: LINES + 1 }, (_, line) => (most * line) / LINES).map((value) =>
    svg(
      "g",
      { class: "axis" },
      svg("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, says(value)),
    ),
  );
}

function labels(entries) {
  const step = Math.max(5, Math.ceil(entries.length / 12));
  return entries
    .map((entry, index) => [entry, index])
    .filter(([, index]) => (entries.length - 1 - index) % step === 0)
    .map(([entry, index]) =>
      svg("text", { class: "label", x: LEFT + index * BAR + BAR / 2, y: HEIGHT - 6, "text-anchor": "middle" }, String(entry.version)),
    );
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
