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

// Make an element.  An attribute that is false or undefined is left out; one whose name begins with `on` is a listener.
export const element = (name, attributes = {}, ...children) => dress(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// Call @act when the form is submitted; the form itself is not sent to the server.
export const onSubmit = (id, act) => $(id).addEventListener("submit", (event) => {
  event.preventDefault();
  act();
});

export const options = (select, choices) =>
  select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));

// Fill a table with rows of texts or nodes.  The first @names columns are names, the others figures.  The first cell of a
// row is its header.
export function table(where, caption, heads, rows, names = 1) {
  const cell = (name, content, i, scope) => element(name, { class: i < names ? "name" : "n", scope }, content);
  where.replaceChildren(
    element("caption", { class: "visually-hidden" }, caption),
    element("thead", {}, element("tr", {}, ...heads.map((text, i) => cell("th", text, i, "col")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {},
      ...row.map((content, i) => i === 0 ? cell("th", content, i, "row") : cell("td", content, i))))));
}

// A text with a bar below it, which shows @share, from 0 to 1.
export function bar(share, text) {
  const line = element("span", { class: "bar", "aria-hidden": "true" });
  line.style.width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return element("span", { class: "share" }, text, line);
}

// Show @text as the panel's message.  @fault: the message is about an error, and not about what there is to see or do.
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

// Run @load, and show its result, a text, or its error as the panel's message.  Meanwhile the panel is a skeleton, unless it
// is filled again @quietly.  A question that was aborted shows nothing, because a newer one has taken its place.
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

// A promise that changes are on the screen.  It is resolved after 100 ms at the latest, as a hidden page is never painted.
export const painted = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 100);
});
