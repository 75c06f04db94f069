'use strict';
// One attempt to deliver a batch: POST /events, and what the answer means.
//
// | answer | verdict | in doubt: may it have been counted? |
// |---|---|---|
// | 202 | taken | no |
// | 400, 415, 422 | refused: the batch would be refused again | no |
// | 413; 429 that says it can never fit | too large: smaller batches may pass | no |
// | 429, 503, 401, 403, 404, 405; no connection | again | no |
// | 500, 502, 504, any other; a connection that broke or was silent | again | yes |
//
// A batch in doubt must be sent again with the same key and the same bytes, or not at all.
const http = require('http');
const https = require('https');

const LONGEST_WAIT_MS = 3600 * 1000;
const ANSWER_BYTES = 1 << 20;

/** POST /events of one tallyd, over a connection that is kept.  One request at a time. */
class Endpoint {
  #url;
  #http;
  #agent;
  #headers;
  #request = null;

  constructor(url, token, bots) {
    this.#url = new URL(url);
    if (!['http:', 'https:'].includes(this.#url.protocol)) throw new TypeError(`not an http or https URL: ${url}`);
    if (token && !/^[!-~]+$/.test(token)) throw new TypeError('a token has printable ASCII characters only');
    this.#url.pathname = this.#url.pathname.replace(/\/+$/, '') + '/events';
    this.#url.search = bots ? `?bots=${bots}` : '';
    this.#http = this.#url.protocol === 'https:' ? https : http;
    this.#agent = new this.#http.Agent({ keepAlive: true, maxSockets: 1 });
    this.#headers = { 'Content-Type': 'application/x-ndjson', 'Content-Encoding': 'gzip', 'User-Agent': 'tallyd-client-node' };
    if (token) this.#headers.Authorization = `Bearer ${token}`;
  }

  /** Send `body`, gzipped NDJSON, under the Idempotency-Key: {verdict, text, inDoubt, waitMs, answer}.  Never rejects. */
  async post(body, key, timeoutMs) {
    const outcome = await this.#try(body, key, timeoutMs);
    // the other end had closed a connection that was idle: no fault yet
    return outcome.stale ? this.#try(body, key, timeoutMs) : outcome;
  }

  /** Wait no longer for the answer to what is being sent. */
  abort() {
    this.#request?.destroy(new Error('no more time'));
  }

  close() {
    this.#agent.destroy();
  }

  #try(body, key, timeoutMs) {
    return new Promise((resolve) => {
      let connected = false;
      const request = this.#http.request(this.#url, {
        method: 'POST', agent: this.#agent,
        headers: { ...this.#headers, 'Idempotency-Key': key, 'Content-Length': body.length },
      });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const settle = (outcome) => {
        clearTimeout(timer);
        this.#request = null;
        resolve(outcome);
      };
      this.#request = request;
      request.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => { connected = true; });
        else connected = true;
      });
      request.on('error', (error) => settle({
        verdict: 'again', text: connected ? `no answer: ${error.message}` : `no connection: ${error.message}`, inDoubt: connected, waitMs: 0,
        stale: request.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code),
      }));
      request.on('response', (response) => {
        const pieces = [];
        let n = 0;
        response.on('data', (piece) => {
          n += piece.length;
          if (n > ANSWER_BYTES) response.destroy(new Error('the answer is too long'));
          else pieces.push(piece);
        });
        response.on('error', (error) => settle({ verdict: 'again', text: `no answer: ${error.message}`, inDoubt: true, waitMs: 0 }));
        response.on('end', () => settle(understand(response.statusCode, response.headers, Buffer.concat(pieces).toString())));
      });
      request.end(body);
    });
  }
}

/** What an answer means; see the table above. */
function understand(status, headers, body) {
  let answer = {};
  try {
    answer = Object(JSON.parse(body));
  } catch {
    // a proxy's own page, for example
  }
  const text = `${status} ${answer.detail || ''}`.trim();
  const waitMs = retryAfter(headers['retry-after']);
  const outcome = (verdict, inDoubt, wait = 0) => ({ verdict, text, inDoubt, waitMs: wait, answer });
  if (status === 202) return outcome('taken', false);
  if ([400, 415, 422].includes(status)) return outcome('refused', false);
  if (status === 413 || (status === 429 && answer.retry_after_s === -1)) return outcome('too large', false);
  if (status === 429) return outcome('again', false, waitMs || 1000);
  return outcome('again', ![401, 403, 404, 405, 503].includes(status), waitMs);
}

/** Milliseconds that a Retry-After asks for, a number or a date; 0 if there is none that can be read. */
function retryAfter(text) {
  if (!text) return 0;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_WAIT_MS) : 0;
}

module.exports = { Endpoint, understand, retryAfter };
