// dom.js - elements, tables, bars and panels of the page.  No requests.
export const $ = (id) => document.getElementById(id);

function dress(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children);
  return made;
}

// An attribute that is false or undefined is left out; on...: a listener.
export const element = (name, attributes = {}, ...children) => dress(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// @act on the form's fields when it is sent; nothing is sent.
export const onSubmit = (id, act) => $(id).addEventListener("submit", (event) => {
  event.preventDefault();
  act();
});

export const options = (select, choices) =>
  select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));

// Fill a table of rows of text or nodes.  The first @names columns are names, the others figures; the first cell heads its row.
export function table(where, caption, heads, rows, names = 1) {
  const cell = (name, content, i, scope) => element(name, { class: i < names ? "name" : "n", scope }, content);
  where.replaceChildren(
    element("caption", { class: "visually-hidden" }, caption),
    element("thead", {}, element("tr", {}, ...heads.map((text, i) => cell("th", text, i, "col")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {},
      ...row.map((content, i) => i === 0 ? cell("th", content, i, "row") : cell("td", content, i))))));
}

// A text with a bar of a share, 0 to 1, below it.
export function bar(share, text) {
  const line = element("span", { class: "bar", "aria-hidden": "true" });
  line.style.width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return element("span", { class: "share" }, text, line);
}

// @fault: it is about what went wrong, and not about what there is to see or do.
export function say(panel, text, fault = false) {
  let box = panel.querySelector(":scope > .message");
  if (box === null) {
    box = element("p", { class: "message" });
    (panel.querySelector(":scope > .head") ?? panel.firstElementChild).after(box);
  }
  box.textContent = text ?? "";
  box.classList.toggle("fault", fault);
  box.hidden = !text;
}

// Run @load, whose answer, or what went wrong, is said in the panel.  Until then the panel is a skeleton, but where
// it is filled again @quietly.  A question that a newer one has ended says nothing.
export async function fill(panel, load, clear, quietly = false) {
  if (!quietly) {
    panel.setAttribute("aria-busy", "true");
  }
  try {
    say(panel, await load());
  } catch (error) {
    if (error.name === "AbortError") {
      return;
    }
    if (quietly) {
      say(panel, `Not refreshed: ${error.message}`, true);
    } else {
      clear();
      say(panel, error.message, true);
    }
  }
  panel.removeAttribute("aria-busy");
}

// What has been changed is on the screen; in a page that nobody looks at nothing is painted, so not for long.
export const painted = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 100);
});
