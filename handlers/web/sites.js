// sites.js - all sites on one page: the figures of each, and a curve of its visitors.
import { get, orNull } from "./api.js";
import { $, element, svg } from "./dom.js";
import * as format from "./format.js";
import { address } from "./state.js";

const CURVES = 30; // the first sites have a curve, the others only figures

function sparkline(values) {
  const most = Math.max(1, ...values);
  const points = values.map((value, i) => `${(100 * i / Math.max(1, values.length - 1)).toFixed(1)},${(29 - 27 * value / most).toFixed(1)}`);
  return svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points: points.join(" ") }));
}

async function drawCurve(where, site, { from, to, tz }, step, signal) {
  const asked = { site, from, to, step, round: "outer" };
  const { series } = await get("stats", { ...asked, tz }, signal).catch((error) => error.status === 422 ? get("stats", asked, signal)
    : Promise.reject(error)); // without tz the days are the site's own, which may be kept
  where.replaceChildren(sparkline(series.map((point) => point.uv)));
}

function cardOf({ site, pv, uv, visits, now }) {
  const figure = (name, value, css) => element("div", {}, element("dt", {}, name), element("dd", { class: css }, format.number(value)));
  return element("li", { class: "panel site" },
    element("h2", {}, element("a", { href: address({ site, filters: [] }) }, site)),
    element("div", { class: "curve" }),
    element("dl", {}, figure("Visitors", uv, "uv"), figure("Visits", visits, "visits"), figure("Page views", pv, "pv"), figure("Now", now, "now")));
}

export const names = async (signal) => (await get("sites", {}, signal)).sites;

// Show a card for each site, that with most visitors first.
export async function show({ window, tz, step }, signal) {
  const { sites, truncated, from, to, tz: zone } = await get("sites", { from: window.from, to: window.to, tz, round: "outer" }, signal);
  const ordered = sites.toSorted((a, b) => b.uv - a.uv);
  const cards = ordered.map(cardOf);
  $("sites-list").replaceChildren(...cards);
  await Promise.all(ordered.slice(0, CURVES).map((row, i) => drawCurve(cards[i].querySelector(".curve"), row.site,
    { from, to, tz: zone, ...row }, step || window.step, signal).catch(orNull))); // a site whose series is refused has no curve
  return truncated ? "These are the first 1,000 sites." : "";
}
