// format.js - numbers, shares, times and changes as text.  No state, no page, no requests.
const whole = new Intl.NumberFormat("en-GB");
const fine = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 2 });
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const STEPS = {
  "1M": { month: "short", year: "numeric" },
  "1w": { day: "numeric", month: "short" },
  "1d": { weekday: "short", day: "numeric", month: "short" },
};

function formatter(zone, options) {
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
  } catch { // the browser does not know the zone
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  }
}

export const number = (n) => whole.format(n);
export const decimal = (n) => fine.format(n);

// A share as percent, with a decimal only below 10 %.
export const share = (part) => `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)}\u202f%`;
export const percent = (part) => `${Math.round(part * 100)}\u202f%`;
export const range = ({ low, high }, write = number) => low === high ? "" : `${write(low)} to ${write(high)}`;
export const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

// A duration in its two largest units, as 1h 5m.
export function duration(seconds) {
  let left = Math.round(seconds);
  const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const first = units.findIndex(([length]) => left >= length || length === 1);
  return units.slice(first, first + 2).map(([length, unit]) => {
    const n = Math.floor(left / length);
    left -= n * length;
    return `${n}${unit}`;
  }).join("\u202f");
}

// A time with its date.
export const time = (at, zone) =>
  formatter(zone, { day: "numeric", month: "short", year: "numeric", ...CLOCK }).format(new Date(at));

// The day of a time, by a zone's calendar, as YYYY-MM-DD.
export function day(at, zone) {
  const parts = formatter(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(new Date(at));
  const of = (type) => parts.find((part) => part.type === type).value;
  return `${of("year")}-${of("month")}-${of("day")}`;
}

export const clock = (at, zone) => formatter(zone, CLOCK).format(new Date(at));

// The label of a point on the axis, as short as the step allows.  Midnight is shown as its day.
export function tick(at, zone, step) {
  if (STEPS[step]) {
    return formatter(zone, STEPS[step]).format(new Date(at));
  }
  const text = clock(at, zone);
  return text === "00:00" ? formatter(zone, STEPS["1w"]).format(new Date(at)) : text;
}

// The change against the period before: {text, direction}.
export function change(now, before, write = number) {
  if (before === 0) {
    return { text: now === 0 ? "none before either" : "none before", direction: "" };
  }
  const part = (now - before) / before;
  const size = Math.abs(part * 100).toFixed(Math.abs(part) < 0.1 ? 1 : 0);
  const [sign, direction] = Number(size) === 0 ? ["\u00b1", ""] : part > 0 ? ["+", "up"] : ["\u2212", "down"];
  return { text: `${sign}${size}\u202f% (before: ${write(before)})`, direction };
}
