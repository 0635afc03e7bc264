// The page: shows the view that its address asks for, and follows links between views without reloading.

import { Refused } from "./api.js";
import { h, replace } from "./dom.js";
import { address, inside, login, parameters } from "./links.js";
import { followTheme } from "./theme.js";
import { showConnections, showNamespace } from "./catalog.js";
import { showRun } from "./run.js";
import { showTable } from "./table.js";

const main = document.getElementById("main");
const header = document.getElementById("header");
let shown = 0;

async function show() {
  const params = parameters();
  const turn = ++shown;
  replace(header, crumbs(params));
  document.title = [params.table ?? params.namespace ?? params.conn, "Lance"].filter(Boolean).join(" · ");
  main.setAttribute("aria-busy", "true");
  const page = h("div");
  try {
    replace(main, h("p", { class: "quiet" }, "Reading…"));
    await view(params)(page, params);
  } catch (error) {
    replace(page, failure(error));
  }
  if (turn !== shown) return; // another view was requested meanwhile
  replace(main, page);
  main.removeAttribute("aria-busy");
}

function view(params) {
  if (params.run_id) return showRun;
  if (!params.conn) return showConnections;
  return params.table ? showTable : showNamespace;
}

function crumbs({ conn, namespace, table, run_id: run }) {
  const parts = table ? table.split("$") : namespace ? namespace.split("$") : [];
  const levels = parts.map((part, index) => {
    const path = parts.slice(0, index + 1).join("$");
    const last = index === parts.length - 1;
    if (last) return h("span", { "aria-current": "page" }, part);
    return inside({ conn, namespace: path }, part);
  });
  const start = [inside({}, "Lance", { class: "brand" })];
  if (run) start.push(h("span", { "aria-current": "page" }, "Tables of this run"));
  if (conn) start.push(parts.length ? inside({ conn }, conn) : h("span", { "aria-current": "page" }, conn));
  return h("nav", { "aria-label": "Breadcrumbs" }, h("ol", {}, [...start, ...levels].map((one) => h("li", {}, one))));
}

function failure(error) {
  if (!(error instanceof Refused)) console.error(error);
  const help = error.status === 401 ? login() : h("button", { type: "button", onclick: show }, "Try again");
  return h("div", { class: "failure", role: "alert" }, h("p", {}, error.message), help);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-inside]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  window.history.pushState(null, "", link.getAttribute("href") || address({}));
  show().then(() => main.focus());
});
window.addEventListener("popstate", show);

followTheme();
show();
