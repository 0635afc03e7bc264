// Views of connections, and of a namespace with its namespaces and tables.

import { read } from "./api.js";
import { h, replace } from "./dom.js";
import { number, sentence } from "./format.js";
import { inside, taskLink } from "./links.js";
import { count, empty, grid, more, time } from "./parts.js";

export async function showConnections(page) {
  const { connections } = await read("connections");
  const rows = connections.map(({ id, type }) => [inside({ conn: id }, id), type]);
  const found = connections.length
    ? grid("Connections", ["Connection", "Type"], rows)
    : empty("There is no Lance connection in Airflow's database or environment. Add one at Admin › Connections.");
  replace(page, h("h1", {}, "Lance tables"), found, otherConnection());
}

export async function showNamespace(page, { conn, namespace = "" }) {
  const levels = namespace ? namespace.split("$") : [];
  const [spaces, tables, missing] = await Promise.all([
    levels.length < 2 ? read("namespaces", { conn, namespace }).catch(nothingBelow(levels)) : null,
    read("tables", { conn, namespace }).catch(nothingBelow([])),
    levels.length ? null : read("missing", { conn }).catch(() => null),
  ]);
  replace(
    page,
    h("h1", {}, levels.at(-1) ?? conn),
    spaces?.namespaces.length ? namespaceList(conn, namespace, spaces) : null,
    tables && (levels.length || tables.tables.length) ? tableList(conn, namespace, tables) : null,
    !tables?.tables.length && !(tables && levels.length) && !spaces?.namespaces.length ? empty("There are no namespaces.") : null,
    missing?.tables.length ? missingTables(conn, missing.tables) : null,
  );
}

// A database has no namespaces, and a catalog no tables, which the metastore says with an error. A folder's
// catalog may have tables outside of any database.
const nothingBelow = (levels) => (error) => {
  if (error.status !== 400 && !(levels.length && error.status === 404)) throw error;
  return null;
};

function namespaceList(conn, namespace, first) {
  const list = h("ul", { class: "namespaces" });
  const path = (name) => (namespace ? `${namespace}$${name}` : name);
  const add = ({ namespaces }) =>
    list.append(...namespaces.map((name) => h("li", {}, inside({ conn, namespace: path(name) }, name))));
  return paged(h("section", {}, h("h2", {}, "Namespaces"), list), first, add, (token) =>
    read("namespaces", { conn, namespace, token }),
  );
}

function tableList(conn, namespace, first) {
  if (!first.tables.length) return empty("There are no Lance tables in this namespace.");
  const headings = ["Table", count("Version"), "Last event", "By"];
  const box = grid(`Tables in ${namespace}`, headings, []);
  const body = box.querySelector("tbody");
  const add = ({ tables }) =>
    body.append(...grid("", headings, tables.map((table) => tableRow(conn, table))).querySelectorAll("tbody tr"));
  return paged(h("section", {}, h("h2", {}, "Tables"), box), first, add, (token) =>
    read("tables", { conn, namespace, token }),
  );
}

function missingTables(conn, tables) {
  const rows = tables.map(({ table, wait }) => [
    inside({ conn, table }, table),
    taskLink(wait),
    sentence(wait.for),
    time(wait.since),
  ]);
  const caption = "Tables that tasks wait for and that do not exist";
  return h("section", {}, h("h2", {}, "Missing tables"), grid(caption, ["Table", "Task", "Waits for", "Since"], rows));
}

function tableRow(conn, { table, name, version, error, event }) {
  const newest = version ? number(version) : h("span", { class: "quiet" }, "nothing written");
  return [
    inside({ conn, table }, name),
    error ? h("span", { class: "error", title: error }, "unreadable") : newest,
    event ? time(event.time) : null,
    event?.task ? taskLink(event.task) : null,
  ];
}

function paged(section, first, add, next) {
  let token = first.next;
  add(first);
  if (token) {
    section.append(
      more("Show more", async () => {
        const page = await next(token);
        add(page);
        token = page.next;
        return Boolean(token);
      }),
    );
  }
  return section;
}

function otherConnection() {
  const input = h("input", { id: "other", name: "conn", autocomplete: "off", spellcheck: "false", required: true });
  const label = h("label", { for: "other" }, "Connection of another secrets backend");
  const form = h("form", { class: "other" }, label, input, h("button", {}, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const link = inside({ conn: input.value.trim() }, "");
    form.append(link);
    link.click();
  });
  return form;
}
