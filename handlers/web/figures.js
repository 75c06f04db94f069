// figures.js - the row of figures: visitors first, each with its change and, where it is an estimate, its range.
import { get, orNull } from "./api.js";
import { $, element, table } from "./dom.js";
import { figures as ask, uncounted } from "./filters.js";
import * as format from "./format.js";
import { comparedWith } from "./windows.js";

const MOST_KEYS = 100; // keys of the query plan that are listed

// For each metric: its name in the API, its title, its value in an answer or a point (null or undefined: not counted), and
// how the value is written.  A metric that the answer does not have is not shown.
export const METRICS = [
  ["uv", "Visitors", (of) => of.uv, format.number],
  ["visits", "Visits", (of) => of.visits, format.number],
  ["pv", "Page views", (of) => of.pv, format.number],
  ["views_per_visit", "Views per visit", (of) => of.views_per_visit, format.decimal],
  ["bounce_rate", "Bounce rate", (of) => of.bounce_rate, format.share],
  ["visit_duration_s", "Visit duration", (of) => of.visit_duration_s, format.duration],
  ["ips", "IP addresses", (of) => of.ips, format.number],
];
export const metricOf = (name) => METRICS.find(([id]) => id === name) ?? METRICS[0];

function card([name, title, value, write], stats, pressed, choose) {
  const now = value(stats);
  const error = stats.error?.[name];
  return element("button", { type: "button", class: "card", id: `card-${name}`, "data-metric": name,
    "aria-pressed": String(pressed), onclick: () => choose(name) },
    element("span", { class: "title" }, title), element("span", { class: "number", id: name }, now === null ? "–" : write(now)),
    element("span", { class: "margin", id: `${name}-error` }, error && format.range(error) ? `${format.range(error)} (95\u202f%)` : ""),
    element("span", { class: "change", id: `${name}-change` }));
}

// Show cards without figures, for the time until the server answers.
export function clear() {
  const nothing = { uv: null, visits: null, pv: null, ips: null };
  $("cards").replaceChildren(...METRICS.filter(([name]) => name in nothing).map((metric) => card(metric, nothing, false, () => {})));
  $("window").textContent = $("uncounted").textContent = "";
}

function show(stats, chosen, choose) {
  const shown = METRICS.filter(([, , value]) => value(stats) !== null && value(stats) !== undefined);
  const focused = document.activeElement?.dataset?.metric;
  $("cards").replaceChildren(...shown.map((metric) => card(metric, stats, metric[0] === chosen, choose)));
  if (focused) {
    $(`card-${focused}`)?.focus();
  }
}

function showChanges(stats, before) {
  for (const [name, , value, write] of METRICS) {
    const box = $(`${name}-change`);
    const [now, then] = [value(stats), before && value(before)];
    if (box !== null && typeof now === "number" && typeof then === "number") {
      const { text, direction } = format.change(now, then, write);
      box.textContent = text;
      box.className = `change ${name === "bounce_rate" ? "" : direction}`; // a higher bounce rate is not shown as good or bad
      box.title = `compared with ${format.time(before.from, before.tz)} to ${format.time(before.to, before.tz)}`;
    }
  }
}

const length = ({ from, to }) => Date.parse(to) - Date.parse(from);

// May the figures be compared?  A period before that was rounded to kept buckets may reach into the window, or be much
// longer.  Its length may differ by 12 %, or an hour, because months and years differ in length.
const isAlike = (stats, before) => Date.parse(before.to) <= Date.parse(stats.from)
  && Math.abs(length(before) - length(stats)) <= Math.max(0.12 * length(stats), 3600000);

function words(stats) {
  return `${format.time(stats.from, stats.tz)} to ${format.time(stats.to, stats.tz)}, ${stats.tz}`
    + (stats.spans_rotation ? ". Visitors without an id may be counted once per rotation period." : "");
}

// Load and show the figures of the window.
export async function load({ within, filters, metric, choose, signal }) {
  const stats = await ask(within, filters, signal);
  show(stats, metric, choose);
  $("window").textContent = words(stats);
  $("uncounted").textContent = uncounted(filters, stats)
    + (stats.significant === false ? " The range is wider than half of the figure." : "");
  const [, title, value, write] = METRICS[0];
  $("status").textContent = typeof value(stats) === "number" ? `${write(value(stats))} ${title.toLowerCase()}` : "";
  return stats;
}

// Load the answer that the figures are compared with, and show the changes.  null: there is none, or it is not kept any more.
export async function loadBefore({ within, window, filters, compare, signal }, stats) {
  const period = comparedWith(compare, window, stats);
  const before = period && await ask({ ...within, from: period[0], to: period[1] }, filters, signal).catch(orNull);
  const alike = before && isAlike(stats, before) ? before : null;
  showChanges(stats, alike);
  return alike;
}

// ---- the query plan ----

export async function loadPlan(asked, where, signal) {
  const { cover, from, to } = await get("uv", { ...asked, explain: 1 }, signal);
  const used = ["month", "day", "hour", "minute"].filter((level) => cover[level] > 0).map((level) => format.plural(cover[level], level));
  const keys = element("table");
  table(keys, "Keys of the plan", ["Bucket", "From, UTC", "To, UTC", "Redis key"], cover.list.slice(0, MOST_KEYS)
    .map((key) => [key.level, format.time(key.from, "UTC"), format.time(key.to, "UTC"), element("code", {}, key.key)]), 4);
  where.replaceChildren(
    element("p", {}, `The visitors of ${format.time(from, "UTC")} to ${format.time(to, "UTC")} (UTC) are one union of `
      + `${format.plural(cover.keys, "HyperLogLog")}: ${used.join(", ") || "none"}. Nothing is added up, so nobody counts twice.`),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys of the plan" }, keys),
    cover.keys > MOST_KEYS ? `and ${format.number(cover.keys - MOST_KEYS)} more` : "");
}
