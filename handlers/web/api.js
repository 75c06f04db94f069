// api.js - questions to the plain API, with a token where the API asks for one.
import { element } from "./dom.js";

const KEY = "tallyd-token";
const OF_LINK = "tallyd-token-of-link";
const PATIENCE_MS = 30000;
let asking = null; // a promise of the answer to the dialog that asks for a token; all questions that wait share it
let declined = false;

// The error of a question that was not answered; people read its message.
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEY);

// The header fields with the token.  A character that no header can carry becomes "?": no token has one, so it is refused.
export const authorization = () => token() === null ? {} : { Authorization: `Bearer ${token().replace(/[^ -~]/g, "?")}` };

// The token that a link to share may carry: one that came with a link.  A typed token may read all sites, or delete them.
export const tokenOfLink = () => sessionStorage.getItem(OF_LINK) === token() ? token() : null;

// Take the token of a link, which stands behind the #: no browser sends that part, and no log keeps it.  Then remove it
// from the address.
export function takeTokenOfLink() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    sessionStorage.setItem(OF_LINK, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

const field = element("input", { type: "password", id: "token", autocomplete: "off", required: true });
const why = element("p", { id: "token-why" }, "This server asks for a token with the scope read. It is kept until this tab is closed.");
const dialog = element("dialog", { id: "token-dialog", "aria-labelledby": "token-title" },
  element("form", { onsubmit: (event) => {
    event.preventDefault();
    dialog.close("token");
  } }, element("h2", { id: "token-title" }, "A token, please"), why, element("label", {}, "Token ", field),
  element("p", { class: "fields" }, element("button", { type: "submit" }, "Use it"),
    element("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"))));
document.body.append(dialog);

function askForToken(refused) {
  if (declined) {
    return false;
  }
  asking ??= new Promise((resolve) => {
    if (refused) {
      why.textContent = "The server does not know that token, or it lacks the scope read. Another?";
    }
    field.value = "";
    dialog.addEventListener("close", () => {
      asking = null;
      if (dialog.returnValue === "token" && field.value !== "") {
        sessionStorage.setItem(KEY, field.value.trim());
      }
      declined = dialog.returnValue !== "token";
      resolve(!declined);
      field.value = "";
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

function target(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null && one !== "") {
        query.append(name, one);
      }
    }
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

async function answerOf(where, request, signal) {
  const late = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await fetch(where, { ...request, cache: "no-store", signal: signal && AbortSignal.any ? AbortSignal.any([signal, late]) : signal ?? late });
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Refusal(0, error.name === "TimeoutError" ? "The server does not answer." : "The server cannot be reached.");
  }
}

// The response to a question.  If the server wants a token, the user is asked for one, and the question is sent again.
async function ask(path, { parameters = {}, signal, accept = "application/json", ...request }) {
  const known = token();
  const headers = { Accept: accept, ...authorization(), ...(request.body ? { "Content-Type": "application/json" } : {}) };
  const response = await answerOf(target(path, parameters), { ...request, headers }, signal);
  if (response.ok) {
    return response;
  }
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401 || problem.detail?.endsWith("the scope read")) {
    if (token() !== known || await askForToken(known !== null)) {
      return ask(path, { parameters, signal, accept, ...request });
    }
    throw new Refusal(401, "The server asks for a token. Load the page again to enter one.");
  }
  throw new Refusal(response.status, `${problem.detail ?? response.statusText} (${response.status})`);
}

export const get = async (path, parameters, signal) => (await ask(path, { parameters, signal })).json();
export const text = async (path, parameters, accept) => (await ask(path, { parameters, accept })).text();
export const put = async (path, parameters, body) => {
  await ask(path, { parameters, method: "PUT", body: JSON.stringify(body) });
};

// For a question that may fail: its answer is null then.  The error of a question that was aborted is thrown again.
export function orNull(error) {
  if (error.name === "AbortError") {
    throw error;
  }
  return null;
}
