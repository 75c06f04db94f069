// format.js - numbers, times and table cells.  No state, no requests.
"use strict";

const format = (() => {
  const whole = new Intl.NumberFormat("en-GB");
  const rate = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
  const steps = {
    "1M": { month: "short", year: "numeric" },
    "1w": { day: "numeric", month: "short" },
    "1d": { weekday: "short", day: "numeric", month: "short" },
  };
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

  function formatter(zone, options) {
    try {
      return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    } catch {  // a zone that the browser does not know
      return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
    }
  }

  return {
    number: (n) => whole.format(n),
    rate: (n) => rate.format(n),
    // A share with as many digits as matter.
    share: (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u202f%`,
    percent: (share) => `${Math.round(share * 100)}\u202f%`,

    // A time in full.
    time: (at, zone) => formatter(zone, { day: "numeric", month: "short", year: "numeric", ...clock }).format(new Date(at)),

    // A point of a series, as short as its step allows.
    tick(at, zone, step, midnight) {
      if (steps[step]) {
        return formatter(zone, steps[step]).format(new Date(at));
      }
      const text = formatter(zone, clock).format(new Date(at));
      return midnight && text === "00:00" ? formatter(zone, steps["1w"]).format(new Date(at)) : text;
    },

    // [text, class] of a change against the period before.
    change(now, before) {
      if (before === 0) {
        return [now === 0 ? "as before: none" : "none in the period before", ""];
      }
      const share = (now - before) / before;
      const sign = share > 0 ? "+" : share < 0 ? "\u2212" : "\u00b1";
      const digits = Math.abs(share) < 0.1 ? 1 : 0;
      return [`${sign}${Math.abs(share * 100).toFixed(digits)}\u202f% (before: ${whole.format(before)})`,
        share > 0 ? "up" : share < 0 ? "down" : ""];
    },

    element(name, attributes = {}, ...children) {
      const element = document.createElement(name);
      for (const [key, value] of Object.entries(attributes)) {
        element.setAttribute(key, value);
      }
      element.append(...children);
      return element;
    },

    // Fill a table: heads are [text, class], rows lists of text or nodes; the first cell heads its row.
    table(table, caption, heads, rows) {
      const { element } = format;
      const cell = (name, content, css, scope) =>
        element(name, { ...(css ? { class: css } : {}), ...(scope ? { scope } : {}) }, content);
      table.replaceChildren(
        element("caption", { class: "visually-hidden" }, caption),
        element("thead", {}, element("tr", {}, ...heads.map(([text, css]) => cell("th", text, css, "col")))),
        element("tbody", {}, ...rows.map((row) => element("tr", {},
          ...row.map((content, i) => i === 0 ? cell("th", content, heads[i][1], "row") : cell("td", content, heads[i][1]))))));
    },
  };
})();
