// View of the tables that a DAG run or a task used.

import { read } from "./api.js";
import { h, replace } from "./dom.js";
import { inside } from "./links.js";
import { chip, empty, grid } from "./parts.js";

const SAYS = { made: "made", returned: "read", skipped: "nothing written", used: "" };

export async function showRun(page, { dag_id, run_id, task_id }) {
  const { tables } = await read("run", { dag_id, run_id, task_id });
  const whose = task_id ? `task ${task_id}` : "this run";
  const headings = [...(task_id ? [] : ["Task"]), "Table", "Version", "Connection"];
  const rows = tables.map((one) => [...(task_id ? [] : [one.task_id]), table(one), version(one), one.conn]);
  const found = tables.length ? grid(`Tables of ${whose}`, headings, rows) : empty(`No Lance table is known of ${whose}.`);
  replace(page, h("h1", {}, task_id ? "Lance tables of this task" : "Lance tables of this run"), found);
}

const table = ({ conn, table: name, version }) => inside({ conn, table: name, version }, name);

const version = ({ version: value, what }) =>
  value === null ? null : h("span", {}, String(value), " ", chip(SAYS[what], what));
