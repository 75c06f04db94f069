// state.js - what the page shows, kept in its address, so that a link, a reload and the back button show the same.
import { KINDS, MOST_FILTERS } from "./filters.js";
import { isWindow } from "./windows.js";

const CHOICES = { compare: ["before", "year", "none"], period: ["week", "day", "month"], new: ["", "90d"] };
const DEFAULTS = { site: "", range: "30d", from: "", to: "", tz: "", compare: "before", metric: "uv", step: "", period: "week",
  new: "", steps: "" };

// The state.  Its filters are pairs [kind, value], in the order in which they were chosen.
export const state = { ...DEFAULTS, filters: [] };

export function readAddress() {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const text = query.get(name) ?? value;
    state[name] = CHOICES[name] && !CHOICES[name].includes(text) ? value : text;
  }
  if (!query.has("range") && query.has("from")) {
    state.range = "custom"; // an address that somebody wrote by hand, as one of GET /uv
  }
  if (!isWindow(state.range)) {
    state.range = DEFAULTS.range;
  }
  state.filters = [...query].filter(([name, value]) => Object.hasOwn(KINDS, name) && value !== "").slice(0, MOST_FILTERS);
}

export function address(changes = {}) {
  const query = new URLSearchParams();
  const next = { ...state, ...changes };
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const unused = (name === "from" || name === "to") && next.range !== "custom";
    if (next[name] !== value && !unused) {
      query.set(name, next[name]);
    }
  }
  next.filters.forEach(([kind, value]) => query.append(kind, value));
  const text = query.toString();
  return location.pathname + (text === "" ? "" : `?${text}`);
}

let shown = () => {};

// @show will be called after each change, to draw the page of the new state.
export function onChange(show) {
  shown = show;
}

export function change(changes) {
  Object.assign(state, changes);
  history.pushState(null, "", address());
  shown();
}
