// View of one table: its newest version, its history as a picture, who waits for it, and what it needs.

import { read } from "./api.js";
import { chart } from "./chart.js";
import { h, replace } from "./dom.js";
import { bytes, change, exact, number, sentence } from "./format.js";
import { dagLink, taskLink } from "./links.js";
import { chip, count, empty, grid, more, tabs, time } from "./parts.js";

const LEVELS = { problem: "Problem", warning: "Warning", ok: "OK" };
const HEADINGS = [
  count("Version"),
  "Committed",
  count("Rows"),
  count("Change"),
  count("Size"),
  "What",
  "By",
  "Key",
  "Tags",
];

export async function showTable(page, { conn, table, version }) {
  const params = { conn, table };
  let details, history;
  try {
    [details, history] = await Promise.all([read("table", params), read("versions", params)]);
  } catch (error) {
    const waiting = error.status === 404 ? await waitsPanel(params).catch(() => null) : null;
    if (!waiting) throw error; // it isn't the table that is missing
    replace(page, ...missingTable(params, error, waiting));
    return;
  }
  const panels = [
    ["Versions", () => versionsPanel(params, history, Number(version))],
    ["Waiting", () => waitsPanel(params)],
    ["Health", () => healthPanel(params)],
    ["Schema", () => schemaPanel(details)],
    ...(details.sample ? [["Rows", () => samplePanel(params)]] : []),
  ];
  replace(page, title(table, details), facts(details, history.versions[0]), tabs(`Of table ${table}`, panels));
}

function missingTable(params, error, waiting) {
  return [
    h("h1", {}, params.table.split("$").at(-1)),
    h("div", { class: "failure", role: "alert" }, h("p", {}, error.message)),
    tabs(`Of table ${params.table}`, [["Waiting", () => waiting]]),
  ];
}

function title(table, { managed, version, freshness }) {
  const authority = managed
    ? chip("metastore decides versions", "managed", "managed_by=impl: commits are made by compare-and-set")
    : chip("storage decides versions", "", "managed_by=storage");
  const written = version ? null : chip("nothing written yet", "warning");
  const late = freshness?.late ? chip("no new data", "warning", sentence(freshness.text)) : null;
  return h("div", { class: "title" }, h("h1", {}, table.split("$").at(-1)), authority, written, late);
}

function facts(details, newest) {
  const fact = (name, value) => (value ? h("div", {}, h("dt", {}, name), h("dd", {}, value)) : null);
  return h(
    "dl",
    { class: "facts" },
    fact("Version", newest ? number(newest.version) : null),
    fact("Committed", newest ? time(newest.created) : null),
    fact("New data", details.freshness?.updated ? time(details.freshness.updated) : null),
    fact("Rows", newest ? number(newest.rows) : null),
    fact("Size", newest ? bytes(newest.bytes) : null),
    fact("Fragments", newest ? number(newest.fragments) : null),
    fact("Location", h("code", {}, details.location)),
  );
}

function versionsPanel(params, first, selected) {
  const entries = [...first.versions];
  if (!entries.length) return empty("Nothing has been written to this table yet.");
  const picture = h("div");
  const list = h("div");
  const draw = () => {
    replace(picture, chart(entries, selected, choose));
    replace(list, versionsTable(entries, selected));
  };
  const choose = (version) => {
    selected = version;
    draw();
    list.querySelector("tr.selected")?.scrollIntoView({ block: "nearest" });
  };
  draw();
  const older = async () => {
    const page = await read("versions", { ...params, before: first.next });
    entries.push(...page.versions);
    first.next = page.next;
    draw();
    return Boolean(first.next);
  };
  return [picture, expiredBookmarks(first.expired), list, first.next ? more("Show older versions", older) : null];
}

function versionsTable(entries, selected) {
  const rows = entries.map((entry, index) => ({
    properties: { class: entry.version === selected ? "selected" : null },
    cells: versionCells(entry, entries[index + 1]),
  }));
  return grid("Versions, newest first", HEADINGS, rows);
}

function versionCells(entry, before) {
  const follows = before && before.version === entry.version - 1;
  return [
    String(entry.version),
    time(entry.created),
    number(entry.rows),
    follows ? change(entry.rows - before.rows) : "",
    bytes(entry.bytes),
    chip(entry.operation || "unknown", entry.maintenance ? "maintenance" : "data", entry.maintenance ? "maintenance" : "data"),
    entry.task ? taskLink(entry.task) : null,
    entry.key ? h("code", { class: "key", title: entry.key }, entry.key) : null,
    entry.tags.map((tag) => tagChip(tag, entry.bookmarks[tag])),
  ];
}

function tagChip(tag, expires) {
  if (!expires) return chip(tag, "tag", "This tag keeps the version from clean-up");
  if (new Date(expires) <= new Date()) {
    return chip(`${tag} (overdue)`, "warning", `This bookmark was to be moved by ${exact(expires)}; it expires at the next clean-up`);
  }
  return chip(tag, "tag", `This bookmark keeps the version from clean-up; unless it is moved, it expires at ${exact(expires)}`);
}

function expiredBookmarks(expired) {
  if (!expired.length) return null;
  const chips = expired.map(({ name, version, expired: at }) =>
    chip(`${name} (was at version ${version})`, "problem", `Expired at ${exact(at)}: its consumer must read the whole table`),
  );
  return h("p", { class: "expired" }, "Expired bookmarks: ", chips);
}

async function waitsPanel(params) {
  const { waits, hidden, dags } = await read("waits", params);
  const rows = waits.map((wait) => [taskLink(wait), sentence(wait.for), time(wait.since), time(wait.until), wait.state]);
  const found = waits.length
    ? grid("Waiting for this table", ["Task", "Waits for", "Since", "Times out", "State"], rows)
    : empty("No task waits for this table.");
  const others = hidden ? empty(`${hidden} more in DAGs that you may not read.`) : null;
  const scheduled = dags.length
    ? h("p", {}, "Scheduled when this table's asset is updated: ", dags.flatMap((dag, i) => [i ? ", " : "", dagLink(dag)]))
    : null;
  return [found, others, scheduled];
}

async function healthPanel(params) {
  const { findings, indices } = await read("check", params);
  const items = findings.map(({ level, text, advice }) =>
    h("li", { class: level }, chip(LEVELS[level], level), h("span", {}, text, advice ? h("strong", {}, advice) : null)),
  );
  const rows = indices.map((one) => [one.name, one.columns.join(", "), one.type, coverage(one), number(one.segments), bytes(one.bytes)]);
  const headings = ["Index", "Columns", "Type", "Covers", count("Segments"), count("Size")];
  return [h("ul", { class: "findings" }, items), indices.length ? grid("Indices", headings, rows) : empty("This table has no index.")];
}

function coverage({ indexed, rows }) {
  const share = rows ? indexed / rows : 1;
  const text = `${(100 * share).toFixed(share === 1 ? 0 : 1)}% of ${number(rows)} rows`;
  return h("span", { class: "coverage" }, h("meter", { min: 0, max: 1, low: 0.9, optimum: 1, value: share, "aria-label": text }), text);
}

function schemaPanel({ fields }) {
  if (!fields.length) return empty("This table has no columns yet.");
  const rows = fields.map(({ name, type, nullable }) => [h("code", {}, name), h("code", {}, type), nullable ? "" : "not null"]);
  return grid("Columns", ["Column", "Type", ""], rows);
}

async function samplePanel(params) {
  const { columns, rows, version } = await read("sample", params);
  const cells = rows.map((row) => row.map((value) => (value === null ? h("em", {}, "null") : value)));
  return grid(`Some rows of version ${version}`, columns, cells);
}
