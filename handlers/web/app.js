// app.js - the page: all sites or one of them, as its address says.  The page refreshes itself while it is visible.
import { get, takeTokenOfLink, tokenOfLink } from "./api.js";
import * as common from "./common.js";
import { $, element, fill, onSubmit, options, painted, say } from "./dom.js";
import * as figures from "./figures.js";
import { isDirect, KINDS, label, parameters, toggled } from "./filters.js";
import * as format from "./format.js";
import * as lists from "./lists.js";
import * as people from "./people.js";
import * as series from "./series.js";
import * as sites from "./sites.js";
import { address, change, onChange, readAddress, state } from "./state.js";
import { CHOICES, chosen, narrowed } from "./windows.js";

const NOW_MS = 10000;
const REFRESH_MS = 60000;
const NO_WINDOW = "Choose a first day, and a last day that is not before it.";
const EMPTY = "Put <script src=.../tally.js> into pages, POST /events, or `tallyd import` a log.";

let current = new AbortController();
let refreshed = 0;
const zones = {}; // the time zone of each site, once an answer has told it

// ---- controls and chips ----

function showControls(names) {
  const known = state.site === "" || names.includes(state.site) ? names : [...names, state.site];
  options($("site"), [["", "All sites"], ...known.map((name) => [name, name])]);
  for (const name of ["site", "tz", "compare", "period", "steps"]) {
    $(name).value = state[name];
  }
  $("range").value = state.range;
  $("new-only").checked = state.new !== "";
  $("custom").hidden = state.range !== "custom";
  $("from").value = state.from.slice(0, 10);
  $("to").value = state.to.slice(0, 10);
  document.title = `${state.filters.map((filter) => label(...filter)).join(" and ") || state.site || "All sites"} – tallyd`;
  $("chips").replaceChildren(...state.filters.map(([kind, value]) =>
    element("button", { type: "button", class: "chip", "data-kind": kind, "aria-label": `${KINDS[kind]} ${label(kind, value)}: remove this filter`,
      onclick: () => {
        change({ filters: toggled(state.filters, kind, value) });
        $("cards").querySelector("button")?.focus();
      } }, `${KINDS[kind]}: `, element("b", {}, label(kind, value)), element("span", { "aria-hidden": "true" }, " ✕"))));
}

function applyControls() {
  const next = { site: $("site").value, range: $("range").value, tz: $("tz").value.trim(), compare: $("compare").value };
  if (!$("controls").checkValidity()) { // a date is half typed
    return;
  }
  const days = { from: $("from").value, to: $("to").value };
  if (next.range === "custom" && days.to !== "" && days.to < days.from) {
    say($("figures"), NO_WINDOW); // figures and lists stay as they are
    return;
  }
  const asBefore = state.range === "custom" && days.from === state.from.slice(0, 10) && days.to === state.to.slice(0, 10);
  if (next.range === "custom" && !asBefore) { // days that were not changed may stand for a part of a day, which must stay
    const today = format.day(Date.now(), next.tz || zones[next.site] || "UTC");
    next.from = days.from || `${today.slice(0, 8)}01`;
    next.to = days.to || today;
  }
  const other = next.site !== state.site;
  change({ ...next, ...(other ? { filters: [] } : {}), ...(other || next.range !== state.range ? { step: "" } : {}) });
}

// ---- one site ----

// The zone in whose days a window is cut: that of the address, else the site's own, which the server tells.
async function zoneOf(site, tz, signal) {
  if (tz === "" && !(site in zones)) {
    zones[site] = (await get("pv", { site, from: "now-1m", to: "now" }, signal)).tz;
  }
  return tz || zones[site];
}

// What to do if there are no figures: a site that has events needs another period, any other site needs the script.
const advice = async ({ site }, signal) =>
  (await sites.names(signal)).includes(site) ? "The site has events: choose another period." : `There is no site ${site} yet. ${EMPTY}`;

// Load the figures, then the chart.  @then(stats) is called as soon as the figures are shown; stats: null if they failed.
async function showFigures(of, quietly, then = () => {}) {
  let stats = null;
  if (!quietly) {
    $("series").setAttribute("aria-busy", "true");
  }
  await fill($("figures"), async () => {
    stats = await figures.load({ ...of, metric: state.metric, choose: (metric) => change({ metric }) });
    return (stats.pv ?? stats.uv) > 0 ? "" : `No ${stats.pv === null ? "visitors" : "page views"} in ${of.window.words}. `
      + (state.filters.length === 0 ? await advice(of.asked, of.signal) : "");
  }, figures.clear, quietly);
  await painted(); // else a dozen questions and their panels would delay the figures on the screen
  if (of.signal.aborted) {
    return;
  }
  then(stats);
  const narrow = (point, step) => change({ ...narrowed(point, stats.tz, step), step: "" });
  await fill($("series"), async () => {
    if (stats === null) {
      if (!quietly) {
        series.clear();
      }
      return "";
    }
    const before = await figures.loadBefore(of, stats);
    return series.load({ ...of, stats, before, metric: stats.uv === null ? "pv" : state.metric, step: state.step, narrow });
  }, series.clear, quietly);
}

async function showNow({ asked, signal }) {
  const found = await get("uv", { ...asked, ...parameters(state.filters), from: "now-4m", to: "now" }, signal).catch(() => null);
  if (!signal.aborted) {
    $("now").textContent = found === null ? "–" : format.number(found.uv);
  }
}

function fillPeople(id, load) {
  const panel = $(id).closest("section");
  return fill(panel, load, () => people.clear(panel));
}

function showPeople(of) {
  const { asked: { site }, signal, window } = of;
  fillPeople("dau", () => people.active({ site }, signal));
  fillPeople("returning", () => people.returning(of, signal));
  fillPeople("retention", () => people.retention({ site, period: state.period, newOnly: state.new }, signal));
  fillPeople("funnel", () => people.funnel({ site, steps: state.steps, window }, signal));
  fillPeople("frequency", () => people.frequency({ site }, signal));
}

function showPlan(of) {
  const direct = isDirect(state.filters);
  $("how").hidden = !direct;
  if ($("how").open && direct) {
    fill($("how"), async () => {
      await figures.loadPlan({ ...of.within, ...parameters(state.filters) }, $("how-plan"), of.signal);
      return "";
    }, () => $("how-plan").replaceChildren());
  }
}

let about = null; // what the page of one site shows now

function aboutOf(window, signal) {
  const asked = { site: state.site, tz: state.tz };
  const within = { ...asked, from: window.from, to: window.to, round: "outer" };
  return { asked, within, window, filters: state.filters, compare: state.compare, signal, change };
}

// Show the rest of the page.  The figures come first, because they tell whether the visitors of the filter are counted.
function showRest(site, stats) {
  const of = { ...site, hasVisitors: stats?.uv !== null };
  if (isDirect(state.filters)) {
    showNow(of);
  }
  lists.showAll({ ...of, choose: (kind, value) => change({ filters: toggled(state.filters, kind, value) }) });
  showPeople(of);
  common.show(of);
  showPlan(of);
}

async function showSite(signal) {
  series.fetchLibrary();
  const zone = state.range === "custom" ? await zoneOf(state.site, state.tz, signal).catch(() => "UTC") : "UTC";
  const window = chosen(state, zone);
  if (signal.aborted) {
    return;
  }
  if (window === null) {
    await fill($("figures"), async () => {
      figures.clear();
      series.clear();
      return NO_WINDOW;
    }, () => {});
    return;
  }
  about = aboutOf(window, signal);
  $("now-box").hidden = !isDirect(state.filters);
  lists.wait();
  await showFigures(about, false, (stats) => showRest(about, stats));
}

// ---- the whole page ----

async function showSites(signal, quietly) {
  const window = chosen(state, state.tz || "UTC");
  await fill($("sites"), async () => window === null ? NO_WINDOW
    : sites.show({ window, tz: state.tz, step: state.step }, signal), () => $("sites-list").replaceChildren(), quietly);
}

// Choose a site where a page of all sites makes no sense: the only one, or, if there is none, the default site, whose page
// says how to begin.  Returns the names of all sites.
async function chooseSite(signal) {
  const names = await sites.names(signal).catch(() => null);
  if (state.site === "" && names !== null && names.length < 2) {
    state.site = names[0] ?? "default";
    history.replaceState(null, "", address());
  }
  return names ?? [];
}

async function show() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const known = [...$("site").options].map((option) => option.value).filter(Boolean);
  showControls(known);
  refreshed = Date.now();
  about = null;
  const draw = () => {
    const all = state.site === "";
    $("sites").hidden = !all;
    $("one").hidden = $("share").hidden = all;
    $("now-box").hidden = all;
    return all ? showSites(signal) : showSite(signal);
  };
  let names = state.site === "" ? await chooseSite(signal) : null;
  const drawn = draw();
  names ??= await chooseSite(signal);
  if (!signal.aborted) {
    showControls(names);
  }
  await drawn;
  if (!signal.aborted) {
    document.querySelector("main").removeAttribute("aria-busy");
  }
}

// Refresh the figures, if they are due, without a sign of loading.  Not while the page is hidden or a dialog is open.
function refresh() {
  if (document.hidden || document.querySelector("dialog[open]") !== null) {
    return;
  }
  const due = Date.now() - refreshed >= (state.range === "now" ? NOW_MS : REFRESH_MS) - 500;
  if (due) {
    refreshed = Date.now();
  }
  if (state.site === "") {
    if (due) {
      showSites(current.signal, true);
    }
    return;
  }
  if (about !== null && isDirect(state.filters)) {
    showNow(about);
  }
  if (due && about !== null) {
    showFigures(about, true);
  }
}

// ---- links ----

// Hide the links to what tells about the process if a proxy does not let it through, as deploy/nginx.conf does not.
async function hideClosed() {
  const answer = await fetch("ops", { method: "HEAD" }).catch(() => null);
  $("inside").hidden = [403, 404].includes(answer?.status);
}

function offerZones() {
  const all = Intl.supportedValuesOf?.("timeZone") ?? [];
  $("zones").replaceChildren(...["UTC", ...all].map((zone) => element("option", { value: zone })));
}

function shareLink() {
  const given = $("share-token").value.trim();
  $("share-copied").textContent = "";
  $("share-link").value = location.origin + address() + (given === "" ? "" : `#token=${encodeURIComponent(given)}`);
}

function listenToShare() {
  $("share").onclick = () => {
    $("share-token").value = tokenOfLink() ?? "";
    shareLink();
    $("share-dialog").showModal();
  };
  $("share-token").oninput = shareLink;
  $("share-copy").onclick = () => {
    $("share-link").select(); // for execCommand(), because navigator.clipboard exists only with HTTPS
    $("share-copied").textContent = document.execCommand("copy") ? "Copied." : "Not copied: please copy it by hand.";
  };
}

function listen() {
  onSubmit("controls", () => {});
  $("controls").onchange = applyControls;
  $("step").onchange = () => change({ step: $("step").value });
  $("period").onchange = () => change({ period: $("period").value });
  $("new-only").onchange = () => change({ new: $("new-only").checked ? "90d" : "" });
  onSubmit("funnel-form", () => change({ steps: $("steps").value.trim() }));
  $("how").ontoggle = () => about !== null && showPlan(about);
  document.querySelectorAll("dialog .close").forEach((button) =>
    button.addEventListener("click", () => button.closest("dialog").close()));
  window.addEventListener("popstate", () => {
    readAddress();
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", series.draw);
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, NOW_MS);
}

function start() {
  takeTokenOfLink();
  readAddress();
  onChange(show);
  options($("range"), CHOICES);
  figures.clear();
  lists.build();
  common.build();
  listen();
  listenToShare();
  show().finally(() => { // these can wait until the figures are shown
    hideClosed();
    offerZones();
  });
}

start();
