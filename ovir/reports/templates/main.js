// The beginning: the theme, the tables, the charts, and keys.

const THEME = "ovir-theme";

/** Return what the browser keeps under a name; browsers may refuse to keep anything for a file. */
function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    return; // the choice holds for this page only
  }
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

setTheme(kept(THEME));
document.getElementById("theme").addEventListener("click", () => {
  setTheme(isDark() ? "light" : "dark");
  keep(THEME, document.documentElement.dataset.theme);
  recolorCharts();
});
prefersDark.addEventListener("change", () => recolorCharts());

addEventListener("hashchange", followAddress);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeDrawer();
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    const search = [...document.querySelectorAll("[type=search]")].find((input) => input.offsetParent !== null);
    if (search === undefined) return;
    event.preventDefault();
    search.focus();
  }
});

// Charts wait until the tables are on the screen. The attribute tells whoever drives the page that all is drawn.
makeTables().then(followAddress).then(() => requestAnimationFrame(() => setTimeout(async () => {
  for (const figure of document.querySelectorAll("[data-chart]")) await showChart(figure, data.charts[figure.dataset.chart]);
  document.documentElement.dataset.drawn = "true";
})));
