// ops.js - the page for operators: what /metrics, /rollup, /readyz and /hotkeys know of the process.
import { authorization, get, text } from "./api.js";
import { $, element, fill, table } from "./dom.js";
import { label } from "./filters.js";
import * as format from "./format.js";

const REFRESH_MS = 5000;
const HOT = 20;

const mean = (name) => (at) => at(`${name}_count`) > 0 ? at(`${name}_sum`) / at(`${name}_count`) : undefined;
const part = (of, rest) => (at) => at(of) + at(rest) > 0 ? at(of) / (at(of) + at(rest)) : undefined;
const ms = (seconds) => `${format.decimal(seconds * 1000)}\u202fms`;
const mib = (bytes) => `${format.decimal(bytes / 1048576)}\u202fMiB`;

// For each line: its label; a metric, or a function of metrics (undefined: no value); and how the value is written.
const GROUPS = [
  ["Log", [
    ["Events that wait to be counted", "ingest_log_events"],
    ["Bytes that wait", "ingest_log_bytes"],
    ["Age of the oldest", "ingest_log_age_seconds", ms],
    ["Events accepted", "events_accepted_total"],
    ["Appends sent again", "appends_repeated_total"],
    ["Logs lost", "logs_gone_total"],
  ]],
  ["Folds", [
    ["Folds", "folds_total"],
    ["Events counted", "fold_events_total"],
    ["Mean time", mean("fold_seconds"), ms],
    ["Folds begun again", "fold_again_total"],
    ["Names beyond a cap", "names_capped_total"],
  ]],
  ["Redis", [
    ["Connected", "redis_connected", (n) => n > 0 ? "yes" : "no"],
    ["Connections made", "redis_connects_total"],
    ["Errors", "redis_errors_total"],
    ["Refused, memory full", "redis_oom_total"],
  ]],
  ["Questions and requests", [
    ["Questions", "queries_total"],
    ["Answered with others", "queries_joined_total"],
    ["Buckets from memory", part("cache_hits_total", "cache_misses_total"), format.share],
    ["Connections", "http_connections"],
    ["Requests that came too late", "http_late_total"],
    ["Memory", "process_resident_memory_bytes", mib],
  ]],
];

// Read the samples that have no labels.  Returns a function from a name to its value.
function parse(metrics) {
  const samples = new Map();
  for (const line of metrics.split("\n")) {
    const [name, value] = line.split(" ");
    if (/^[a-z_]+$/.test(name) && value !== undefined) {
      samples.set(name, Number(value));
    }
  }
  return (name) => samples.get(`tallyd_${name}`) ?? samples.get(name);
}

function build() {
  $("groups").replaceChildren(...GROUPS.map(([title], i) => element("section", { class: "panel", "aria-labelledby": `group-${i}-title` },
    element("h2", { id: `group-${i}-title`, class: "head" }, title), element("table", { id: `group-${i}` }))));
}

async function showMetrics() {
  const at = parse(await text("metrics", {}, "text/plain"));
  GROUPS.forEach(([title, lines], i) => table($(`group-${i}`), title, ["What", "Now"], lines.map(([name, value, write = format.number]) => {
    const found = typeof value === "string" ? at(value) : value(at);
    return [name, found === undefined || Number.isNaN(found) ? "–" : write(found)];
  })));
  return "";
}

async function showRollup() {
  const { leader, holder, fencing_token, watermarks, lag_s } = await get("rollup");
  table($("rollup"), "Rollup", ["Level", "Complete until", "Behind"], Object.keys(watermarks).map((level) =>
    [level, watermarks[level] === null ? "–" : format.time(watermarks[level], "UTC"), format.duration(lag_s[level] ?? 0)]));
  $("rollup-note").textContent = `${leader ? "This process rolls up" : `${holder ?? "Nobody"} rolls up`}; fencing token ${fencing_token}. Times in UTC.`;
  return "";
}

async function showHot() {
  const { pages } = await get("hotkeys", { limit: HOT });
  table($("hot"), "Hot pages", ["Site", "Page", "Writes/s", "Reads/s"],
    pages.map((row) => [row.site, label("page", row.page), format.decimal(row.writes_per_s), format.decimal(row.reads_per_s)]), 2);
  return pages.length === 0 ? "Nothing was written or asked for in the last half minute." : "";
}

async function showReady() {
  const response = await fetch("readyz", { cache: "no-store", headers: authorization() }).catch(() => null);
  const said = response === null ? {} : await response.json().catch(() => ({}));
  $("ready").textContent = response === null ? "The server cannot be reached."
    : response.status === 401 ? "" // the panels say that a token is missing
    : response.ok ? `Ready${said.degraded ? ", degraded" : ""}.`
      : `Not ready: ${`${said.detail ?? response.status}`.replace("not ready: ", "")}.`;
}

async function show(quietly) {
  await Promise.all([fill($("groups"), showMetrics, () => {}, quietly).then(showReady), // showReady() needs the token that this one asks for
    fill($("rollup-panel"), showRollup, () => $("rollup").replaceChildren(), quietly),
    fill($("hot-panel"), showHot, () => $("hot").replaceChildren(), quietly)]);
  document.querySelector("main").removeAttribute("aria-busy");
}

build();
show(false);
setInterval(() => {
  if (!document.hidden) {
    show(true);
  }
}, REFRESH_MS);
