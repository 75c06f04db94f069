// people.js - who comes back: active users, new and returning visitors, retention, a funnel, how often.  Each exported
// function but clear() fills one panel and returns its message.
import { get } from "./api.js";
import { $, bar, element, svg, table } from "./dom.js";
import { parameters } from "./filters.js";
import * as format from "./format.js";
import { addDays } from "./windows.js";

const DAYS = 30;
const COHORTS = { day: 10, week: 8, month: 6 };

export function clear(panel) {
  panel.querySelectorAll("table, .drawn").forEach((part) => part.replaceChildren());
  panel.querySelectorAll(".note").forEach((part) => { part.textContent = ""; });
  panel.querySelectorAll(".number").forEach((part) => { part.textContent = "–"; });
}

const nobody = (time) => `No users with an id in the last ${time}.`;

// A picture with a column for each day.  The lower part of a column shows the new users.
function columns(series) {
  const most = Math.max(1, ...series.map((day) => day.users));
  const picture = svg("svg", { viewBox: `0 0 ${series.length * 10} 60`, preserveAspectRatio: "none", role: "img",
    "aria-label": "Active users a day, and how many of them are new; a table of the same follows" });
  series.forEach((day, i) => {
    for (const [users, css] of [[day.users, "all"], [day.new, "new"]]) {
      const height = 60 * users / most;
      picture.append(svg("rect", { x: i * 10 + 1, y: 60 - height, width: 8, height, class: css }));
    }
  });
  return picture;
}

export async function active({ site }, signal) {
  const [{ series }, week, month] = await Promise.all([
    get("dau", { site, from: `now-${DAYS - 1}d/d`, to: "now", new_within: "90d" }, signal),
    get("active", { site, from: "now-6d", to: "now" }, signal),
    get("active", { site, from: `now-${DAYS - 1}d`, to: "now" }, signal),
  ]);
  const today = series.at(-1);
  const average = series.reduce((sum, day) => sum + day.users, 0) / series.length;
  $("dau").textContent = format.number(today.users);
  $("dau-new").textContent = `${format.number(today.new)} new`;
  $("wau").textContent = format.number(week.users);
  $("mau").textContent = format.number(month.users);
  $("stickiness").textContent = month.users > 0 ? format.share(average / month.users) : "–";
  $("dau-columns").replaceChildren(columns(series));
  table($("dau-table"), "Active users a day", ["Day", "Users", "New"],
    series.map((day) => [day.date, format.number(day.users), format.number(day.new)]));
  return month.users > 0 ? "" : nobody(`${DAYS} days`);
}

// How many visitors of the window came in the period before it, too.  The whole of that period counts.
export async function returning({ within, window, filters, hasVisitors }, signal) {
  const panel = $("returning").closest("section");
  clear(panel);
  if (filters.length > 1) {
    return "Who is new is not counted for two filters.";
  }
  if (!hasVisitors) {
    return "Visitors are not counted for this filter.";
  }
  const answer = await get("overlap", { ...within, ...parameters(filters), from2: window.before[0], to2: window.until ?? window.from }, signal);
  if (Date.parse(answer.to2) > Date.parse(answer.from)) { // rounded to kept buckets, the two windows overlap
    return "The period before is no longer kept apart from this window.";
  }
  $("returning-note").textContent = `Returning: there from ${format.time(answer.from2, answer.tz)} to ${format.time(answer.to2, answer.tz)} too.`
    + (answer.spans_rotation ? " Visitors without an id are new after each rotation period." : "");
  const all = answer.new.uv + answer.intersection.uv;
  const row = (name, { uv, error }) => [name, format.number(uv), `${format.number(error.low)} to ${format.number(error.high)}`,
    all === 0 ? "–" : bar(uv / all, format.share(uv / all))];
  table($("returning"), "New and returning visitors", ["Visitors", "Number", "95\u202f% range", "Share"],
    [row("New", answer.new), row("Returning", answer.intersection)]);
  return "";
}

function firstCohort(today, period, n) {
  if (period === "month") {
    const first = new Date(`${today.slice(0, 7)}-01T00:00:00Z`);
    first.setUTCMonth(first.getUTCMonth() - (n - 1));
    return first.toISOString().slice(0, 10);
  }
  return addDays(today, -(n - 1) * (period === "week" ? 7 : 1));
}

const percent = ({ users, rate }) => element("span", { title: format.plural(users, "user") }, format.percent(rate));

export async function retention({ site, period, newOnly }, signal) {
  const n = COHORTS[period];
  const { date } = await get("dau", { site }, signal);
  const { cohorts } = await get("retention", { site, period, cohort: firstCohort(date, period, n), days: n - 1, cohorts: n, new_within: newOnly }, signal);
  if (cohorts.every((cohort) => cohort.size === 0)) {
    $("retention").replaceChildren();
    return nobody(`${n} ${period}s`);
  }
  const offsets = Array.from({ length: n - 1 }, (_, i) => i);
  table($("retention"), `Users of a ${period} who came back in later ${period}s`,
    [`There in the ${period} of`, "Users", ...offsets.map((i) => `+${i + 1}`)], cohorts.map((cohort) =>
      [cohort.cohort, format.number(cohort.size), ...offsets.map((i) =>
        i < cohort.returned.length && cohort.size > 0 ? percent(cohort.returned[i]) : "")]));
  [...$("retention").tBodies[0].rows].forEach((row, k) => cohorts[k].returned.forEach(({ rate }, i) => {
    row.cells[i + 2].classList.add("heat");
    row.cells[i + 2].style.setProperty("--part", rate);
  }));
  return "";
}

export async function funnel({ site, steps, window }, signal) {
  const step = steps.split(",").map((name) => name.trim()).filter((name) => name !== "");
  clear($("funnel").closest("section"));
  if (step.length < 2) {
    return "Name two to eight actions: the steps of the funnel.";
  }
  const answer = await get("funnel", { site, step, from: window.from, to: window.to }, signal);
  table($("funnel"), "Users who did each step and all before it", ["Step", "Users", "Of the first", "Of the one before"],
    answer.steps.map((row) => [row.action, format.number(row.users), bar(row.rate, format.share(row.rate)), format.share(row.step_rate)]));
  $("funnel-note").textContent = `Exact; the days from ${answer.from} to before ${answer.to}. A day has no order: the steps may be done in any.`;
  return "";
}

export async function frequency({ site }, signal) {
  const { days } = await get("frequency", { site, from: `now-${DAYS - 1}d`, to: "now" }, signal);
  const rows = days.slice(0, days.findLastIndex((row) => row.users > 0) + 1);
  const most = Math.max(...rows.map((row) => row.users));
  if (rows.length === 0) {
    $("frequency").replaceChildren();
    return nobody(`${DAYS} days`);
  }
  table($("frequency"), `On how many of the last ${DAYS} days users were active`, ["Days", "Users"],
    rows.map((row) => [row.n, bar(row.users / most, format.number(row.users))]), 0);
  return "";
}
