// common.js - what two pages, page sets, events or values have in common, and page sets themselves.
import { get, put } from "./api.js";
import { $, bar, fill, onSubmit, options, table } from "./dom.js";
import { KINDS, label, parameters } from "./filters.js";
import * as format from "./format.js";

let about = null; // what the panel is about: {within, filters, signal, change}, see aboutOf() in app.js

const chosen = () => ["a", "b"].map((side) => [$(`common-${side}-kind`).value, $(`common-${side}`).value.trim()]);

async function load() {
  const sides = about.filters;
  $("common").replaceChildren();
  if (sides.length < 2) {
    return "How many visitors two of these share: name them, or choose two rows of the lists.";
  }
  const answer = await get("overlap", { ...about.within, ...parameters(sides) }, about.signal);
  const { a, b, union, intersection, jaccard } = answer;
  const nameOf = (side, filter) => label(...Object.entries(side).find(([kind, name]) => kind in KINDS && name) ?? filter);
  const row = (name, { uv, error }) => [name, bar(union.uv > 0 ? uv / union.uv : 0, format.number(uv)),
    `${format.number(error.low)} to ${format.number(error.high)}`];
  table($("common"), "Visitors in common", ["Visitors of", "Number", "95\u202f% range"],
    [row(nameOf(a, sides[0]), a), row(nameOf(b, sides[1]), b), row("both", intersection), row("either", union)]);
  $("common-note").textContent = `Jaccard index ${format.decimal(jaccard.value)}`
    + (answer.significant === false ? "; the range is wider than half of the figure" : "");
  return "";
}

async function saveSet() {
  const name = $("set-name").value.trim();
  const pages = $("set-pages").value.split("\n").map((page) => page.trim()).filter((page) => page !== "");
  await put(`pagesets/${encodeURIComponent(name)}`, { site: about.within.site }, { pages });
  about.change({ filters: [["pageset", name]] });
  return "";
}

export function build() {
  for (const side of ["a", "b"]) {
    options($(`common-${side}-kind`), Object.entries(KINDS));
  }
  onSubmit("common-form", () => about.change({ filters: chosen().filter(([, value]) => value !== "") }));
  onSubmit("set-form", () => fill($("common-panel"), saveSet, () => {}));
}

export function show(next) {
  about = next;
  ["a", "b"].forEach((side, i) => {
    const [kind, value] = about.filters[i] ?? ["page", ""];
    $(`common-${side}-kind`).value = kind;
    $(`common-${side}`).value = value;
  });
  $("common-note").textContent = "";
  fill($("common-panel"), load, () => $("common").replaceChildren());
}

