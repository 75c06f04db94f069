'use strict';
// A bounded queue and what empties it: 500 events or one second a batch, and each batch counts once.
const { randomUUID } = require('crypto');
const { promisify } = require('util');
const gzip = promisify(require('zlib').gzip);
const { Endpoint } = require('./delivery');
const spools = require('./spool');

const EVENT_BYTES = 64 << 10; // one event
const BATCH_BYTES = 1 << 20; // one request, before gzip
const KEY_LIFE_MS = 23 * 3600 * 1000; // tallyd knows a key for 24 hours; one of them is for clocks that differ
const BACK_OFF_MS = 250;
const BACK_OFF_MAX_MS = 30_000;

const whole = (value) => (Number.isInteger(value) ? value : 0);

/** Lines, of which the first `done` are done with and the next `n` are a request, first sent at `since`. */
class Batch {
  key = randomUUID();
  lines = [];
  size = 0;
  file = null; // which has all the lines, or none
  open = true; // takes more lines
  done = 0;
  n = 0;
  since = 0; // Date.now(); 0: nothing can have been counted of these n

  get left() {
    return this.lines.length - this.done;
  }
}

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
  #batches = [];
  #hurry = null; // the last batch that flush() waits for
  #oldest = 0; // ms, performance.now(): since when an event of the first batch waits
  #batchLimit;
  #closeBy = Infinity; // ms, performance.now(): close() waits until then
  #running = false;
  #timer = null;
  #pausing = null;
  #waiting = new Set(); // of flush(): called whenever lines are done with
  #counts = { tracked: 0, recovered: 0, accepted: 0, rejected: 0, filtered: 0, left: 0, requests: 0, retries: 0, unspooled: 0 };
  #dropped = {};
  #said = {};
  #beforeExit = () => { if (this.#batches.length > 0) this.close(); };

  constructor(url, { token, site, bots = 'drop', spool, queueEvents = 10_000, queueBytes = 16 << 20, batchEvents = 500,
    intervalMs = 1000, timeoutMs = 15_000, exitMs = 5000, log = console.warn } = {}) {
    this.#endpoint = new Endpoint(url, token, bots);
    this.#options = { site, spool, queueEvents, queueBytes, batchEvents, intervalMs, timeoutMs, exitMs, log };
    this.#batchLimit = batchEvents;
    for (const file of spool ? spools.takeLeft(spool) : []) {
      const batch = Object.assign(new Batch(), file.left, { file, open: false });
      batch.size = batch.lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      this.#counts.recovered += batch.left;
      this.#batches.push(batch);
    }
    process.on('beforeExit', this.#beforeExit);
    this.#schedule();
  }

  // ---- events in ------------------------------------------------------------------------------------

  /**
   * Queue an event of POST /events: `page`, and as `members` user, ip, ua, actions and so on.  `ts` is now if it is not given.
   * False: the event is dropped, and stats() says why.  Never throws, never waits for the network.
   */
  track(page, members = {}) {
    this.#counts.tracked++;
    let line;
    try {
      line = this.#line({ page, ...members });
    } catch (error) {
      return this.#drop('invalid', 1, `an event cannot be sent: ${error.message}`);
    }
    const size = Buffer.byteLength(line) + 1;
    const waits = this.#waits();
    if (this.#closeBy !== Infinity) return this.#drop('closed', 1, 'the client is closed');
    if (waits >= this.#options.queueEvents || this.#batches.reduce((sum, batch) => sum + batch.size, size) > this.#options.queueBytes) {
      return this.#drop('full', 1, `${waits} events wait: more are dropped`);
    }
    let batch = this.#batchFor(size);
    if (batch.file !== null && !batch.file.append(line)) {
      batch.open = false; // the file has the lines before this one
      batch = this.#newBatch(false);
    }
    if (this.#options.spool && batch.file === null) {
      this.#counts.unspooled++;
      this.#complain('spool', 'the spool takes no more: is the disk full? Events are kept in memory only');
    }
    batch.lines.push(line);
    batch.size += size;
    batch.open = batch.lines.length < this.#batchLimit && batch.size < BATCH_BYTES;
    this.#schedule();
    return true;
  }

  #batchFor(size) {
    const last = this.#batches.at(-1);
    return last?.open && last.size + size <= BATCH_BYTES ? last : this.#newBatch(Boolean(this.#options.spool));
  }

  #newBatch(spooled) {
    const batch = new Batch();
    if (spooled) this.#keep(() => { batch.file = spools.create(this.#options.spool, batch.key); });
    if (this.#batches.length === 0) this.#oldest = performance.now();
    this.#batches.push(batch);
    return batch;
  }

  #line(event) {
    if (event.ts === undefined || event.ts === null) event.ts = Date.now();
    event.site ??= this.#options.site;
    const line = JSON.stringify(event, (name, value) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${name} is no number`);
      return value === null ? undefined : value;
    });
    if (Buffer.byteLength(line) > EVENT_BYTES) throw new RangeError(`it has more than ${EVENT_BYTES} bytes`);
    return line;
  }

  // ---- what became of them ----------------------------------------------------------------------------

  /** Counters: tracked + recovered === queued + accepted + rejected + filtered + the sum of dropped + left. */
  stats() {
    return { ...this.#counts, queued: this.#waits(), dropped: { ...this.#dropped } };
  }

  #waits() {
    return this.#batches.reduce((n, batch) => n + batch.left, 0);
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

  // ---- events out -------------------------------------------------------------------------------------

  /** Send what is queued now, without waiting for more.  Resolves to true: all of it is done with. */
  flush(timeoutMs = 30_000) {
    const last = this.#hurry = this.#batches.at(-1);
    if (last === undefined) return Promise.resolve(true);
    last.open = false;
    this.#schedule();
    return this.#until(() => !this.#batches.includes(last), timeoutMs);
  }

  /**
   * Send what is queued, for `timeoutMs` at most (exitMs), and take no more.  What is left stays in the spool, for the next
   * process; without a spool it is dropped.  Resolves to true: nothing is left.
   */
  async close(timeoutMs = this.#options.exitMs) {
    if (this.#closeBy === Infinity) {
      this.#closeBy = performance.now() + timeoutMs;
      process.removeListener('beforeExit', this.#beforeExit);
      this.#pausing?.(true);
      this.#schedule();
    }
    const left = Math.max(0, this.#closeBy - performance.now());
    const isIdle = () => !this.#running;
    if (!await this.#until(isIdle, left)) {
      this.#endpoint.abort();
      await this.#until(isIdle, 1000);
    }
    for (const batch of this.#batches.splice(0)) {
      if (batch.file !== null) {
        this.#counts.left += batch.left;
        this.#keep(() => batch.file.close(true));
      } else {
        this.#drop('exit', batch.left, `${batch.left} events were not sent before the end`);
      }
    }
    this.#endpoint.close();
    return this.#counts.left + whole(this.#dropped.exit) === 0;
  }

  #until(isTrue, timeoutMs) {
    if (isTrue()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const look = () => {
        if (!isTrue()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(true);
      };
      const timer = setTimeout(() => { this.#waiting.delete(look); resolve(isTrue()); }, timeoutMs);
      this.#waiting.add(look);
    });
  }

  #due() {
    if (this.#batches.length === 0 || performance.now() >= this.#closeBy) return false;
    return !this.#batches[0].open || this.#closeBy !== Infinity || this.#batches.includes(this.#hurry)
      || performance.now() >= this.#oldest + this.#options.intervalMs;
  }

  #schedule() {
    if (this.#running) return;
    if (this.#due()) {
      this.#running = true;
      setImmediate(() => this.#run());
    } else if (this.#timer === null && this.#batches.length > 0 && this.#closeBy === Infinity) {
      const wait = Math.max(1, this.#oldest + this.#options.intervalMs - performance.now());
      this.#timer = setTimeout(() => { this.#timer = null; this.#schedule(); }, wait);
      this.#timer.unref();
    }
  }

  async #run() {
    try {
      while (this.#due() && await this.#deliver(this.#batches[0]));
    } catch (error) { // no memory, say
      this.#complain('again', `page views wait: ${error.stack}`);
      await this.#pause(1000);
    }
    this.#running = false;
    this.#schedule();
    for (const look of [...this.#waiting]) look();
  }

  /** Send the batch's next lines until they are done with or found too many.  False: close() has no more time for it. */
  async #deliver(batch) {
    batch.open = false;
    if (!batch.since) batch.n = Math.min(this.#batchLimit, batch.left);
    const body = await gzip(batch.lines.slice(batch.done, batch.done + batch.n).join('\n') + '\n');
    for (let attempt = 1; ; attempt++) {
      const now = Date.now();
      if (!this.#batches.includes(batch)) return false; // close() has given up on it
      if (batch.file !== null && !batch.file.isOwn()) return this.#lose(batch);
      if (batch.since && now + this.#options.timeoutMs > batch.since + KEY_LIFE_MS) {
        return this.#finish(batch, 'expired', 'an attempt a day ago was not answered, and tallyd has forgotten its key: sent again the '
          + 'events might count twice');
      }
      if (batch.file !== null && !batch.since) this.#keep(() => batch.file.mark(batch.key, batch.done, batch.n, now));
      const timeoutMs = Math.max(100, Math.min(this.#options.timeoutMs, this.#closeBy - performance.now()));
      const outcome = await this.#endpoint.post(body, `${batch.key}-${batch.done}-${batch.n}`, timeoutMs);
      this.#counts.requests++;
      if (outcome.inDoubt) batch.since ||= now;
      if (outcome.verdict === 'taken') return this.#finish(batch, null, '', outcome.answer);
      if (outcome.verdict === 'refused' || (outcome.verdict === 'too large' && batch.n === 1)) {
        return this.#finish(batch, 'refused', `tallyd refuses a batch: ${outcome.text}`);
      }
      if (outcome.verdict === 'too large' && !batch.since) {
        this.#batchLimit = Math.floor(batch.n / 2); // nothing of it was counted: its halves are requests of their own
        return true;
      }
      this.#complain('again', `page views wait: ${outcome.text}`);
      this.#counts.retries++;
      const backOff = Math.min(BACK_OFF_MS * 2 ** attempt, BACK_OFF_MAX_MS);
      if (!await this.#pause(Math.max(outcome.waitMs, backOff * (0.5 + Math.random() / 2)))) return false;
    }
  }

  /** Wait before the next attempt; a close() meanwhile makes that the last one.  Resolves to false: there is no time for one. */
  #pause(ms) {
    if (performance.now() + ms >= this.#closeBy) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (value) => { clearTimeout(timer); this.#pausing = null; resolve(value); };
      const timer = setTimeout(end, ms, true);
      if (this.#closeBy === Infinity) timer.unref();
      this.#pausing = end;
    });
  }

  /** Change the spool.  Where its disk fails a kill may now count a batch twice, and the log says so. */
  #keep(change) {
    try {
      change();
    } catch (error) {
      this.#complain('spool', `the spool cannot be written: is the disk full? ${error.message}`);
    }
  }

  /** Another process has taken the file while this one stood still: its lines are that process's to send. */
  #lose(batch) {
    this.#counts.left += batch.left;
    this.#batches.splice(this.#batches.indexOf(batch), 1);
    this.#keep(() => batch.file.close(true));
    return true;
  }

  /** The batch's request is done with: counted by tallyd, or dropped because of `why`.  True. */
  #finish(batch, why, text, answer) {
    const { n } = batch;
    if (!this.#batches.includes(batch)) return true; // close() has given up on it meanwhile
    if (why !== null) {
      this.#drop(why, n, text);
    } else {
      const [filtered, rejected] = [whole(answer.dropped_total), whole(answer.rejected)];
      delete this.#said.again;
      this.#counts.filtered += filtered;
      this.#counts.rejected += rejected;
      this.#counts.accepted += n - filtered - rejected;
      if (rejected > 0) this.#complain('rejected', `tallyd rejects ${rejected} of ${n} events, the first ones: ${JSON.stringify(answer.errors?.slice(0, 3))}`);
    }
    Object.assign(batch, { done: batch.done + n, n: 0, since: 0 });
    if (batch.left === 0) {
      this.#batches.splice(this.#batches.indexOf(batch), 1);
      this.#oldest = performance.now();
      if (batch.file !== null) this.#keep(() => batch.file.close(false));
    } else if (batch.file !== null) {
      this.#keep(() => batch.file.mark(batch.key, batch.done, 0, 0));
    }
    for (const look of [...this.#waiting]) look();
    return true;
  }
}

module.exports = { Client };
