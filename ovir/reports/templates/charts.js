// Charts: plotly.js is unpacked when the page is there, and draws in the colors of the theme.

const COLOR_KEYS = new Set(["color", "fillcolor", "bgcolor"]);
let library = null;

/** Return plotly, which the first call unpacks. The policy of the page allows its script by its hash. */
function plotly() {
  library ??= (async () => {
    document.head.append(make("script", {}, await unpacked("plotly")));
    return window.Plotly;
  })();
  return library;
}

/** Return the color of a CSS variable as plotly reads it. */
function colorOf(name, alpha = 1) {
  const probe = make("span", { style: `display: none; color: color-mix(in srgb, var(${name}) ${100 * alpha}%, transparent)` });
  document.body.append(probe);
  const canvas = make("canvas", { width: 1, height: 1 }).getContext("2d");
  canvas.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, opacity] = canvas.getImageData(0, 0, 1, 1).data;
  return `rgba(${red},${green},${blue},${(opacity / 255).toFixed(3)})`;
}

/** Return a copy of a part of a figure with colors in place of the names of variables, as "--accent" or "--accent/0.2". */
function colored(value, key = "") {
  if (typeof value === "string") {
    if (!COLOR_KEYS.has(key) || !value.startsWith("--")) return value;
    const [name, alpha] = value.split("/");
    return colorOf(name, alpha === undefined ? 1 : Number(alpha));
  }
  if (Array.isArray(value)) return typeof value[0] === "object" ? value.map((item) => colored(item)) : value;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, colored(item, name)]));
}

const NARROW = 520; // pixels

function layoutOf(chart, width) {
  const axis = { gridcolor: colorOf("--line"), linecolor: colorOf("--line"), zerolinecolor: colorOf("--line"), automargin: true };
  const base = {
    width, uirevision: 1, height: chart.height, margin: { l: 12, r: 18, t: 12, b: 12 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colorOf("--muted") }, showlegend: false,
    hoverlabel: { bgcolor: colorOf("--raised"), bordercolor: colorOf("--line"), align: "left",
      font: { color: colorOf("--text"), family: getComputedStyle(document.body).fontFamily, size: 12 } },
    hovermode: "closest", bargap: 0.28,
  };
  const layout = { ...base, ...colored(chart.layout) };
  for (const name of ["xaxis", "yaxis"]) layout[name] = { ...axis, ...layout[name] };
  if (layout.xaxis.tickvals === undefined) layout.xaxis.nticks = Math.max(2, Math.floor(width / 80));
  else Object.assign(layout.xaxis, fittingTicks(layout.xaxis, width - 80));
  if (width < NARROW && chart.narrow !== null) { // no other chart is beside it, so it needs no room for more bars than it has
    const rows = Math.max(chart.narrow.length, 3);
    Object.assign(layout.yaxis, { ticktext: chart.narrow, range: [rows - 0.5, -0.5] });
    layout.height = 90 + 24 * rows;
  }
  return layout;
}

/** Return as many ticks, evenly spaced between the first and the last one, as there is room for. */
function fittingTicks({ tickvals, ticktext, range }, width) {
  const ends = ticktext.map((text, index) => {
    const middle = width * (tickvals[index] - range[0]) / (range[1] - range[0]), half = 4 + 3.5 * text.length;
    return [middle - half, middle + half];
  });
  const fits = (kept) => kept.every((index, place) => place === 0 || ends[kept[place - 1]][1] < ends[index][0]);
  const last = tickvals.length - 1;
  for (let step = 1; ; step++) {
    const kept = tickvals.map((_, index) => index).filter((index) => index === last || index % step === 0 && (step === 1 || ends[index][1] < ends[last][0]));
    if (step > last || fits(kept)) return { tickvals: kept.map((index) => tickvals[index]), ticktext: kept.map((index) => ticktext[index]) };
  }
}

const CONFIG = { displayModeBar: false, plotlyServerURL: "" };
const drawnCharts = new Map();

/** Fill the element of a chart with its title, and with its plot as soon as plotly is there. */
async function showChart(figure, chart) {
  const plot = make("div", { class: "plot waiting", style: `height: ${chart.height}px` });
  figure.append(make("figcaption", {}, chart.title, chart.note ? make("small", {}, chart.note) : null), plot);
  try {
    await plotly();
    plot.classList.remove("waiting");
    await draw(plot, chart);
  } catch (error) {
    plot.className = "plot failed";
    plot.textContent = `This browser cannot draw the chart: ${error.message}`;
    return;
  }
  drawnCharts.set(plot, chart);
  new ResizeObserver(() => plot.isConnected && plot._fullLayout.width !== plot.clientWidth && draw(plot, chart)).observe(plot);
  plot.on("plotly_click", ({ points }) => {
    const layer = points[0].customdata;
    if (typeof layer === "number") visit(`#layer:${layer}`);
  });
}

/** Draw a chart in the colors of the theme, as wide as its element. */
function draw(plot, chart) {
  const layout = layoutOf(chart, plot.clientWidth);
  plot.style.height = `${layout.height}px`;
  return window.Plotly.react(plot, colored(chart.traces), layout, CONFIG);
}

/** Draw all charts anew, in the colors of another theme. */
async function recolorCharts() {
  for (const [plot, chart] of drawnCharts) {
    if (plot.isConnected) await draw(plot, chart);
    else drawnCharts.delete(plot);
  }
}
