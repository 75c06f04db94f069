// lists.js - the tabbed lists of nine rows, and all rows behind "more".  A row is a filter.
import { get, text } from "./api.js";
import { $, element, fill, options } from "./dom.js";
import { isOn, KINDS } from "./filters.js";
import * as format from "./format.js";

const pages = { kind: "page", path: "pages", rows: (answer) => answer.pages.map(({ page, ...row }) => ({ value: page, ...row })),
  asked: (order) => ({ by: order }), total: (answer) => format.plural(answer.total_pages, "page"), order: "pv" };
const entries = { ...pages, asked: () => ({ by: "visits" }), order: "visits", orders: ["visits"] };
const dimension = (kind, order = "pv", parameters = {}) => ({ kind, path: "breakdown", rows: (answer) => answer.rows, order,
  asked: (by) => ({ ...parameters, by: kind, metric: by }),
  total: (answer) => answer.other > 0 ? `and ${format.number(answer.other)} counted together as (other)` : "" });

// Which part of the visitors did it: {value, low, high} a row, null without visitors.  Of the site each estimate may be
// off, so the range is that of the quotient; of a page, what both have in common is estimated at once.
async function conversion(rows) {
  const { asked, filters, signal } = asking;
  if (filters.length === 0) {
    const { uv, error } = await get("uv", { ...asked, round: "outer" }, signal);
    return rows.map((row) => uv === 0 ? null
      : { value: row.uv / uv, low: row.error.low / error.high, high: row.error.high / Math.max(1, error.low) });
  }
  const answers = await Promise.all(rows.map((row) => get("overlap",
    { ...asked, event: row.value, [filters[0][0]]: filters[0][1], round: "outer" }, signal)));
  return answers.map(({ intersection: both, b: { uv } }) => uv === 0 ? null
    : { value: both.uv / uv, low: both.error.low / uv, high: Math.min(1, both.error.high / uv) });
}

const converts = () => asking.filters.length === 0 || asking.filters.length === 1 && asking.filters[0][0] !== "event";

// A panel is a list of tabs; a tab is one line.
const PANELS = [
  [["Pages", pages], ["Entry pages", entries]],
  [["Sources", dimension("source", "uv")], ["Campaigns", dimension("utm_campaign")], ["Media", dimension("utm_medium")]],
  [["Countries", dimension("country", "uv")], ["Devices", dimension("device")], ["Browsers", dimension("browser")], ["Systems", dimension("os")]],
  [["Events", dimension("event")]],
];
const ROWS = 9;
const ALL = 1000;
const ORDERS = { pv: "Page views", uv: "Visitors", visits: "Visits" };
const ordersOf = (tab) => tab.orders ?? ["pv", "uv"];
const NOTHING = { page: "No pages in this window.", event: "No named events in this window. Events with a member `event` go to POST /events." };
let asking = null; // {asked, signal, filters, choose}: what all lists are about
const chosen = PANELS.map(() => 0);

const orderName = (tab, order) => tab.kind === "event" && order === "pv" ? "Times" : ORDERS[order];

// By visitors where these are counted, else by page views.
async function load(tab, order, limit) {
  const ask = (by) => get(tab.path, { ...asking.asked, ...tab.asked(by), limit, round: "outer" }, asking.signal);
  try {
    return { answer: await ask(order), order };
  } catch (error) {
    if (error.status !== 422 || order !== "uv") {
      throw error;
    }
    return { answer: await ask("pv"), order: "pv" };
  }
}

function rowOf(tab, row, order, most, columns, after) {
  const name = row.value === "(other)" || row.value === "(none)" ? element("span", {}, row.value) : element("button", { type: "button",
    "aria-pressed": String(isOn(asking.filters, tab.kind, row.value)), title: `Only ${KINDS[tab.kind].toLowerCase()} ${row.value}`,
    onclick: () => {
      after();
      asking.choose(tab.kind, row.value);
    } }, row.value);
  const line = element("span", { class: "row-bar", "aria-hidden": "true" });
  line.style.width = `${most > 0 ? 100 * row[order] / most : 0}%`;
  return element("tr", {}, element("th", { scope: "row", class: "name" }, line, name),
    ...columns.map((column) => element("td", { class: "n", title: column === "uv" && row.error ? `${format.range(row.error)} (95\u202f%)` : undefined },
      row[column] === undefined ? "" : format.number(row[column]))));
}

function tableOf(tab, label, rows, order, after = () => {}) {
  const columns = ["visits", "uv", "pv"].filter((column) => rows.some((row) => row[column] !== undefined));
  const most = Math.max(...rows.map((row) => row[order] ?? 0));
  return [element("caption", { class: "visually-hidden" }, label),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, KINDS[tab.kind]),
      ...columns.map((column) => element("th", { scope: "col", class: "n" }, orderName(tab, column))))),
    element("tbody", {}, ...rows.map((row) => rowOf(tab, row, order, most, columns, after)))];
}

// ---- all rows ----

function matching(rows, words) {
  const wanted = words.trim().toLowerCase();
  return rows.filter((row) => row.value.toLowerCase().includes(wanted));
}

async function showMore(label, tab) {
  const dialog = $("more");
  const panel = $("more-panel");
  let rows = [];
  const draw = (order) => {
    const found = matching(rows, $("more-search").value);
    $("more-table").replaceChildren(...tableOf(tab, label, found, order, () => dialog.close()));
    $("more-note").textContent = `${format.number(found.length)} of ${format.plural(rows.length, "row")}`
      + (rows.length === ALL ? ", the first that there are; the API's CSV and a narrower window show others" : "");
  };
  const again = () => fill(panel, async () => {
    const { answer, order } = await load(tab, $("more-order").value, ALL);
    rows = tab.rows(answer);
    $("more-order").value = order;
    draw(order);
    return rows.length === 0 ? "Nothing in this window." : "";
  }, () => $("more-table").replaceChildren());
  $("more-title").textContent = label;
  options($("more-order"), ordersOf(tab).map((order) => [order, orderName(tab, order)]));
  $("more-order").value = tab.order;
  $("more-search").value = "";
  $("more-order").onchange = again;
  $("more-search").oninput = () => draw($("more-order").value);
  $("more-csv").onclick = () => fill(panel, () => saveCsv(label, tab), () => {}, true);
  dialog.showModal();
  await again();
}

async function saveCsv(label, tab) {
  const csv = await text(tab.path, { ...asking.asked, ...tab.asked($("more-order").value), limit: ALL, round: "outer" }, "text/csv");
  const where = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  element("a", { href: where, download: `${asking.asked.site}-${label.toLowerCase()}.csv` }).click();
  URL.revokeObjectURL(where);
  return "";
}

// ---- panels ----

function select(n, i) {
  chosen[n] = i;
  document.querySelectorAll(`#list-${n} [role=tab]`).forEach((button, k) => {
    button.setAttribute("aria-selected", String(k === i));
    button.tabIndex = k === i ? 0 : -1;
  });
  $(`list-${n}-panel`).setAttribute("aria-labelledby", `list-${n}-tab-${i}`);
}

async function showConversion(body, rows, note) {
  const rates = await conversion(rows).catch((error) => {
    if (error.status !== 422) {
      throw error;
    }
    return null; // a dimension without visitors
  });
  if (rates === null) {
    return;
  }
  body.tHead.rows[0].append(element("th", { scope: "col", class: "n" }, "Conversion"));
  rates.forEach((rate, i) => body.tBodies[0].rows[i].append(element("td", { class: "n" }, ...(rate === null ? ["–"] : [format.share(rate.value),
    element("span", { class: "margin" }, rate.low === rate.high ? "" : `${format.share(rate.low)} to ${format.share(rate.high)}`)]))));
  note.textContent = `Conversion: of the visitors of ${asking.filters[0]?.[1] ?? "the site"}, with the 95\u202f% range.`;
}

async function show(n) {
  const [label, tab] = PANELS[n][chosen[n]];
  const panel = $(`list-${n}`);
  const [body, note, more] = ["table", ".window", ".more"].map((part) => panel.querySelector(part));
  const clear = () => {
    body.replaceChildren();
    note.textContent = "";
    more.hidden = true;
  };
  await fill(panel, async () => {
    const { answer, order } = await load(tab, tab.order, ROWS);
    const rows = tab.rows(answer);
    if (rows.length === 0) {
      clear();
      return NOTHING[tab.kind] ?? `Nothing is known of ${label.toLowerCase()} in this window.`;
    }
    body.replaceChildren(...tableOf(tab, label, rows, order));
    note.textContent = [tab.total(answer), asking.filters.length > 0 ? "of the whole site" : ""].filter(Boolean).join(", ");
    if (tab.kind === "event" && converts()) {
      await showConversion(body, rows, note);
    }
    more.hidden = rows.length < ROWS;
    more.onclick = () => showMore(label, tab);
    return "";
  }, clear);
}

function panelOf(tabs, n) {
  const heads = tabs.map(([label], i) => element("button", { type: "button", role: "tab", id: `list-${n}-tab-${i}`,
    "aria-controls": `list-${n}-panel`, onclick: () => {
      select(n, i);
      show(n);
    } }, label));
  const arrows = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      heads[(chosen[n] + step + heads.length) % heads.length].focus();
      document.activeElement.click();
    }
  };
  return element("section", { class: "panel", id: `list-${n}`, "aria-label": tabs.map(([label]) => label).join(", ") },
    element("div", { class: "tabs head", role: "tablist", onkeydown: arrows, "aria-label": "Lists" }, ...heads),
    element("div", { role: "tabpanel", id: `list-${n}-panel` }, element("table")),
    element("p", { class: "foot" }, element("span", { class: "window" }), element("button", { type: "button", class: "more", hidden: true,
      "aria-label": `More of ${tabs[0][0].toLowerCase()}` }, "More")));
}

export function build() {
  $("lists").replaceChildren(...PANELS.map(panelOf));
  PANELS.forEach((_, n) => select(n, 0));
}

// @about: {asked, signal, filters, choose}.
export function showAll(about) {
  asking = about;
  PANELS.forEach((_, n) => show(n));
}
