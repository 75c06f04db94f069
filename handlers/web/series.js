// series.js - the chart: one metric over time, the period before as a pale line, and all metrics as a table.
/* global Chart */
import { orNull } from "./api.js";
import { $, element, options, table } from "./dom.js";
import { metricOf, METRICS } from "./figures.js";
import { series as ask } from "./filters.js";
import * as format from "./format.js";
import { STEPS, stepsOf } from "./windows.js";

let library = null; // a promise that Chart.js is loaded, or cannot be
let chart = null;
let shown = null; // what is drawn: {rows, before, zone, step, metric, open, narrow}

// Begin to fetch Chart.js, beside the first questions.  The page of all sites does not, because it draws no chart.
export function fetchLibrary() {
  $("library").rel ||= "preload";
}

// Run Chart.js.  It is five times as large as the page's own script, so it is not run before the figures are painted.  If it
// cannot be loaded, there is only the table.
function loadLibrary() {
  library ??= new Promise((done) => {
    document.head.append(element("script", { src: $("library").href, onload: done, onerror: () => {
      library = null;
      done();
    } }));
  });
  return library;
}

export function clear() {
  chart?.destroy();
  chart = shown = null;
  $("series-table").replaceChildren();
  $("series-details").hidden = $("legend").hidden = $("chart").parentElement.hidden = true;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["accent", "pale", "fill", "soft", "line"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The points that have a tick: midnights if there are some, else all; if these are too many, every n-th of them.
function ticksOf(width) {
  const most = Math.max(2, Math.floor(width / 80));
  const points = shown.rows.map((row, i) => ({ value: i, midnight: format.clock(row.from, shown.zone) === "00:00" }));
  const midnights = points.filter((point) => point.midnight);
  const some = midnights.length > 2 && midnights.length < points.length ? midnights : points;
  const every = Math.ceil(some.length / most);
  return some.filter((_, i) => i % every === 0);
}

function lines(colour) {
  const [, title, value] = metricOf(shown.metric);
  const data = (rows) => rows.map((row, x) => ({ x, y: value(row) ?? null }));
  const last = shown.rows.length - 1;
  const line = { borderWidth: 2, clip: 6, tension: 0, pointHitRadius: 12, pointRadius: shown.rows.length > 60 ? 0 : 3 };
  return [
    { ...line, label: title, data: data(shown.rows), borderColor: colour.accent, backgroundColor: colour.accent,
      fill: { target: "origin", above: colour.fill },
      segment: { borderDash: (at) => shown.open && at.p1DataIndex === last ? [4, 4] : undefined } }, // the last point is not over yet
    ...(shown.before ? [{ ...line, label: "Before", data: data(shown.before.slice(0, shown.rows.length)),
      borderColor: colour.pale, backgroundColor: colour.pale, pointRadius: 0 }] : []),
  ];
}

export function draw() {
  chart?.destroy();
  chart = null;
  if (shown === null || !window.Chart) {
    return;
  }
  const colour = colours();
  const [, , , write] = metricOf(shown.metric);
  const grid = { color: colour.line, drawBorder: false };
  chart = new Chart($("chart"), {
    type: "line",
    data: { datasets: lines(colour) },
    options: {
      animation: false, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
      onClick: (_, items) => items.length > 0 && shown.narrow(shown.rows[items[0].index], shown.step),
      scales: {
        x: { type: "linear", grid: { display: false }, min: 0, max: Math.max(1, shown.rows.length - 1),
          afterBuildTicks: (axis) => { axis.ticks = ticksOf(axis.width); },
          ticks: { color: colour.soft, maxRotation: 0,
            callback: (i) => shown.rows[i] ? format.tick(shown.rows[i].from, shown.zone, shown.step) : "" } },
        y: { beginAtZero: true, grid, ticks: { color: colour.soft, maxTicksLimit: 6, callback: (n) => write(n) } },
      },
      plugins: {
        legend: { display: false }, // the sentence above the chart is the legend
        tooltip: { callbacks: {
          title: ([item]) => format.time(shown.rows[item.dataIndex].from, shown.zone),
          label: (item) => `${item.dataset.label}: ${item.parsed.y === null ? "–" : write(item.parsed.y)}`
            + (item.datasetIndex === 1 ? ` (${format.time(shown.before[item.dataIndex].from, shown.zone)})` : "") } },
      },
    },
  });
}

function showTable() {
  const has = METRICS.filter(([, , value]) => shown.rows.some((row) => typeof value(row) === "number"));
  $("series-details").hidden = false;
  table($("series-table"), "Figures over time", ["From", ...has.map(([, title]) => title)],
    shown.rows.map((row) => [
      element("button", { type: "button", title: "Show this part only", onclick: () => shown.narrow(row, shown.step) }, format.time(row.from, shown.zone)),
      ...has.map(([, , value, write]) => typeof value(row) === "number" ? write(value(row)) : "–")]));
}

// Offer the steps that fit the window; "" stands for the step that the window comes with.
function offer(minutes, chosen) {
  const choices = [["", "automatic"], ...stepsOf(minutes).map(([value, text]) => [value, `by ${text}`])];
  if ([...$("step").options].map((option) => option.value).join() !== choices.map(([value]) => value).join()) {
    options($("step"), choices); // only if they have changed: a list that is open must not close
  }
  $("step").value = chosen;
  if ($("step").selectedIndex < 0) {
    $("step").value = "";
  }
}

// The series by @step, which the user chose, or by @own, the window's step.  If @own is too fine for what is kept, the server
// chooses a step that works.
async function bySomeStep(question, filters, { step, own, metric, minutes }, signal) {
  const points = (name) => Math.ceil(minutes / (STEPS.find(([id]) => id === name)?.[2] ?? minutes / 500)) + 2;
  const by = (name) => ask({ ...question, step: name }, filters, { metric, points: points(name) }, signal);
  try {
    return await by(step || own);
  } catch (error) {
    if (error.status !== 422 || step !== "" || own === "auto") {
      throw error;
    }
    return by("auto");
  }
}

// Load and draw the series.  @stats and @before are the answers with the figures: their windows are drawn.  Returns the
// panel's message.
export async function load({ asked, window, filters, metric, step, stats, before, narrow, signal }) {
  $("chart").parentElement.hidden = false;
  loadLibrary(); // it loads while the questions are under way
  const minutes = (Date.parse(stats.to) - Date.parse(stats.from)) / 60000;
  offer(minutes, step);
  const how = { step: $("step").value, own: window.step, metric, minutes };
  const question = { ...asked, from: stats.from, to: stats.to };
  const found = await bySomeStep(question, filters, how, signal).catch((error) => {
    if (error.status === 422) {
      throw Object.assign(error, { message: `No chart of this: ${error.message}` });
    }
    throw error;
  });
  if (found.rows === null) {
    clear();
    return filters.length === 2 ? "No chart of two filters." : "No chart: this value is not among the largest.";
  }
  const then = before && await ask({ ...asked, from: before.from, to: before.to, step: found.step }, filters,
    { metric, points: found.rows.length + 2 }, signal).catch(orNull);
  const [, , value] = metricOf(metric);
  const drawn = found.rows.some((row) => typeof value(row) === "number") ? metric : found.rows[0]?.uv === undefined ? "pv" : "uv";
  shown = { rows: found.rows, before: then?.rows ?? null, zone: found.tz, step: found.step, metric: drawn, narrow, open: window.to === "now" };
  $("series-title").textContent = metricOf(drawn)[1];
  $("legend").hidden = shown.before === null;
  showTable();
  await loadLibrary();
  draw();
  return "";
}
