// api.js - questions to the plain API, with a token where it asks for one.
"use strict";

const api = (() => {
  const KEY = "tallyd-token";
  let asking = null;  // one dialog for all questions that wait for a token

  // A question that was not answered; the message is for people.
  class Refusal extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
    }
  }

  function askForToken(refused) {
    asking ??= new Promise((resolve) => {
      const dialog = document.getElementById("token-dialog");
      const field = document.getElementById("token");
      const why = document.getElementById("token-why");
      if (refused) {
        why.textContent = "The server does not know that token. Another one, with the scope read?";
      }
      field.value = "";
      dialog.addEventListener("close", () => {
        asking = null;
        if (dialog.returnValue === "token" && field.value !== "") {
          sessionStorage.setItem(KEY, field.value.trim());
        }
        resolve(dialog.returnValue === "token");
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
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null && one !== "") {
          query.append(name, one);
        }
      }
    }
    const text = query.toString();
    return text === "" ? path : `${path}?${text}`;
  }

  async function get(path, parameters = {}, signal = undefined) {
    const token = sessionStorage.getItem(KEY);
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    let response;
    try {
      response = await fetch(target(path, parameters), { headers, signal, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") {
        throw error;
      }
      throw new Refusal(0, "The server cannot be reached.");
    }
    if (response.status === 401) {
      if (sessionStorage.getItem(KEY) !== token || await askForToken(token !== null)) {
        return get(path, parameters, signal);
      }
      throw new Refusal(401, "The server asks for a token. Load the page again to enter one.");
    }
    const body = await response.json().catch(() => ({}));
    if (response.status === 404) {
      throw new Refusal(404, `This server has no /${path}.`);
    }
    if (!response.ok) {
      throw new Refusal(response.status, `${body.detail ?? response.statusText} (${response.status})`);
    }
    return body;
  }

  document.getElementById("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    document.getElementById("token-dialog").close("token");
  });
  document.getElementById("token-cancel").addEventListener("click", () => {
    document.getElementById("token-dialog").close("");
  });

  return { get };
})();
