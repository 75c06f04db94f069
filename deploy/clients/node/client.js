'use strict';
// A bounded queue and what empties it: 500 events or one second a batch, and each batch counts once.
const path = require('path');
const { Endpoint } = require('./delivery');
const { Batch, takeLeft } = require('./spool');

const EVENT_BYTES = 64 << 10; // one event
const BATCH_BYTES = 1 << 20; // one request, before gzip
const KEY_LIFE_MS = 23 * 3600 * 1000; // tallyd knows a key for 24 hours; one of them is for clocks that differ
const BACK_OFF_MS = 250;
const BACK_OFF_MAX_MS = 30_000;

const whole = (value) => (Number.isInteger(value) ? value : 0);

/** Resolves to true when `promise` does, to false after so many milliseconds. */
const within = (promise, ms) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms, false);
  promise.then(() => { clearTimeout(timer); resolve(true); });
});

/**
 * Sends page views to the tallyd at `url`, in the background.
 *
 * `site` is for events without one.  `bots`: 'drop' or 'count' events of known robots; null: as the server does.  `spool`: the
 * beginning of names of files, so that the queue outlives the process.  When the process has nothing else to do close() waits
 * for `exitMs` at most.
 */
class Client {
  #endpoint;
  #options;
  #batches; // the last one may be open
  #most; // events in a request
  #closed = false;
  #running = false;
  #timer = null; // until the first batch is due
  #endPause = () => {};
  #counts = { tracked: 0, recovered: 0, accepted: 0, rejected: 0, filtered: 0, left: 0, requests: 0, retries: 0, unspooled: 0 };
  #dropped = {};
  #said = {};
  #beforeExit = () => { if (this.#batches.length > 0) this.close(); };

  constructor(url, { token, site, bots = 'drop', spool, queueEvents = 10_000, queueBytes = 16 << 20, batchEvents = 500,
    intervalMs = 1000, timeoutMs = 15_000, exitMs = 5000, log = console.warn } = {}) {
    this.#endpoint = new Endpoint(url, token, bots);
    this.#options = { site, spool: spool && path.resolve(spool), queueEvents, queueBytes, intervalMs, timeoutMs, exitMs, log };
    this.#most = batchEvents;
    this.#batches = spool ? takeLeft(this.#options.spool) : [];
    this.#counts.recovered = this.#queued();
    process.on('beforeExit', this.#beforeExit);
    this.#wake();
  }

  /**
   * Queue an event of POST /events: `page`, and as `members` user, ip, ua, actions and so on.  `ts` is now if it is not given.
   * False: the event is dropped, and stats() says why.  Never throws, never waits for the network.
   */
  track(page, members = {}) {
    this.#counts.tracked++;
    try {
      return this.#queue(this.#line({ page, ...members }));
    } catch (error) {
      return this.#drop('invalid', 1, `an event cannot be sent: ${error.message}`);
    }
  }

  #line(event) {
    event.ts ??= Date.now();
    event.site ??= this.#options.site;
    const line = JSON.stringify(event, (name, value) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${name} is no number`);
      return value === null ? undefined : value;
    });
    if (Buffer.byteLength(line) > EVENT_BYTES) throw new RangeError(`it has more than ${EVENT_BYTES} bytes`);
    return line;
  }

  #queue(line) {
    const [queued, batches, { spool, queueEvents, queueBytes }] = [this.#queued(), this.#batches, this.#options];
    if (this.#closed) return this.#drop('closed', 1, 'the client is closed');
    if (queued >= queueEvents || batches.reduce((sum, { size }) => sum + size, Buffer.byteLength(line)) > queueBytes) {
      return this.#drop('full', 1, `${queued} events wait: more are dropped`);
    }
    if (!batches.at(-1)?.open) batches.push(new Batch(spool));
    if (!batches.at(-1).append(line)) {
      batches.push(new Batch()); // the file has the lines before this one
      batches.at(-1).append(line);
    }
    const batch = batches.at(-1);
    if (spool && batch.fd === null) {
      this.#counts.unspooled++;
      this.#complain('spool', 'the spool takes no more: is the disk full? Events are kept in memory only');
    }
    batch.open = batch.lines.length < this.#most && batch.size < BATCH_BYTES - EVENT_BYTES;
    this.#wake();
    return true;
  }

  /** Counters: tracked + recovered === queued + accepted + rejected + filtered + the sum of dropped + left. */
  stats() {
    return { ...this.#counts, queued: this.#queued(), dropped: { ...this.#dropped } };
  }

  #queued() {
    return this.#batches.reduce((n, { left }) => n + left, 0);
  }

  #drop(why, n, text) {
    this.#dropped[why] = (this.#dropped[why] || 0) + n;
    this.#complain(why, text);
    return false;
  }

  /** Into the log, once a minute for each thing. */
  #complain(about, text) {
    const now = performance.now();
    if (now - (this.#said[about] ?? -Infinity) < 60_000) return;
    this.#said[about] = now;
    try {
      this.#options.log(`tallyd-client: ${text}`);
    } catch {
      // an application does not fail for its statistics
    }
  }

  /** Change the spool.  Where its disk fails a kill may now count a batch twice, and the log says so.  False: the file is not there. */
  #keep(change) {
    try {
      change();
    } catch (error) {
      if (error.code === 'ENOENT') return false;
      this.#complain('spool', `the spool cannot be written: is the disk full? ${error.message}`);
    }
    return true;
  }

  /** Send what is queued now, without waiting for more.  Resolves to true: all of it is done with. */
  async flush(timeoutMs = 30_000) {
    const last = this.#batches.at(-1);
    if (last === undefined) return true;
    last.open = false;
    this.#wake();
    return within(last.finished, timeoutMs);
  }

  /**
   * Send what is queued, for `timeoutMs` at most (exitMs), and take no more.  What is left stays in the spool, for the next
   * process; without a spool it is dropped.  Resolves to true: nothing is left.
   */
  async close(timeoutMs = this.#options.exitMs) {
    process.removeListener('beforeExit', this.#beforeExit);
    this.#closed = true;
    this.#endPause(); // there is no time for a long one
    if (!await this.flush(timeoutMs)) this.#endpoint.abort();
    while (this.#batches.length > 0) this.#end(this.#batches[0], true);
    this.#endPause();
    return this.#counts.left + whole(this.#dropped.exit) === 0;
  }

  /** Milliseconds until the first batch is to be sent. */
  #dueIn() {
    const [first, next] = this.#batches;
    if (first === undefined) return Infinity;
    return first.open && next === undefined ? first.born + this.#options.intervalMs - performance.now() : 0;
  }

  #wake() {
    const ms = this.#dueIn();
    if (this.#running || ms === Infinity) return;
    this.#running = ms <= 0;
    if (this.#running) setImmediate(() => this.#run()); // what one turn of the loop tracks goes together
    else this.#timer ??= setTimeout(() => { this.#timer = null; this.#wake(); }, ms).unref();
  }

  async #run() {
    for (let failed = 0; this.#dueIn() <= 0;) {
      const waitMs = await this.#attempt(this.#batches[0]).catch((error) => this.#again(error.message, 1000)); // no memory, say
      failed = waitMs === null ? 0 : failed + 1;
      const backOff = Math.min(BACK_OFF_MS * 2 ** failed, BACK_OFF_MAX_MS);
      if (failed > 0) await this.#pause(Math.max(waitMs, backOff * (0.5 + Math.random() / 2)));
    }
    this.#running = false;
    this.#wake();
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#endPause = () => { clearTimeout(timer); resolve(); };
    });
  }

  /** Send the batch's next lines.  Resolves to null: they are done with, or too many; else so many ms tallyd wants to be left alone. */
  async #attempt(batch) {
    const now = Date.now();
    batch.open = false;
    if (batch.since && now + this.#options.timeoutMs > batch.since + KEY_LIFE_MS) {
      return this.#finish(batch, 'expired', 'an attempt a day ago was not answered, and tallyd has forgotten its key: sent again the '
        + 'events might count twice');
    }
    if (!batch.since) batch.n = Math.min(this.#most, batch.left);
    if (!this.#keep(() => batch.mark(batch.since || now))) return this.#end(batch, true); // it is another process's to send
    const lines = batch.lines.slice(batch.done, batch.done + batch.n);
    const { verdict, text, waitMs, answer } = await this.#endpoint.post(lines, `${batch.key}-${batch.done}-${batch.n}`, this.#options.timeoutMs);
    this.#counts.requests++;
    if (!this.#batches.includes(batch)) return null; // close() has given up on it meanwhile
    if (verdict === 'taken') return this.#finish(batch, null, '', answer);
    if (verdict === 'refused' || (verdict === 'too large' && batch.n === 1)) return this.#finish(batch, 'refused', `tallyd refuses a batch: ${text}`);
    if (verdict === 'too large' && !batch.since) {
      this.#most = Math.floor(batch.n / 2); // nothing of it is counted: its halves are requests of their own
      return null;
    }
    if (verdict === 'in doubt') batch.since ||= now;
    return this.#again(text, waitMs);
  }

  #again(text, waitMs) {
    this.#complain('again', `page views wait: ${text}`);
    this.#counts.retries++;
    return waitMs;
  }

  /** The batch's request is done with: counted by tallyd, or dropped because of `why`. */
  #finish(batch, why, text, answer) {
    const { n } = batch;
    if (why !== null) {
      this.#drop(why, n, text);
    } else {
      const [filtered, rejected] = [whole(answer.dropped_total), whole(answer.rejected)];
      this.#counts.filtered += filtered;
      this.#counts.rejected += rejected;
      this.#counts.accepted += n - filtered - rejected;
      if (rejected > 0) this.#complain('rejected', `tallyd rejects ${rejected} of ${n} events, the first ones: ${JSON.stringify(answer.errors)?.slice(0, 300)}`);
    }
    Object.assign(batch, { done: batch.done + n, n: 0, since: 0 });
    if (batch.left === 0) return this.#end(batch, false);
    this.#keep(() => batch.mark(0));
    return null;
  }

  /** The batch leaves the queue.  Its file, if it has one, may be for the next process. */
  #end(batch, leave = false) {
    this.#batches.splice(this.#batches.indexOf(batch), 1);
    if (batch.fd !== null) this.#counts.left += batch.left;
    else if (batch.left > 0) this.#drop('exit', batch.left, `${batch.left} events were not sent before the end`);
    this.#keep(() => batch.close(leave));
    if (!leave) batch.finish();
    return null;
  }
}

module.exports = { Client };
