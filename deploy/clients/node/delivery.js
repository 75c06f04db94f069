'use strict';
// One attempt to deliver a batch: POST /events, and what the answer means.
const { promisify } = require('util');
const gzip = promisify(require('zlib').gzip);

// again: nothing of it is counted.  Any other status is 'in doubt': it may be counted, so it must be sent again with the same
// key and the same bytes, or not at all.
const VERDICTS = { 202: 'taken', 400: 'refused', 415: 'refused', 422: 'refused', 413: 'too large',
  401: 'again', 403: 'again', 404: 'again', 405: 'again', 429: 'again', 503: 'again' };
const LONGEST_WAIT_MS = 3600 * 1000;
const ANSWER_BYTES = 1 << 20;

/** POST /events of one tallyd.  Each request has a connection of its own, so none holds the process when it ends. */
class Endpoint {
  #url;
  #headers = { 'Content-Type': 'application/x-ndjson', 'Content-Encoding': 'gzip', 'User-Agent': 'tallyd-client-node' };
  #request = null;

  constructor(url, token, bots) {
    this.#url = new URL(url);
    if (!['http:', 'https:'].includes(this.#url.protocol)) throw new TypeError(`not an http or https URL: ${url}`);
    if (token && !/^[!-~]+$/.test(token)) throw new TypeError('a token has printable ASCII characters only');
    if (token) this.#headers.Authorization = `Bearer ${token}`;
    this.#url.pathname = this.#url.pathname.replace(/\/+$/, '') + '/events';
    this.#url.search = bots ? `?bots=${bots}` : '';
  }

  /** Send `lines` under the Idempotency-Key: {verdict, text, waitMs of a Retry-After, answer, an object}.  Never rejects for what
   *  the network does. */
  async post(lines, key, timeoutMs) {
    const body = await gzip(lines.join('\n') + '\n');
    return new Promise((resolve) => {
      let [verdict, text] = ['again', 'no connection'];
      const headers = { ...this.#headers, 'Idempotency-Key': key, 'Content-Length': body.length };
      const request = require(this.#url.protocol.slice(0, -1)).request(this.#url, { method: 'POST', agent: false, headers });
      const timer = setTimeout(() => request.destroy(new Error(`nothing within ${timeoutMs} ms`)), timeoutMs);
      const settle = (outcome) => { clearTimeout(timer); resolve(outcome); };
      const fail = (error) => settle({ verdict, text: `${text}: ${error.message}`, waitMs: 0, answer: {} });
      request.on('socket', (socket) => socket.once('connect', () => { [verdict, text] = ['in doubt', 'no answer']; }));
      request.on('error', fail);
      request.on('response', async (response) => {
        try {
          let told = Buffer.alloc(0);
          for await (const piece of response) {
            told = Buffer.concat([told, piece]);
            if (told.length > ANSWER_BYTES) throw new Error('the answer is too long');
          }
          settle(understand(response.statusCode, response.headers, told.toString()));
        } catch (error) {
          fail(error);
        }
      });
      this.#request = request;
      request.end(body);
    });
  }

  /** Wait no longer for the answer to what is being sent. */
  abort() {
    this.#request?.destroy(new Error('no more time'));
  }
}

/** What an answer means, as post() resolves to it. */
function understand(status, headers, body) {
  let answer = {};
  try {
    answer = Object(JSON.parse(body));
  } catch {
    // a proxy's own page, for example
  }
  const never = status === 429 && answer.retry_after_s === -1; // so many events never fit the limit
  const waitMs = retryAfter(headers['retry-after']) || (status === 429 ? 1000 : 0);
  return { verdict: never ? 'too large' : VERDICTS[status] || 'in doubt', text: `${status} ${answer.detail || ''}`.trim(), waitMs, answer };
}

/** Milliseconds that a Retry-After asks for, a number or a date; 0 if there is none that can be read. */
function retryAfter(text = '') {
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Math.min(Math.max(ms, 0) || 0, LONGEST_WAIT_MS);
}

module.exports = { Endpoint };
