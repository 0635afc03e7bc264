// Parts that several views use.

import { h, replace } from "./dom.js";
import { ago, exact } from "./format.js";

export const time = (iso) => (iso ? h("time", { datetime: iso, title: exact(iso) }, ago(iso)) : null);

export const chip = (text, kind = "", title = null) => h("span", { class: `chip ${kind}`, title }, text);

export const empty = (text) => h("p", { class: "quiet" }, text);

/** The heading of a column of numbers. */
export const count = (text) => ({ text, kind: "number" });

/** A table from headings (texts, or `count`s) and rows, which are lists of cells, or `{cells, properties}`. */
export function grid(caption, headings, rows) {
  const columns = headings.map((heading) => (heading.text === undefined ? { text: heading } : heading));
  const cells = (row) => row.map((cell, index) => h("td", { class: columns[index].kind }, cell ?? ""));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map(({ text, kind }) => h("th", { scope: "col", class: kind }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", row.properties ?? {}, cells(row.cells ?? row)))),
    ),
  );
}

/** A button that reads the next page each time, and disappears with the last one. */
export function more(text, read) {
  const button = h("button", { type: "button", class: "more" }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      if (!(await read())) button.remove();
    } catch (error) {
      button.after(h("p", { class: "failure", role: "alert" }, error.message));
    }
    button.disabled = false;
  });
  return button;
}

/** Tabs whose panels are read when they are opened for the first time. */
export function tabs(label, panels) {
  const buttons = panels.map(([name], index) =>
    h("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": `panel-${index}` }, name),
  );
  const boxes = panels.map((_, index) =>
    h("div", { role: "tabpanel", id: `panel-${index}`, "aria-labelledby": `tab-${index}`, tabindex: "0" }),
  );
  const opened = new Set();
  const open = (chosen) => {
    buttons.forEach((button, index) => {
      button.setAttribute("aria-selected", String(index === chosen));
      button.tabIndex = index === chosen ? 0 : -1;
      boxes[index].hidden = index !== chosen;
    });
    if (!opened.has(chosen)) load(boxes[chosen], panels[chosen][1]);
    opened.add(chosen);
  };
  buttons.forEach((button, index) => {
    button.addEventListener("click", () => open(index));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (index + step + buttons.length) % buttons.length;
      open(next);
      buttons[next].focus();
    });
  });
  open(0);
  return h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": label }, buttons), boxes);
}

async function load(box, read) {
  replace(box, empty("Reading…"));
  try {
    replace(box, await read());
  } catch (error) {
    replace(box, h("p", { class: "failure", role: "alert" }, error.message));
  }
}
