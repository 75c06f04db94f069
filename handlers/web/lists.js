// lists.js - the tabbed lists of nine rows, and all rows behind "more".  A row is a filter.
//
// With a filter, /overlap estimates for each row how many visitors the row and the filter have in common.  Lists that cannot
// be counted together with the filter show the whole site, and say so.
import { get, text } from "./api.js";
import { $, element, fill, options } from "./dom.js";
import { isDirect, isOn, KINDS, label as called, parameters } from "./filters.js";
import * as format from "./format.js";

const ROWS = 9;
const ALL = 1000;
const NONE = "(none)";
const COLUMNS = { visits: "Visits", uv: "Visitors", pv: "Page views", rate: "Conversion" };

const pages = { kind: "page", path: "pages", rows: (answer) => answer.pages.map(({ page, ...row }) => ({ value: page, ...row })),
  asked: (order) => ({ by: order }), total: (answer) => format.plural(answer.total_pages, "page"), order: "pv", orders: ["pv", "uv"] };
const entries = { ...pages, asked: () => ({ by: "visits" }), order: "visits", orders: ["visits"] };
const dimension = (kind, order = "pv") => ({ kind, path: "breakdown", rows: (answer) => answer.rows, order, orders: ["pv", "uv"],
  asked: (by) => ({ by: kind, metric: by }),
  total: (answer) => answer.other > 0 ? `and ${format.number(answer.other)} counted together as (other)` : "" });

// A panel is a list of tabs; a tab is one line.
const PANELS = [
  [["Pages", pages], ["Entry pages", entries], ["Sections", dimension("section", "uv")]],
  [["Sources", dimension("source", "uv")], ["Campaigns", dimension("utm_campaign")], ["Media", dimension("utm_medium")]],
  [["Countries", dimension("country", "uv")], ["Devices", dimension("device")], ["Browsers", dimension("browser")], ["Systems", dimension("os")]],
  [["Events", dimension("event")]],
];
const NOTHING = { page: "No pages in this window.", event: "No named events in this window. Events with a member `event` go to POST /events.",
  section: "No sections in this window. The configuration names them: `section.blog = /blog/`." };
let asking = null; // what all lists are about, see showAll()
const chosen = PANELS.map(() => 0);

const nameOf = (tab, column) => tab.kind === "event" && column === "pv" ? "Times" : COLUMNS[column];

// Load the rows of a list in the order that is asked for, or by page views if its visitors are not counted.
async function load(tab, order, limit) {
  const ask = (by) => get(tab.path, { ...asking.within, ...tab.asked(by), limit }, asking.signal);
  const of = (answer, by) => ({ rows: noneLast(tab, tab.rows(answer)), order: by, total: tab.total(answer) });
  try {
    return of(await ask(order), order);
  } catch (error) {
    if (error.status !== 422 || order !== "uv") {
      throw error;
    }
    return of(await ask("pv"), "pv");
  }
}

// Add to each row which part of the site's visitors it has.  Both numbers are estimates: the range is that of the quotient.
async function converted(rows) {
  const { uv, error } = await get("uv", asking.within, asking.signal);
  return rows.map((row) => ({ ...row, rate: uv === 0 ? null
    : { value: row.uv / uv, low: row.error.low / error.high, high: row.error.high / Math.max(1, error.low) } }));
}

// Is it the row of page views without a value?  Only dimensions have that row: a page or event may really be called (none).
const isNone = ({ kind }, { value }) => value === NONE && !isDirect([[kind]]);

const noneLast = (tab, rows) => rows.sort((a, b) => isNone(tab, a) - isNone(tab, b));

// How many visitors each row has in common with the filter, largest first, and for events which part of the filter's visitors
// that is.
async function together(tab, rows) {
  const { within, filters: [chip], signal } = asking;
  const found = await Promise.all(rows.filter((row) => !row.capped).map(async ({ value, uv, error }) => {
    if (isOn([chip], tab.kind, value)) {
      return { value, uv, error };
    }
    const { a, b, intersection } = await get("overlap", { ...within, ...parameters([[tab.kind, value], chip]) }, signal);
    const of = (a[chip[0]] === chip[1] ? a : b).uv;
    const { low, high } = intersection.error;
    const rate = of === 0 ? null : { value: intersection.uv / of, low: low / of, high: Math.min(1, high / of) };
    return { value, uv: intersection.uv, error: intersection.error, rate: tab.kind === "event" ? rate : undefined };
  }));
  return noneLast(tab, found.sort((a, b) => b.uv - a.uv));
}

// What the row without a value means, if there is one.
const nobody = (tab, rows) => rows.some((row) => isNone(tab, row))
  && (tab.kind === "source" ? "(none): an address that was typed, or a step within the site" : "(none): not known");

// The rows of a list: {rows, order, note: what the rows are about, n: how many rows the whole site has in the list}.
async function nine(tab) {
  const { filters, hasVisitors } = asking;
  const { rows, order, total } = await load(tab, tab.order, ROWS);
  const name = filters.length > 0 ? called(...filters[0]) : "the site";
  const isEvent = tab.kind === "event";
  const rate = isEvent && `Conversion: of the visitors of ${name}, with the 95\u202f% range`;
  const n = rows.length;
  const notes = (...texts) => texts.filter(Boolean).join(". ");
  const whole = (why) => ({ rows, order, n, note: notes(total, `Of the whole site: ${why}`) });
  if (n === 0 || filters.length === 0) {
    return { rows: isEvent && n > 0 ? await converted(rows) : rows, order, n, note: notes(total, rate, nobody(tab, rows)) };
  }
  if (filters.length > 1) {
    return whole("three filters are not counted together");
  }
  if (tab === entries) {
    return whole("visits are not counted together with a filter");
  }
  if (!hasVisitors || rows[0].uv === undefined) {
    return whole(`visitors by ${KINDS[hasVisitors ? tab.kind : filters[0][0]].toLowerCase()} are not counted here`);
  }
  return { rows: await together(tab, rows), order: "uv", n,
    note: notes(`Visitors in common with ${name}, with the 95\u202f% range: of the site's first ${format.plural(n, "row")}`, rate) };
}

// ---- a list as a table ----

function cell(row, column) {
  const figure = row[column];
  const isShare = column === "rate";
  if (typeof figure !== "number" && !figure) {
    return element("td", { class: "n" }, isShare && figure === null ? "–" : "");
  }
  const error = isShare ? figure : column === "uv" && row.error;
  const range = error ? format.range(error, isShare ? format.share : format.number) : "";
  const isShown = isShare || !("pv" in row); // the range is in the cell, else in its tooltip
  return element("td", { class: "n", title: range && !isShown ? `${range} (95\u202f%)` : undefined },
    isShare ? format.share(figure.value) : format.number(figure), ...(isShown && range ? [element("span", { class: "margin" }, range)] : []));
}

function rowOf(tab, row, order, most, columns, after) {
  const name = row.capped ? element("span", {}, row.value) : element("button", { type: "button",
    "aria-pressed": String(isOn(asking.filters, tab.kind, row.value)), title: `Only ${KINDS[tab.kind].toLowerCase()} ${called(tab.kind, row.value)}`,
    onclick: () => {
      after();
      asking.choose(tab.kind, row.value);
    } }, called(tab.kind, row.value));
  const line = element("span", { class: "row-bar", "aria-hidden": "true" });
  line.style.width = `${most > 0 && !isNone(tab, row) ? 100 * row[order] / most : 0}%`;
  return element("tr", {}, element("th", { scope: "row", class: "name" }, line, name), ...columns.map((column) => cell(row, column)));
}

function tableOf(tab, label, rows, order, after = () => {}) {
  const columns = Object.keys(COLUMNS).filter((column) => rows.some((row) => row[column] !== undefined));
  const most = Math.max(...rows.map((row) => isNone(tab, row) ? 0 : row[order] ?? 0));
  return [element("caption", { class: "visually-hidden" }, label),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, KINDS[tab.kind]),
      ...columns.map((column) => element("th", { scope: "col", class: "n" }, nameOf(tab, column))))),
    element("tbody", {}, ...rows.map((row) => rowOf(tab, row, order, most, columns, after)))];
}

// ---- all rows ----

function matching({ kind }, rows, words) {
  const wanted = words.trim().toLowerCase();
  return rows.filter(({ value }) => called(kind, value).toLowerCase().includes(wanted));
}

async function showMore(label, tab) {
  const dialog = $("more");
  const panel = $("more-panel");
  let rows = [];
  const draw = (order) => {
    const found = matching(tab, rows, $("more-search").value);
    $("more-table").replaceChildren(...tableOf(tab, label, found, order, () => dialog.close()));
    $("more-note").textContent = `${format.number(found.length)} of ${format.plural(rows.length, "row")}`
      + (asking.filters.length > 0 ? " of the whole site" : "")
      + (rows.length === ALL ? ", the first that there are; the API's CSV and a narrower window show others" : "");
  };
  const again = () => fill(panel, async () => {
    const found = await load(tab, $("more-order").value, ALL);
    rows = found.rows;
    $("more-order").value = found.order;
    draw(found.order);
    return rows.length === 0 ? "Nothing in this window." : "";
  }, () => $("more-table").replaceChildren());
  $("more-title").textContent = label;
  options($("more-order"), tab.orders.map((order) => [order, nameOf(tab, order)]));
  $("more-order").value = tab.order;
  $("more-search").value = "";
  $("more-order").onchange = again;
  $("more-search").oninput = () => draw($("more-order").value);
  $("more-csv").onclick = () => fill(panel, () => saveCsv(label, tab), () => {}, true);
  dialog.showModal();
  await again();
}

async function saveCsv(label, tab) {
  const csv = await text(tab.path, { ...asking.within, ...tab.asked($("more-order").value), limit: ALL }, "text/csv");
  const where = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  element("a", { href: where, download: `${asking.within.site}-${label.toLowerCase()}.csv` }).click();
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

function show(n) {
  const [label, tab] = PANELS[n][chosen[n]];
  const panel = $(`list-${n}`);
  const [body, note, more] = ["table", ".window", ".more"].map((part) => panel.querySelector(part));
  const clear = () => {
    body.replaceChildren();
    note.textContent = "";
    more.hidden = true;
  };
  return fill(panel, async () => {
    const found = await nine(tab);
    if (found.rows.length === 0) {
      clear();
      return NOTHING[tab.kind] ?? `Nothing is known of ${label.toLowerCase()} in this window.`;
    }
    body.replaceChildren(...tableOf(tab, label, found.rows, found.order));
    note.textContent = found.note;
    more.hidden = found.n < ROWS;
    more.setAttribute("aria-label", `More of ${label.toLowerCase()}`);
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
    element("div", { role: "tabpanel", id: `list-${n}-panel` }, element("table", { class: "rows" })),
    element("p", { class: "foot" }, element("span", { class: "window" }), element("button", { type: "button", class: "more", hidden: true }, "More")));
}

export function build() {
  $("lists").replaceChildren(...PANELS.map(panelOf));
  PANELS.forEach((_, n) => select(n, 0));
}

// Show the lists as skeletons until the figures are there.
export function wait() {
  PANELS.forEach((_, n) => $(`list-${n}`).setAttribute("aria-busy", "true"));
}

// Show all lists.  @about: {within: parameters of all questions, signal, filters, choose: called with a row's kind and value
// when it is clicked, hasVisitors: the visitors of the filters are counted}.
export function showAll(about) {
  asking = about;
  PANELS.forEach((_, n) => show(n));
}
