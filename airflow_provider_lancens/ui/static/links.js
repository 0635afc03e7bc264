// Links inside the page, and out of it to Airflow's own pages.

import { h } from "./dom.js";

const embedded = window.parent !== window;

/** The page's address for some parameters; empty ones are left out. */
export function address(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `?${new URLSearchParams(given)}`.replaceAll("+", "%20");
}

/** The parameters of the page's address. A plus is itself: Airflow 3.1 doesn't encode it in the id of a run. */
export function parameters() {
  return Object.fromEntries(new URLSearchParams(window.location.search.replaceAll("+", "%2B")));
}

/** A link to another view of this page. */
export function inside(parameters, text, properties = {}) {
  return h("a", { href: address(parameters), "data-inside": true, ...properties }, text);
}

/** A link to one of Airflow's pages, which replaces all of Airflow's window where this page is a part of it. */
export function airflow(path, text, properties = {}) {
  return h("a", { href: `../${path}`, onclick: embedded ? leave : null, ...properties }, text);
}

export function taskLink(task) {
  const { dag_id: dag, run_id: run, task_id: id, map_index: index } = task;
  const mapped = index >= 0 ? `/mapped/${index}` : "";
  const path = `dags/${enc(dag)}/runs/${enc(run)}/tasks/${enc(id)}${mapped}`;
  const name = `${dag} › ${id}${index >= 0 ? `[${index}]` : ""}`;
  return h("span", { class: "task" }, airflow(path, name), h("small", { title: "Run" }, run));
}

export const dagLink = (dag) => airflow(`dags/${enc(dag)}`, dag);

export function login() {
  const next = embedded ? window.parent.location.href : window.location.href;
  return airflow(`auth/login?next=${enc(next)}`, "Log in");
}

// The sandbox of an embedded page can't navigate Airflow's window, but Airflow's own document can.
function leave(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const link = window.parent.document.createElement("a");
  link.href = event.currentTarget.href;
  link.click();
}

const enc = encodeURIComponent;
