'use strict';
// Page views for tallyd: queued, sent in the background, counted once.  README.md says how to use this module.
//
// Events collect in batches.  The oldest batch is sent under an Idempotency-Key of its own, with the same key and the
// same bytes again and again, until an answer says what became of it.
const { randomBytes } = require('crypto');
const { once } = require('events');
const fs = require('fs');
const net = require('net');
const path = require('path');
const { promisify } = require('util');
const gzip = promisify(require('zlib').gzip);

const PROTOCOLS = { 'http:': require('http'), 'https:': require('https') };
const EVENT_BYTES = 64 << 10; // one event
const BATCH_BYTES = 1 << 20; // one request, before gzip
const KEY_LIFE_MS = 23 * 3600 * 1000; // tallyd knows a key for 24 hours; one of them is for clocks that differ
const [BACK_OFF_MS, BACK_OFF_MAX_MS, RETRY_AFTER_MAX_MS] = [250, 30_000, 3600_000];

// What becomes of events, beside 202.  After any other status, or no answer, they may be counted: they must be sent
// again with the same key and the same bytes, or not at all.
const DROPPED = { 400: 'refused', 415: 'refused', 422: 'refused', 'no answer for a day': 'expired' };
const NOT_COUNTED = ['no connection', 401, 403, 404, 405, 413, 429, 503];

const whole = (value) => (Number.isInteger(value) ? value : 0);
const attempt = (act, otherwise) => { try { return act(); } catch { return otherwise; } };
const OWNER = `${process.pid}-${startOf(process.pid)}`;

/**
 * Sends page views to the tallyd at `url`, in the background.
 *
 * `site` is for events without one.  `bots`: 'drop' or 'count' events of known robots; null: as the server does.
 * `spool`: the beginning of names of files, so that the queue outlives the process.
 */
class Client {
  #url;
  #options;
  #headers = { 'Content-Type': 'application/x-ndjson', 'Content-Encoding': 'gzip' };
  #batches = []; // the last one may be open
  #closed = false;
  #running = false;
  #request = null; // under way
  #waiting = new Set();
  #counts = { tracked: 0, recovered: 0, accepted: 0, rejected: 0, filtered: 0, left: 0, requests: 0, retries: 0 };
  #dropped = {};
  #said = {};
  #beforeExit = () => { if (this.#batches.length > 0) this.close(); };

  constructor(url, { token, site, bots = 'drop', spool, queueEvents = 10_000, queueBytes = 16 << 20, batchEvents = 500,
    intervalMs = 1000, timeoutMs = 15_000, exitMs = 5000, log = console.warn } = {}) {
    this.#url = new URL(url);
    if (!(this.#url.protocol in PROTOCOLS)) throw new TypeError(`not an http or https URL: ${url}`);
    if (token && !/^[!-~]+$/.test(token)) throw new TypeError('a token has printable ASCII characters only');
    if (token) this.#headers.Authorization = `Bearer ${token}`;
    this.#url.pathname = this.#url.pathname.replace(/\/+$/, '') + '/events';
    this.#url.search = bots ? `?bots=${bots}` : '';
    this.#options = { site, spool: spool && path.resolve(spool), queueEvents, queueBytes, batchEvents, intervalMs,
      timeoutMs, exitMs, log };
    if (spool) this.#batches = recover(this.#options.spool);
    this.#counts.recovered = this.#queued();
    process.on('beforeExit', this.#beforeExit);
    this.#run();
  }

  /**
   * Queue an event of POST /events: `page`, and as `members` user, ip, ua, actions and so on.  `ts` is now if it is not
   * given.  False: the event is dropped, and stats() says why.  Never throws, never waits for the network.
   */
  track(page, members = {}) {
    this.#counts.tracked++;
    try {
      const event = { page, ...members };
      event.ts ??= Date.now();
      event.site ??= this.#options.site;
      return this.#queue(JSON.stringify(event, (name, value) => {
        if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${name} is no number`);
        return value ?? undefined;
      }));
    } catch (error) {
      return this.#complain('invalid', `an event cannot be sent: ${error.message}`, 1);
    }
  }

  #queue(line) {
    const [queued, bytes, batches, options] = [this.#queued(), Buffer.byteLength(line), this.#batches, this.#options];
    if (bytes > EVENT_BYTES) return this.#complain('invalid', `an event has more than ${EVENT_BYTES} bytes`, 1);
    if (this.#closed) return this.#complain('closed', 'the client is closed', 1);
    if (queued >= options.queueEvents || batches.reduce((sum, { size }) => sum + size, bytes) > options.queueBytes) {
      return this.#complain('full', `${queued} events wait: more are dropped`, 1);
    }
    if (!batches.at(-1)?.open) batches.push(new Batch(options.spool));
    const batch = batches.at(-1);
    this.#write(batch, line);
    batch.lines.push(line);
    batch.size += bytes;
    batch.open = batch.lines.length < options.batchEvents && batch.size < BATCH_BYTES - EVENT_BYTES;
    this.#notify();
    this.#run();
    return true;
  }

  #queued() {
    return this.#batches.reduce((n, { lines }) => n + lines.length, 0);
  }

  #write(batch, line) {
    if (this.#options.spool && !batch.write(line)) {
      this.#complain('spool', 'the spool takes no more: is the disk full?  Events are kept in memory only');
    }
  }

  /** Into the log, once a minute for each thing; and count what is dropped. */
  #complain(about, text, dropped = 0) {
    if (dropped > 0) this.#dropped[about] = whole(this.#dropped[about]) + dropped;
    const now = performance.now();
    if (now - (this.#said[about] ?? -Infinity) < 60_000) return false;
    this.#said[about] = now;
    attempt(() => this.#options.log(`tallyd-client: ${text}`));
    return false;
  }

  /** Counters: tracked + recovered === queued + accepted + rejected + filtered + the sum of dropped + left. */
  stats() {
    return { ...this.#counts, queued: this.#queued(), dropped: { ...this.#dropped } };
  }

  /** Send what is queued now, without waiting for more.  Resolves to true: all of it is done with. */
  async flush(timeoutMs = 30_000) {
    const last = this.#batches.at(-1);
    if (last) last.open = false;
    this.#notify();
    return this.#until(() => !this.#batches.includes(last), timeoutMs, true);
  }

  /**
   * Send what is queued, for `timeoutMs` at most (exitMs), and take no more.  What is left stays in the spool, for the
   * next process; without a spool it is dropped.  Resolves to true: nothing is left.
   */
  async close(timeoutMs = this.#options.exitMs) {
    process.removeListener('beforeExit', this.#beforeExit);
    this.#closed = true;
    if (!await this.flush(timeoutMs)) this.#request?.destroy();
    for (const batch of this.#batches.splice(0)) {
      const n = batch.lines.length;
      if (batch.fd === null) this.#complain('exit', `${n} events were not sent before the end`, n);
      else this.#counts.left += n;
      batch.close(true);
    }
    this.#notify();
    return this.#counts.left + whole(this.#dropped.exit) === 0;
  }

  /** Resolves to true when `holds()` does at a #notify(), to false after `ms`.  `stay`: the process waits for it. */
  #until(holds, ms, stay = false) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => end(false), ms);
      const end = (result) => { clearTimeout(timer); this.#waiting.delete(look); resolve(result); };
      const look = () => { if (holds()) end(true); };
      if (!stay) timer.unref();
      this.#waiting.add(look);
      look();
    });
  }

  #notify() {
    this.#waiting.forEach((look) => look());
  }

  /** Sends batches, the first one when it is due, until there is none. */
  async #run() {
    if (this.#running) return;
    this.#running = true;
    let failed = 0; // attempts, one after the other
    while (this.#batches.length > 0) {
      const [batch] = this.#batches;
      const dueMs = batch.born + this.#options.intervalMs - performance.now();
      await this.#until(() => !batch.open || this.#batches.at(-1) !== batch, Math.max(dueMs, 0));
      batch.open = false;
      const waitMs = await this.#attempt(batch);
      failed = waitMs === null ? 0 : failed + 1;
      const backOffMs = Math.min(BACK_OFF_MS * 2 ** failed, BACK_OFF_MAX_MS) * (0.5 + Math.random() / 2);
      const was = this.#closed; // a close() ends the first wait: there is no time for a long one
      if (failed > 0) await this.#until(() => this.#closed !== was, Math.max(waitMs, backOffMs));
    }
    this.#running = false;
  }

  /** Send the batch's next events.  Resolves to null: they are done with, or too many; else to the ms to wait. */
  async #attempt(batch) {
    const now = Date.now();
    if (!batch.since) {
      batch.n = Math.min(this.#options.batchEvents, batch.lines.length);
      this.#write(batch, `# ${batch.done} ${batch.n} ${now}`);
    }
    const lines = batch.lines.slice(0, batch.n);
    const tooLate = batch.since && now + this.#options.timeoutMs > batch.since + KEY_LIFE_MS;
    const outcome = tooLate ? { status: 'no answer for a day', answer: { detail: 'sent again they might count twice' } }
      : await this.#post(lines, `${batch.key}-${batch.done}-${batch.n}`);
    return this.#batches.includes(batch) ? this.#settle(batch, lines.length, outcome) : null; // null: by close()
  }

  /** Resolves to the status (or 'no connection', 'no answer'), the answer, an object, and the milliseconds to wait. */
  async #post(lines, key) {
    let status = 'no connection';
    this.#counts.requests++;
    try {
      const body = await gzip(lines.join('\n') + '\n');
      const headers = { ...this.#headers, 'Idempotency-Key': key, 'Content-Length': body.length };
      const signal = AbortSignal.timeout(this.#options.timeoutMs);
      const options = { method: 'POST', agent: false, headers, signal }; // agent: no connection is kept
      this.#request = PROTOCOLS[this.#url.protocol].request(this.#url, options);
      this.#request.on('socket', (socket) => socket.once('connect', () => { status = 'no answer'; }));
      this.#request.on('error', () => {}); // when the answer has begun, its reader gets the error
      this.#request.end(body);
      const [response] = await once(this.#request, 'response', { signal }); // a 101 is neither an answer nor an error
      let text = '';
      for await (const piece of response.setEncoding('utf8')) text = (text + piece).slice(0, BATCH_BYTES);
      status = response.statusCode;
      const after = response.headers['retry-after'] ?? (status === 429 ? 1 : 0);
      const answer = attempt(() => Object(JSON.parse(text)), {}); // a proxy's own page may be no JSON
      return { status, answer, waitMs: Math.min(Number(after) * 1000 || 0, RETRY_AFTER_MAX_MS) };
    } catch (error) {
      return { status, answer: { detail: error.message }, waitMs: 0 };
    }
  }

  /** What the status means for the first `n` events.  Returns what #attempt() resolves to. */
  #settle(batch, n, { status, answer, waitMs }) {
    const text = `${status}: ${typeof answer.detail === 'string' ? answer.detail : ''}`;
    const tooLarge = status === 413 || answer.retry_after_s === -1; // -1: so many never fit the limit
    if (status === 202) {
      const [filtered, rejected] = [whole(answer.dropped_total), whole(answer.rejected)];
      this.#counts.accepted += n - filtered - rejected;
      this.#counts.filtered += filtered;
      this.#counts.rejected += rejected;
      const errors = JSON.stringify(answer.errors)?.slice(0, 300);
      if (rejected > 0) this.#complain('rejected', `tallyd rejects ${rejected} of ${n} events: ${errors}`);
    } else if (status in DROPPED || (tooLarge && n === 1)) {
      this.#complain(DROPPED[status] ?? 'refused', `${n} events are dropped, ${text}`, n);
    } else if (tooLarge && !batch.since) {
      this.#options.batchEvents = Math.floor(n / 2); // from now on
      return null;
    } else {
      if (!NOT_COUNTED.includes(status)) batch.since ||= Date.now();
      this.#counts.retries++;
      this.#complain('again', `page views wait: ${text}`);
      return waitMs;
    }
    Object.assign(batch, { lines: batch.lines.slice(n), done: batch.done + n, since: 0 });
    if (batch.lines.length === 0) {
      this.#batches.splice(this.#batches.indexOf(batch), 1);
      batch.close();
      this.#notify();
    }
    return null;
  }
}

/**
 * Events that wait for an answer, and their file SPOOL.KEY-PID-START, which belongs to the process that began at START.
 *
 * A line of the file is an event, or `# DONE N SINCE`: the first DONE events are done with, and the next N are a
 * request, which may have been counted since SINCE (Date.now()).
 */
class Batch {
  lines = []; // that are not done with
  size = 0;
  open = true; // it takes more events
  born = performance.now();
  fd = null; // the events are in memory only
  #path;

  /** New; or, if there are `lines`, the file `left` by a process that is gone. */
  constructor(spool, key = Date.now().toString(16).padStart(12, '0') + randomBytes(10).toString('hex'), left = null) {
    Object.assign(this, { key, done: 0, n: 0, since: 0 }); // since 0: none of the n can be counted
    this.#path = `${spool}.${key}-${OWNER}`;
    try {
      if (left) fs.renameSync(left, this.#path); // which succeeds for one process only
      if (left) this.#read();
      if (spool) this.fd = fs.openSync(this.#path, 'a', 0o600);
    } catch {
      this.lines = []; // another process has them
    }
  }

  #read() {
    const data = fs.readFileSync(this.#path);
    fs.truncateSync(this.#path, data.lastIndexOf('\n') + 1); // half a line at the end is none
    for (const line of data.toString().split('\n').slice(0, -1)) {
      if (line.startsWith('#')) [this.done, this.n, this.since] = line.slice(1).trim().split(' ').map(Number);
      else this.lines.push(line);
    }
    Object.assign(this, { open: false, size: data.length, lines: this.lines.slice(this.done) });
  }

  /** False: the line is not in the file.  As a file must have all, there is none any more. */
  write(line) {
    const data = Buffer.from(line + '\n');
    const written = this.fd !== null && attempt(() => fs.writeSync(this.fd, data) === data.length, false);
    if (!written) this.close();
    return written;
  }

  close(keep = false) {
    if (this.fd === null) return;
    fs.closeSync(this.fd);
    this.fd = null;
    if (!keep) attempt(() => fs.unlinkSync(this.#path)); // if it stays, it is sent again with the same key
  }
}

/** When a process began, as Linux tells it; undefined: it is gone. */
function startOf(pid) {
  const stat = attempt(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1'), '');
  return /.*\) [^ZX] (?:\S+ ){18}(\d+)/s.exec(stat)?.[1];
}

/** What processes that are gone have left, the oldest first.  Throws: there can be no spool. */
function recover(spool) {
  if (!startOf(process.pid)) throw new Error('a spool needs /proc, as Linux has it');
  const files = fs.readdirSync(path.dirname(spool)).sort().map((name) => path.join(path.dirname(spool), name));
  return files.filter((file) => file.startsWith(`${spool}.`)).flatMap((file) => {
    const [, key, pid, start] = /^\.([0-9a-f]{32})-(\d+)-(\d+)$/.exec(file.slice(spool.length)) ?? [];
    if (!key || startOf(pid) === start) return [];
    const batch = new Batch(spool, key, file);
    if (batch.lines.length === 0) batch.close();
    return batch.lines.length > 0 ? [batch] : [];
  });
}

// Middleware counts what `tallyd import` counts of an access log: GET and POST, answered with 2xx or 304, and no file
// by its suffix.  The server leaves out known robots, and this module what a browser fetches in advance.

const FILE = new RegExp('\\.(css|js|mjs|map|json|xml|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf|otf|eot'
  + '|mp3|mp4|webm|ogg)$', 'i');
const UTM = ['utm_source', 'utm_medium', 'utm_campaign', 'utm_term', 'utm_content'];
const UTM_BYTES = 256;

/** The query's utm_ parameters, read as tallyd reads them: the first of a name that is UTF-8 without controls, cut. */
function campaign(query) {
  const found = {};
  for (const pair of query.split('&')) {
    const [, name, value] = /^(\w+)=(.+)$/s.exec(pair) ?? [];
    if (!UTM.includes(name) || name in found) continue;
    const byte = (_, hex) => String.fromCharCode(parseInt(hex, 16));
    const bytes = Buffer.from(value.replace(/\+/g, ' ').replace(/%([0-9a-f]{2})/gi, byte), 'latin1');
    if (!Buffer.from(bytes.toString()).equals(bytes) || bytes.some((c) => c < 0x20 || c === 0x7f)) continue;
    let end = UTM_BYTES;
    while ((bytes[end] & 0xc0) === 0x80) end--; // between two characters
    found[name] = bytes.subarray(0, end).toString();
  }
  return found;
}

/** The referrer, if it can be one and is no page of the host that was asked. */
function referrerOf({ referer, host }) {
  const name = (url) => attempt(() => new URL(url).hostname.toLowerCase().replace(/\.+$/, '').replace(/^www\./, ''));
  return /^[!-~]{1,4096}$/.test(referer ?? '') && name(referer) !== name(`http://${host ?? ''}`) ? referer : undefined;
}

/** The last address of X-Forwarded-For that no trusted proxy has, as tallyd's --trusted-proxies reads it. */
function clientAddress(peer, forwarded, trusted) {
  let address;
  const own = (peer ?? '').replace(/%.*$/, ''); // behind it the link of a link-local address is named
  const entries = (forwarded ?? '').split(',').filter((entry) => entry.trim()).reverse();
  for (const entry of [own, ...entries]) {
    const plain = entry.trim().replace(/^\[(.*)\].*$|^([^:]*):\d*$/, '$1$2').replace(/^::ffff:(?=[\d.]+$)/i, '');
    if (!net.isIP(plain) || plain.includes('%')) break;
    address = plain;
    if (!trusted.check(plain, net.isIPv6(plain) ? 'ipv6' : 'ipv4')) break;
  }
  return address;
}

/** `(req, res, next)`, as Express has it.  `user`: a function of the request, called when it has been answered. */
function middleware(client, { site, user, trustedProxies = [] } = {}) {
  const trusted = new net.BlockList();
  for (const network of trustedProxies) {
    const [address, bits] = network.split('/');
    const [family, all] = net.isIPv6(address) ? ['ipv6', 128] : ['ipv4', 32];
    trusted.addSubnet(address, Number(bits ?? all), family);
  }
  return (req, res, next) => {
    const ts = Date.now();
    const ip = clientAddress(req.socket.remoteAddress, req.headers['x-forwarded-for'], trusted);
    const target = (req.originalUrl || req.url).replace(/^https?:\/\/[^/?#]*/i, '').replace(/#.*$/s, '');
    const page = target.replace(/\?.*$/s, '') || '/';
    res.once('close', () => {
      const answered = res.headersSent && ((res.statusCode >= 200 && res.statusCode < 300) || res.statusCode === 304);
      if (!answered || !['GET', 'POST'].includes(req.method) || FILE.test(page)) return;
      if (/prefetch/.test(req.headers['sec-purpose'])) return;
      const who = attempt(() => user?.(req)); // the page is served, whoever it was
      const origin = { referrer: referrerOf(req.headers), ...campaign(target.replace(/^[^?]*\??/, '')) };
      client.track(page, { ts, user: who, site, ip, ua: req.headers['user-agent'], ...origin });
    });
    next?.();
  };
}

module.exports = { Client, middleware };
