// ops.js - the page for operators: what /metrics, /rollup, /readyz and /hotkeys know of the process.
import { get, text } from "./api.js";
import { $, element, fill, table } from "./dom.js";
import * as format from "./format.js";

const REFRESH_MS = 5000;
const HOT = 20;

const plain = (name) => (at) => at(name);
const mean = (name) => (at) => at(`${name}_count`) > 0 ? at(`${name}_sum`) / at(`${name}_count`) : undefined;
const part = (of, rest) => (at) => at(of) + at(rest) > 0 ? at(of) / (at(of) + at(rest)) : undefined;
const ms = (seconds) => `${format.decimal(seconds * 1000)}\u202fms`;
const mib = (bytes) => `${format.decimal(bytes / 1048576)}\u202fMiB`;

// A line each: what it is, its value by the metrics (undefined: there is none), how it is written.
const GROUPS = [
  ["Log", [
    ["Events that wait to be counted", plain("tallyd_ingest_log_events"), format.number],
    ["Bytes that wait", plain("tallyd_ingest_log_bytes"), format.number],
    ["Age of the oldest", plain("tallyd_ingest_log_age_seconds"), ms],
    ["Events accepted", plain("tallyd_events_accepted_total"), format.number],
    ["Appends sent again", plain("tallyd_appends_repeated_total"), format.number],
    ["Logs lost", plain("tallyd_logs_gone_total"), format.number],
  ]],
  ["Folds", [
    ["Folds", plain("tallyd_folds_total"), format.number],
    ["Events counted", plain("tallyd_fold_events_total"), format.number],
    ["Mean time", mean("tallyd_fold_seconds"), ms],
    ["Folds begun again", plain("tallyd_fold_again_total"), format.number],
    ["Names beyond a cap", plain("tallyd_names_capped_total"), format.number],
  ]],
  ["Redis", [
    ["Connected", plain("tallyd_redis_connected"), (n) => n > 0 ? "yes" : "no"],
    ["Connections made", plain("tallyd_redis_connects_total"), format.number],
    ["Errors", plain("tallyd_redis_errors_total"), format.number],
    ["Refused, memory full", plain("tallyd_redis_oom_total"), format.number],
  ]],
  ["Questions and requests", [
    ["Questions", plain("tallyd_queries_total"), format.number],
    ["Answered with others", plain("tallyd_queries_joined_total"), format.number],
    ["Buckets from memory", part("tallyd_cache_hits_total", "tallyd_cache_misses_total"), format.share],
    ["Connections", plain("tallyd_http_connections"), format.number],
    ["Requests that came too late", plain("tallyd_http_late_total"), format.number],
    ["Memory", plain("process_resident_memory_bytes"), mib],
  ]],
];

// The samples without labels, by name.
function parse(metrics) {
  const samples = new Map();
  for (const line of metrics.split("\n")) {
    const [name, value] = line.split(" ");
    if (/^[a-z_]+$/.test(name) && value !== undefined) {
      samples.set(name, Number(value));
    }
  }
  return (name) => samples.get(name);
}

function build() {
  $("groups").replaceChildren(...GROUPS.map(([title], i) => element("section", { class: "panel", "aria-labelledby": `group-${i}-title` },
    element("h2", { id: `group-${i}-title`, class: "head" }, title), element("table", { id: `group-${i}` }))));
}

async function showMetrics() {
  const at = parse(await text("metrics", {}, "text/plain"));
  GROUPS.forEach(([title, lines], i) => table($(`group-${i}`), title, [["What", ""], ["Now", "n"]], lines.map(([name, value, write]) => {
    const found = value(at);
    return [name, found === undefined || Number.isNaN(found) ? "–" : write(found)];
  })));
  return "";
}

async function showRollup() {
  const { leader, holder, fencing_token, watermarks, lag_s } = await get("rollup");
  table($("rollup"), "Rollup", [["Level", ""], ["Complete until", "n"], ["Behind", "n"]], Object.keys(watermarks).map((level) =>
    [level, watermarks[level] === null ? "–" : format.time(watermarks[level], "UTC"), format.duration(lag_s[level] ?? 0)]));
  $("rollup-note").textContent = `${leader ? "This process rolls up" : `${holder ?? "Nobody"} rolls up`}; fencing token ${fencing_token}. Times in UTC.`;
  return "";
}

async function showHot() {
  const { pages } = await get("hotkeys", { limit: HOT });
  table($("hot"), "Hot pages", [["Site", "name"], ["Page", "name"], ["Writes/s", "n"], ["Reads/s", "n"]],
    pages.map((row) => [row.site, row.page, format.decimal(row.writes_per_s), format.decimal(row.reads_per_s)]));
  return pages.length === 0 ? "Nothing was written or asked for in the last half minute." : "";
}

async function showReady() {
  const response = await fetch("readyz", { cache: "no-store" }).catch(() => null);
  const said = response === null ? {} : await response.json().catch(() => ({}));
  $("ready").textContent = response === null ? "The server cannot be reached."
    : response.ok ? `Ready${said.degraded ? ", degraded" : ""}.` : `Not ready: ${said.detail ?? said.reason ?? response.status}.`;
}

async function show(quietly) {
  await Promise.all([showReady(), fill($("groups"), showMetrics, () => {}, quietly),
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
