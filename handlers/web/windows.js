// windows.js - which windows the page offers, and what each is compared with.  No requests.
import { day } from "./format.js";

// A window without `to` ends now.
// `before` is the period that the window is compared with: as much of it as has passed of the window.  Where it is not told
// here untilNow() works it out.
// `until` is the end of all of that period, if it is not `from`: as an end `from` would be rounded up by a minute.
// Borders lie where buckets are kept: minutes are kept for two days, then hours, then days.
const WINDOWS = {
  now: { label: "Now", from: "now-29m", step: "1m", words: "the last 30 minutes" },
  "24h": { label: "24 hours", from: "now-1439m", step: "1h" },
  today: { label: "Today", from: "now/d", step: "1h" },
  yesterday: { label: "Yesterday", from: "now-1d/d", to: "now/d", before: ["now-2d/d", "now-1d/d"], step: "1h" },
  "7d": { label: "7 days", from: "now-6d/d", step: "1d" },
  "30d": { label: "30 days", from: "now-29d/d", step: "1d" },
  month: { label: "This month", from: "now/M", step: "1d" },
  lastmonth: { label: "Last month", from: "now-1M/M", to: "now/M", before: ["now-2M/M", "now-1M/M"], step: "1d" },
  "12M": { label: "12 months", from: "now-11M/M", step: "1M" },
};
export const CHOICES = [...Object.entries(WINDOWS).map(([value, { label }]) => [value, label]), ["custom", "Custom"]];
export const STEPS = [["1m", "minute", 1], ["5m", "5 minutes", 5], ["15m", "15 minutes", 15], ["1h", "hour", 60],
  ["1d", "day", 1440], ["1w", "week", 10080], ["1M", "month", 43800]];
const MOST_POINTS = 500;

export const isWindow = (name) => Object.hasOwn(WINDOWS, name) || name === "custom";

export function addDays(date, n) {
  const at = new Date(`${date}T00:00:00Z`);
  at.setUTCDate(at.getUTCDate() + n);
  return at.toISOString().slice(0, 10);
}

const days = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / 86400000);
const isDate = (text) => /^\d{4}-\d\d-\d\d$/.test(text);
const minus = (at, ms) => new Date(Date.parse(at) - ms).toISOString();

// The step and the words of a window that is no whole days and in no list.
const ANY = { step: "auto", words: "this window" };

// The window from a time like now-6d/d until now.  null: @from is no such time.
function untilNow(from) {
  const [, n = 0, unit, floor = ""] = /^now(?:-(\d+)([mhdwM]))?(?:\/([hdwM]))?$/.exec(from) ?? [];
  const of = unit ?? floor;
  if (!of) {
    return null;
  }
  const whole = of === floor; // now-6d/d is the first of seven days; other windows are told in minutes: now-29m has 30
  const back = n * (whole ? 1 : STEPS.find(([name]) => name === `1${of}`)[2]);
  const end = `now-${back + 1}${whole ? of : "m"}`;
  return { from, to: "now", before: [`now-${2 * back + 1}${whole ? `${of}/${of}` : "m"}`, end], until: whole ? from : end, ...ANY };
}

// The window between two instants.  It is compared with the period of the same length before it.
function between(from, to) {
  const length = Date.parse(to) - Date.parse(from);
  return length > 0 ? { from, to, before: [minus(from, length), from], ...ANY } : null;
}

// The window of some days; @to is the last one.  If it has not ended yet it ends now, and the period before is cut, too.
function ofDays(from, to, zone) {
  const n = days(from, to) + 1;
  if (!(n >= 1)) {
    return null;
  }
  const today = day(Date.now(), zone);
  const step = n <= 2 ? "1h" : n <= 92 ? "1d" : n <= 400 ? "1w" : "1M";
  const first = addDays(from, -n);
  const open = to >= today && from <= today;
  const whole = { from, to: addDays(to, 1), before: [first, from], step, words: n === 1 ? "that day" : `these ${n} days` };
  if (!open) {
    return whole;
  }
  const passed = days(from, today) + 1; // days of the window that have begun; it may reach beyond today
  return { ...whole, to: "now", before: [addDays(from, -passed), `now-${passed}d`] };
}

// The window that is chosen: {from, to, before: [from, to], step, words}.  null: the custom window is not valid.
export function chosen({ range, from, to }, zone) {
  if (range !== "custom") {
    const { label } = WINDOWS[range];
    const words = /^\d/.test(label) ? `the last ${label}` : label.toLowerCase();
    return { ...untilNow(WINDOWS[range].from), words, ...WINDOWS[range] };
  }
  if (isDate(from) && isDate(to)) {
    return ofDays(from, to, zone);
  }
  return to === "" || to === "now" ? untilNow(from) : between(from, to);
}

// The period [from, to] that a window is compared with; null: with none.  @from and @to are the instants of its answer.
export function comparedWith(compare, window, { from, to, tz }) {
  if (compare !== "year") {
    return compare === "none" ? null : window.before;
  }
  const yearBefore = (date) => date.slice(0, 4) - 1 + date.slice(4).replace("-02-29", "-02-28"); // works for an instant, too
  const midnight = (told) => isDate(told) || told.includes("/");
  // A midnight stays a midnight, because the clocks may be changed on other days of that year.  The end goes by the last
  // day of the window, because that year may lack a 29 February.
  return [yearBefore(midnight(window.from) ? day(from, tz) : from),
    midnight(window.to) ? addDays(yearBefore(addDays(day(to, tz), -1)), 1) : yearBefore(to)];
}

// The steps that make two to 500 points of a window of @minutes.
export const stepsOf = (minutes) => STEPS.filter(([, , length]) => minutes / length >= 2 && minutes / length <= MOST_POINTS);

// How a point of a series narrows the window: whole days as days, parts of a day as instants.
export function narrowed(point, zone, step) {
  const whole = ["1d", "1w", "1M"].includes(step);
  return whole ? { range: "custom", from: day(point.from, zone), to: day(Date.parse(point.to) - 1, zone) }
    : { range: "custom", from: point.from, to: point.to };
}
