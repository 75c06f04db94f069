// filters.js - the filters, which the page shows as chips, and how figures with filters are asked for.
//
// A page, a page set, a section or an event is a parameter of /stats.  The value of a dimension is a row of /breakdown.
// With two filters only visitors can be counted, by /overlap, which estimates them.
import { get } from "./api.js";

export const KINDS = { page: "Page", pageset: "Page set", section: "Section", event: "Event", source: "Source",
  utm_source: "UTM source", utm_medium: "Medium", utm_campaign: "Campaign", utm_term: "Term", utm_content: "Content",
  browser: "Browser", os: "System", device: "Device", country: "Country", language: "Language" };
export const MOST_FILTERS = 2;
const DIRECT = ["page", "pageset", "section", "event"];
const MOST_POINTS = 11000;
const MOST_ROWS = 1000;

const has = (filters, kind, value) => filters.some(([k, v]) => k === kind && v === value);

// The filters after a click on a row.  A filter that is on is removed.  Any other is added, or replaces the second of two.
export function toggled(filters, kind, value) {
  if (has(filters, kind, value)) {
    return filters.filter(([k, v]) => k !== kind || v !== value);
  }
  return [...filters.slice(0, MOST_FILTERS - 1), [kind, value]];
}

export const isOn = has;

const countries = new Intl.DisplayNames("en", { type: "region" });

// A value as people read it.  Characters that change the direction of text are written out, because with them anybody can
// name a page so that it looks like another one.  A name of blanks is put in quotes.
export const label = (kind, value) => kind === "country" && /^[A-Z]{2}$/.test(value) ? countries.of(value)
  : value.trim() === "" ? `"${value}"`
  : value.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u${mark.codePointAt(0).toString(16)}`);
export const isDirect = (filters) => filters.length === 0 || filters.length === 1 && DIRECT.includes(filters[0][0]);

// The parameters for one or two filters.  Each value is a list, which has both filters if they are of one kind.
export function parameters(filters) {
  const asked = {};
  filters.forEach(([kind, value]) => {
    asked[kind] = [...(asked[kind] ?? []), value];
  });
  return asked;
}

// The figures of a part of the site, in the form of an answer of /stats.
function ofPart({ from, to, tz, spans_rotation }, { pv = null, uv = null, error = null, at_most, significant }) {
  return { from, to, tz, spans_rotation, pv, uv, visits: null, ips: null, error: { uv: error }, at_most, significant };
}

// A sentence about what cannot be counted with these filters; "" if everything can.
export function uncounted(filters, stats) {
  if (filters.length === 2) {
    return "Of two filters only visitors are counted, from what both have in common, with the 95\u202f% range. "
      + "Page views, visits and a chart of both are not counted together.";
  }
  if (isDirect(filters)) {
    return filters[0]?.[0] === "event" ? "Page views are how often the event happened; an event has no visits." : "";
  }
  const name = KINDS[filters[0][0]].toLowerCase();
  return (stats.uv === null ? `Visitors are not counted by ${name} here (option visitors-by). ` : "")
    + `Visits and addresses are not counted by ${name}.`
    + (stats.at_most > stats.pv ? ` At most ${stats.at_most} page views: names beyond the cap are counted together.` : "");
}

// Add views per visit, for the whole site only: the views of a page are not those of the visits that began with the page.
const perVisit = (of, filters) => filters.length === 0 && of.views_per_visit === undefined
  ? { ...of, views_per_visit: of.visits > 0 ? of.pv / of.visits : null } : of;

// The figures of a window, in the form of an answer of /stats, with null for what cannot be counted.
export async function figures(asked, filters, signal) {
  if (isDirect(filters)) {
    return perVisit(await get("stats", { ...asked, ...parameters(filters) }, signal), filters);
  }
  if (filters.length === 2) {
    const answer = await get("overlap", { ...asked, ...parameters(filters) }, signal);
    return ofPart(answer, answer.intersection);
  }
  const [[kind, value]] = filters;
  const ask = (metric) => get("breakdown", { ...asked, by: kind, metric, limit: MOST_ROWS }, signal);
  const answer = await ask("pv");
  const row = answer.rows.find((one) => one.value === value);
  // If no row has the value, the server is asked whether visitors are counted at all: a 422 says that they are not.
  return ofPart(answer, row ?? { pv: 0, uv: await ask("uv").then(() => 0, (error) => error.status === 422 ? null : Promise.reject(error)) });
}

// The series of a window: {rows, step, tz}.  @points is an upper bound of its points.  rows is null if there is no series.
export async function series(asked, filters, { metric, points }, signal) {
  if (filters.length === 2) {
    return { rows: null };
  }
  if (isDirect(filters)) {
    const { series: rows, step, tz } = await get("stats", { ...asked, ...parameters(filters) }, signal);
    return { rows: rows.map((row) => perVisit(row, filters)), step, tz };
  }
  const [[kind, value]] = filters;
  const limit = Math.max(1, Math.min(MOST_ROWS, Math.floor(MOST_POINTS / points)));
  const answer = await get("breakdown", { ...asked, by: kind, metric: metric === "uv" ? "uv" : "pv", limit }, signal);
  return { rows: answer.rows.find((row) => row.value === value)?.series ?? null, step: answer.step, tz: answer.tz };
}
