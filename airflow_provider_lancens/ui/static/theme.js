// Airflow's color mode, as its UI stores it in the browser; without one, that of the system.

const system = window.matchMedia("(prefers-color-scheme: dark)");

export function followTheme() {
  apply();
  window.addEventListener("storage", apply);
  system.addEventListener("change", apply);
  // A change in the window that this page is embedded in sends no event to it.
  new MutationObserver(apply).observe(window.parent.document.documentElement, { attributes: true });
}

function apply() {
  const chosen = localStorage.getItem("theme");
  const dark = chosen === "dark" || (chosen !== "light" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
