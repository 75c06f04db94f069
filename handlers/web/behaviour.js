// behaviour.js - what visitors and users did: events, who is new, steps, how often.  Each function fills one table and
// returns what is to be said beside it.
"use strict";

const behaviour = (() => {
  const { element } = format;
  const $ = (id) => document.getElementById(id);
  const EVENTS = 10;
  const DAYS = 30;

  // A share as a text and a bar.
  function bar(share, text) {
    const line = element("span", { class: "bar", "aria-hidden": "true" });
    line.style.width = `${Math.min(1, Math.max(0, share)) * 100}%`;
    return element("span", { class: "share" }, text, line);
  }

  // A share whose parts are estimates: {value, low, high}.
  function estimated({ value, low, high }) {
    const cell = bar(value, format.share(value));
    if (low !== high) {
      cell.append(element("span", { class: "margin" }, `${format.share(low)} to ${format.share(high)}`));
    }
    return cell;
  }

  // ---- events ----

  // Of the site's visitors: each estimate may be off, so the range is that of the quotient.
  async function ofTheSite(rows, asked, signal) {
    const { uv, error } = await api.get("uv", asked, signal);
    return rows.map((row) => uv === 0 ? null
      : { value: row.uv / uv, low: row.error.low / error.high, high: row.error.high / Math.max(1, error.low) });
  }

  // Of those who saw the page, who did it too: what both have in common is estimated at once, with its error.
  async function ofThePage(rows, asked, page, signal) {
    const answers = await Promise.all(rows.map((row) => api.get("overlap", { ...asked, event: row.value, page }, signal)));
    return answers.map(({ intersection, b }) => b.uv === 0 ? null
      : { value: intersection.uv / b.uv, low: intersection.error.low / b.uv, high: Math.min(1, intersection.error.high / b.uv) });
  }

  async function events({ site, page, tz }, window, signal) {
    const asked = { site, tz, from: window.from, to: window.to, round: "outer" };
    const { rows } = await api.get("breakdown", { ...asked, by: "event", limit: EVENTS }, signal);
    const rates = rows.length === 0 ? [] : page === "" ? await ofTheSite(rows, asked, signal) : await ofThePage(rows, asked, page, signal);
    $("events-note").textContent = rows.length === 0 ? ""
      : `Conversion: visitors who did it, in the visitors of ${page === "" ? "the site" : page}, with its 95\u202f% range.`;
    if (rows.length === 0) {
      $("events").replaceChildren();
      return "No named events in this window. Events with a member `event` go to POST /events.";
    }
    format.table($("events"), "Named events", [["Event", "name"], ["Times", "n"], ["Visitors", "n"], ["Conversion", "n"]],
      rows.map((row, i) => [row.value, format.number(row.pv), format.number(row.uv), rates[i] === null ? "–" : estimated(rates[i])]));
    return "";
  }

  // ---- new and returning visitors ----

  // Was a visitor of the window there in the period of the same length before it?
  async function returning({ site, page, tz }, window, signal) {
    const answer = await api.get("overlap", { site, page, tz, from: window.from, to: window.to,
      from2: window.before[0], to2: window.until ?? window.from, round: "outer" }, signal);
    $("returning-note").textContent = `Returning: there from ${format.time(answer.from2, answer.tz)} to ${format.time(answer.to2, answer.tz)} too.`
      + (answer.spans_rotation ? " Visitors without an id are new after each rotation period." : "");
    if (Date.parse(answer.to2) > Date.parse(answer.from)) { // rounded to what is kept
      $("returning").replaceChildren();
      return "The period before is no longer kept apart from this window.";
    }
    const all = answer.new.uv + answer.intersection.uv;
    const row = (name, { uv, error }) => [name, format.number(uv), `${format.number(error.low)} to ${format.number(error.high)}`,
      all === 0 ? "–" : bar(uv / all, format.share(uv / all))];
    format.table($("returning"), "New and returning visitors", [["Visitors", ""], ["Number", "n"], ["95\u202f% range", "n"], ["Share", "n"]],
      [row("New", answer.new), row("Returning", answer.intersection)]);
    return "";
  }

  // ---- known users ----

  async function funnel(site, steps, window, signal) {
    const step = steps.split(",").map((name) => name.trim()).filter((name) => name !== "");
    $("funnel-note").textContent = "";
    if (step.length < 2) {
      $("funnel").replaceChildren();
      return "Name two to eight actions: the steps of the funnel.";
    }
    const answer = await api.get("funnel", { site, step, from: window.from, to: window.to }, signal);
    format.table($("funnel"), "Users who did each step and all before it", [["Step", "name"], ["Users", "n"], ["Of the first", "n"], ["Of the one before", "n"]],
      answer.steps.map((row) => [row.action, format.number(row.users), bar(row.rate, format.share(row.rate)), format.share(row.step_rate)]));
    $("funnel-note").textContent = `Exact; the days from ${answer.from} to before ${answer.to}. A day has no order: the steps may be done in any.`;
    return "";
  }

  async function frequency(site, signal) {
    const { days } = await api.get("frequency", { site, from: `now-${DAYS - 1}d`, to: "now" }, signal);
    const rows = days.slice(0, days.findLastIndex((row) => row.users > 0) + 1);
    const most = Math.max(...rows.map((row) => row.users));
    if (rows.length === 0) {
      $("frequency").replaceChildren();
      return `No users with an id in the last ${DAYS} days.`;
    }
    format.table($("frequency"), `On how many of the last ${DAYS} days users were active`, [["Days", "n"], ["Users", "n"]],
      rows.map((row) => [String(row.n), bar(row.users / most, format.number(row.users))]));
    return "";
  }

  return { events, returning, funnel, frequency };
})();
