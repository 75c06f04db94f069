// app.js - what the page shows: the state in its address, one function a panel.
"use strict";

(() => {
  const { element } = format;
  const $ = (id) => document.getElementById(id);
  const FIGURES = ["pv", "uv", "visits", "ips"];
  const NAMES = { pv: "Page views", uv: "Visitors", visits: "Visits", ips: "IP addresses" };
  const REFRESH_MS = 10000;

  // Windows, and as much of the period before them as has passed of them, so that a change compares
  // like with like.  `until`: the end of all of that period, where it is not `from`, whose minute would be rounded up.
  // Borders lie where buckets are kept: minutes for two days, then hours, then days.
  const RANGES = {
    "15m": { from: "now-14m", to: "now", before: ["now-29m", "now-15m"], until: "now-15m", step: "1m", words: "15 minutes" },
    "24h": { from: "now-23h/h", to: "now", before: ["now-47h/h", "now-24h"], step: "1h", words: "24 hours" },
    "7d": { from: "now-6d/d", to: "now", before: ["now-13d/d", "now-7d"], step: "1d", words: "7 days" },
    "30d": { from: "now-29d/d", to: "now", before: ["now-59d/d", "now-30d"], step: "1d", words: "30 days" },
    "12M": { from: "now-11M/M", to: "now", before: ["now-23M/M", "now-12M"], step: "1M", words: "12 months" },
  };
  const COHORTS = { day: 10, week: 8, month: 6 };
  const DEFAULTS = { site: "default", range: "24h", from: "", to: "", tz: "", page: "", period: "week", steps: "" };

  let state = { ...DEFAULTS };
  let chart = null;
  let series = null;  // {rows, zone, step}: what the chart shows
  let current = new AbortController();

  // ---- state, in the address ----

  function readAddress() {
    const query = new URLSearchParams(location.search);
    state = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) {
      state[name] = query.get(name) ?? DEFAULTS[name];
    }
    if (!(state.range in RANGES) && state.range !== "custom") {
      state.range = DEFAULTS.range;
    }
    if (!(state.period in COHORTS)) {
      state.period = DEFAULTS.period;
    }
  }

  function address() {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) {
      const unused = (name === "from" || name === "to") && state.range !== "custom";
      if (value !== DEFAULTS[name] && !unused) {
        query.set(name, value);
      }
    }
    const text = query.toString();
    return location.pathname + (text === "" ? "" : `?${text}`);
  }

  function change(changes) {
    Object.assign(state, changes);
    history.pushState(null, "", address());
    show();
  }

  function addDays(date, n) {
    const day = new Date(`${date}T00:00:00Z`);
    day.setUTCDate(day.getUTCDate() + n);
    return day.toISOString().slice(0, 10);
  }

  function daysBetween(from, to) {
    return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / 86400000);
  }

  // {from, to, before: [from, to], step, words}; null: the custom window is not one.
  function range() {
    if (state.range !== "custom") {
      return RANGES[state.range];
    }
    const n = daysBetween(state.from, state.to) + 1;
    if (!(n >= 1)) {
      return null;
    }
    return { from: state.from, to: addDays(state.to, 1), before: [addDays(state.from, -n), state.from], step: "auto",
      words: n === 1 ? "day" : `${n} days` };
  }

  // ---- messages ----

  function message(panel, text) {
    const box = $(`${panel}-message`);
    box.textContent = text ?? "";
    box.hidden = !text;
  }

  // Run @load; what goes wrong stands in the panel.  A newer question makes an older one silent.
  async function fill(panel, section, load, clear) {
    section.setAttribute("aria-busy", "true");
    try {
      message(panel, await load());
    } catch (error) {
      if (error.name === "AbortError") {
        return;
      }
      clear();
      message(panel, error.message);
    }
    section.removeAttribute("aria-busy");
  }

  // ---- figures, changes, series ----

  function clearFigures() {
    for (const name of FIGURES) {
      $(name).textContent = "–";
      $(`${name}-change`).textContent = "";
    }
    $("uv-error").textContent = $("ips-error").textContent = $("window").textContent = "";
    message("series", "");
    showSeries(null);
  }

  function showFigures(stats) {
    for (const name of FIGURES) {
      const has = stats[name] !== null;
      $(name).textContent = has ? format.number(stats[name]) : "–";
      $(name).dataset.value = has ? stats[name] : "";
    }
    for (const name of ["uv", "ips"]) {
      const { low, high } = stats.error[name] ?? { low: 0, high: 0 };
      $(`${name}-error`).textContent = low === high ? "" : `${format.number(low)} to ${format.number(high)} (95\u202f%)`;
    }
    $("window").textContent = `${format.time(stats.from, stats.tz)} to ${format.time(stats.to, stats.tz)}, ${stats.tz}`
      + (stats.spans_rotation ? ". Visitors without an id may be counted once per rotation period." : "");
  }

  function showChanges(stats, before) {
    for (const name of FIGURES) {
      const [text, direction] = before === null || stats[name] === null ? ["", ""] : format.change(stats[name], before[name]);
      $(`${name}-change`).textContent = text;
      $(`${name}-change`).className = `change ${direction}`;
      $(`${name}-change`).title = before === null ? ""
        : `compared with ${format.time(before.from, before.tz)} to ${format.time(before.to, before.tz)}`;
    }
  }

  async function loadFigures(asked, signal) {
    const window = range();
    if (window === null) {
      clearFigures();
      return "Choose the first and the last day of the window.";
    }
    const stats = await api.get("stats", { ...asked, from: window.from, to: window.to, step: window.step, round: "outer" }, signal);
    showFigures(stats);
    showSeries({ rows: stats.series, zone: stats.tz, step: stats.step ?? window.step });
    $("status").textContent = `${format.number(stats.pv)} page views, ${format.number(stats.uv)} visitors`;
    const before = await api.get("stats", { ...asked, from: window.before[0], to: window.before[1], round: "outer" }, signal)
      .catch((error) => {
        if (error.name === "AbortError") {
          throw error;
        }
        return null;  // older than what is kept
      });
    // Rounded to what is kept, the period before may reach into this one: no comparison then.
    const apart = before !== null && Date.parse(before.to) <= Date.parse(stats.from);
    showChanges(stats, apart ? before : null);
    return stats.pv > 0 ? "" : `No page views in ${state.range === "custom" ? "this window" : `the last ${window.words}`}. `
      + "Events go to POST /events; `tallyd import access.log` brings in a web server's log.";
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries([...FIGURES, "soft", "line"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Chart.js has no time axis without an adapter: a linear one, with ticks at buckets.
  function ticksOf(axis) {
    const every = Math.ceil(series.rows.length / Math.max(2, Math.floor(axis.width / 90)));
    axis.ticks = series.rows.filter((_, i) => i % every === 0).map((row) => ({ value: Date.parse(row.from) }));
  }

  function chartOf(rows) {
    const colour = colours();
    const animation = matchMedia("(prefers-reduced-motion: reduce)").matches ? false : { duration: 200 };
    const grid = { color: colour.line };
    const last = rows.length - 1;
    return {
      type: "line",
      data: {
        datasets: FIGURES.map((name) => ({
          label: NAMES[name], borderColor: colour[name], backgroundColor: colour[name], borderWidth: 2, clip: 6,
          pointRadius: rows.length > 60 ? 0 : 3, hidden: !$(`show-${name}`).checked, tension: 0.2,
          segment: { borderDash: (at) => at.p1DataIndex === last && state.range !== "custom" ? [4, 4] : undefined },  // not over yet
          data: rows.map((row) => ({ x: Date.parse(row.from), y: row[name] })),
        })),
      },
      options: {
        animation, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
        scales: {
          x: { type: "linear", grid, afterBuildTicks: ticksOf,
            min: last > 0 ? Date.parse(rows[0].from) : undefined, max: last > 0 ? Date.parse(rows[last].from) : undefined,
            ticks: { color: colour.soft, maxRotation: 0, callback: (at) => format.tick(at, series.zone, series.step, true) } },
          y: { beginAtZero: true, grid, ticks: { color: colour.soft, precision: 0 } },
        },
        plugins: {
          legend: { display: false },  // the boxes above the chart, which a keyboard reaches
          tooltip: { callbacks: { title: ([item]) => format.time(item.parsed.x, series.zone) } },
        },
      },
    };
  }

  function drawChart() {
    chart?.destroy();
    chart = series === null ? null : new Chart($("chart"), chartOf(series.rows));
  }

  function showSeries(next) {
    series = next?.rows ? next : null;
    drawChart();
    const rows = series === null ? [] : series.rows;
    format.table($("series-table"), "Figures over time", [["From", ""], ...FIGURES.map((name) => [NAMES[name], "n"])],
      rows.map((row) => [format.time(row.from, series.zone), ...FIGURES.map((name) => format.number(row[name]))]));
  }

  // ---- the query plan ----

  async function loadPlan(asked, signal) {
    const window = range();
    if (!$("how").open || window === null) {
      return "";
    }
    const { cover, from, to } = await api.get("uv", { ...asked, from: window.from, to: window.to, round: "outer", explain: 1 }, signal);
    const levels = ["month", "day", "hour", "minute"];
    const used = levels.filter((level) => cover[level] > 0).map((level) => `${format.number(cover[level])} ${level}${cover[level] === 1 ? "" : "s"}`);
    const table = element("table");
    format.table(table, "Redis keys of the window's visitors", [["Bucket", ""], ["From, UTC", ""], ["To, UTC", ""], ["Redis key", "name"]],
      cover.list.slice(0, 100).map((key) => [key.level, format.time(key.from, "UTC"), format.time(key.to, "UTC"), element("code", {}, key.key)]));
    $("how-plan").replaceChildren(
      element("p", {}, `The visitors of ${format.time(from, "UTC")} to ${format.time(to, "UTC")} (UTC) are one union of `
        + `${format.number(cover.keys)} HyperLogLog${cover.keys === 1 ? "" : "s"}: ${used.join(", ") || "none"}. Nothing is added up, so nobody counts twice.`),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys of the plan" }, table),
      ...(cover.list.length > 100 ? [element("p", {}, `and ${format.number(cover.list.length - 100)} more`)] : []));
    return "";
  }

  // ---- pages ----

  function pageButton(page) {
    const button = element("button", { type: "button", "aria-pressed": String(page === state.page), title: "Show this page only" }, page);
    button.addEventListener("click", () => change({ page: page === state.page ? "" : page }));
    return button;
  }

  async function loadPages(asked, signal) {
    const window = range();
    if (window === null) {
      clearTable("pages");
      return "";
    }
    const { site, tz } = asked;
    const answer = await api.get("pages", { site, tz, from: window.from, to: window.to, round: "outer", by: "pv", limit: 10 }, signal);
    format.table($("pages"), "Top pages", [["Page", "name"], ["Page views", "n"], ["Visitors", "n"]],
      answer.pages.map((row) => [pageButton(row.page), format.number(row.pv), format.number(row.uv)]));
    $("pages-total").textContent = answer.pages.length === 0 ? "" : `${format.number(answer.total_pages)} page${answer.total_pages === 1 ? "" : "s"} in all`;
    return answer.pages.length === 0 ? "No pages in this window." : "";
  }

  function clearTable(id) {
    $(id).replaceChildren();
    if (id === "pages") {
      $("pages-total").textContent = "";
    }
  }

  async function loadHot(signal) {
    const answer = await api.get("hotkeys", { limit: 1000 }, signal);
    const rows = answer.pages.filter((row) => row.site === state.site).slice(0, 5);
    if (rows.length === 0) {
      clearTable("hot");
      return "Nothing was written or asked for in the last half minute.";
    }
    format.table($("hot"), "Hot pages of the last half minute", [["Page", "name"], ["Writes/s", "n"], ["Reads/s", "n"]],
      rows.map((row) => [row.page, format.rate(row.writes_per_s), format.rate(row.reads_per_s)]));
    return "";
  }

  // ---- people ----

  async function loadActive(signal) {
    const { site } = state;
    const [day, week, month] = await Promise.all([
      api.get("dau", { site }, signal),
      api.get("active", { site, from: "now-6d", to: "now" }, signal),
      api.get("active", { site, from: "now-29d", to: "now" }, signal),
    ]);
    $("dau").textContent = format.number(day.users);
    $("wau").textContent = format.number(week.users);
    $("mau").textContent = format.number(month.users);
    return "";
  }

  function clearActive() {
    $("dau").textContent = $("wau").textContent = $("mau").textContent = "–";
  }

  function firstCohort(today, period, n) {
    if (period === "month") {
      const first = new Date(`${today.slice(0, 7)}-01T00:00:00Z`);
      first.setUTCMonth(first.getUTCMonth() - (n - 1));
      return first.toISOString().slice(0, 10);
    }
    return addDays(today, -(n - 1) * (period === "week" ? 7 : 1));
  }

  function heat(entry) {
    const cell = element("span", { title: `${format.number(entry.users)} users` }, format.percent(entry.rate));
    cell.dataset.heat = entry.rate === 0 ? "" : `h${Math.min(5, 1 + Math.floor(entry.rate * 5))}`;
    return cell;
  }

  async function loadRetention(signal) {
    const { site, period } = state;
    const n = COHORTS[period];
    const { date } = await api.get("dau", { site }, signal);
    const { cohorts } = await api.get("retention", { site, period, cohort: firstCohort(date, period, n), days: n - 1, cohorts: n }, signal);
    const heads = [["Cohort", ""], ["Users", "n"], ...Array.from({ length: n - 1 }, (_, i) => [`+${i + 1}`, "n"])];
    if (cohorts.every((cohort) => cohort.size === 0)) {
      clearTable("retention");
      return `No users with an id in the last ${n} ${period}s.`;
    }
    format.table($("retention"), `Users of a ${period} who came back in later ${period}s`, heads, cohorts.map((cohort) =>
      [cohort.cohort, format.number(cohort.size), ...Array.from({ length: n - 1 }, (_, i) =>
        i < cohort.returned.length && cohort.size > 0 ? heat(cohort.returned[i]) : "")]));
    for (const cell of $("retention").querySelectorAll("[data-heat]")) {
      if (cell.dataset.heat !== "") {
        cell.parentElement.classList.add(cell.dataset.heat);
      }
    }
    return "";
  }

  // ---- what refreshes ----

  async function loadNow(signal) {
    const { uv } = await api.get("uv", { site: state.site, page: state.page, from: "now-4m", to: "now" }, signal);
    $("now").textContent = format.number(uv);
  }

  function refresh() {
    const { signal } = current;
    loadNow(signal).catch(() => {
      if (!signal.aborted) {
        $("now").textContent = "–";
      }
    });
    loadHot(signal).then((text) => message("hot", text), (error) => {
      if (error.name !== "AbortError") {
        clearTable("hot");
        message("hot", error.message);
      }
    });
  }

  async function loadSites() {
    try {
      const { sites } = await api.get("sites");
      $("sites").replaceChildren(...sites.map((site) => element("option", { value: site })));
      if (!new URLSearchParams(location.search).has("site") && sites.length > 0 && !sites.includes(state.site)) {
        state.site = sites[0];  // nobody asked for the default one, and it has no data
        history.replaceState(null, "", address());
      }
    } catch {
      $("sites").replaceChildren();  // the name can be typed
    }
  }

  // ---- all of it ----

  function showControls() {
    $("site").value = state.site;
    $("tz").value = state.tz;
    $("from").value = state.from;
    $("to").value = state.to;
    $("period").value = state.period;
    $("steps").value = state.steps;
    $("custom").hidden = state.range !== "custom";
    for (const radio of document.querySelectorAll("input[name=range]")) {
      radio.checked = radio.value === state.range;
    }
    $("filter").hidden = state.page === "";
    $("filter-page").textContent = state.page;
    document.title = `${state.page || state.site} – tallyd`;
  }

  // @load fills the panel's table from the window that is chosen.
  function fillTable(panel, load) {
    const clear = () => {
      clearTable(panel);
      const note = $(`${panel}-note`);
      if (note !== null) {
        note.textContent = "";
      }
    };
    fill(panel, $(panel).closest("section"), () => {
      const window = range();
      if (window === null) {
        clear();
        return "";
      }
      return load(window);
    }, clear);
  }

  function showBehaviour(asked, signal) {
    fillTable("events", (window) => behaviour.events(asked, window, signal));
    fillTable("returning", (window) => behaviour.returning(asked, window, signal));
    fillTable("funnel", (window) => behaviour.funnel(asked.site, state.steps, window, signal));
    fillTable("frequency", () => behaviour.frequency(asked.site, signal));
  }

  function show() {
    current.abort();
    current = new AbortController();
    const { signal } = current;
    const asked = { site: state.site, page: state.page, tz: state.tz };
    showControls();
    fill("figures", $("figures"), () => loadFigures(asked, signal), clearFigures);
    fill("how", $("how"), () => loadPlan(asked, signal), () => $("how-plan").replaceChildren());
    fill("pages", $("pages").parentElement, () => loadPages(asked, signal), () => clearTable("pages"));
    fill("active", $("dau").closest("section"), () => loadActive(signal), clearActive);
    fill("retention", $("retention").closest("section"), () => loadRetention(signal), () => clearTable("retention"));
    showBehaviour(asked, signal);
    refresh();
  }

  function applyControls() {
    const chosen = document.querySelector("input[name=range]:checked").value;
    const next = { site: $("site").value.trim(), tz: $("tz").value.trim(), range: chosen, from: $("from").value, to: $("to").value };
    if (chosen === "custom" && next.from === "" && next.to === "") {
      const today = new Date().toISOString().slice(0, 10);
      next.from = addDays(today, -6);
      next.to = today;
    }
    if (next.site !== state.site) {
      next.page = "";
    }
    if ($("controls").reportValidity()) {
      change(next);
    }
  }

  function listen() {
    $("controls").addEventListener("submit", (event) => {
      event.preventDefault();
      applyControls();
    });
    $("controls").addEventListener("change", applyControls);
    $("period").addEventListener("change", () => change({ period: $("period").value }));
    $("funnel-form").addEventListener("submit", (event) => {
      event.preventDefault();
      change({ steps: $("steps").value.trim() });
    });
    $("shown").addEventListener("change", drawChart);
    $("filter-clear").addEventListener("click", () => {
      change({ page: "" });
      $("figures").focus();
    });
    $("how").addEventListener("toggle", () => {
      const asked = { site: state.site, page: state.page, tz: state.tz };
      fill("how", $("how"), () => loadPlan(asked, current.signal), () => $("how-plan").replaceChildren());
    });
    window.addEventListener("popstate", () => {
      readAddress();
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawChart);
    setInterval(() => {
      if (!document.hidden) {
        refresh();
      }
    }, REFRESH_MS);
  }

  async function start() {
    readAddress();
    showControls();
    const zones = Intl.supportedValuesOf?.("timeZone") ?? [];
    $("zones").replaceChildren(...["UTC", ...zones].map((zone) => element("option", { value: zone })));
    listen();
    await loadSites();
    show();
    document.querySelector("main").removeAttribute("aria-busy");
  }

  start();
})();
