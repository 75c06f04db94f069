'use strict';
// A bounded queue and what empties it: 500 events or one second a batch, and each batch counts once.
const { randomUUID } = require('crypto');
const { promisify } = require('util');
const gzip = promisify(require('zlib').gzip);
const { Endpoint } = require('./delivery');
const { takeAll } = require('./spool');

const EVENT_BYTES = 64 << 10; // one event
const BATCH_BYTES = 1 << 20; // one request, before gzip
const KEY_LIFE_MS = 23 * 3600 * 1000; // tallyd knows a key for 24 hours; one of them is for clocks that differ
const BACK_OFF_MS = 250;
const BACK_OFF_MAX_MS = 30_000;

const whole = (value) => (Number.isInteger(value) ? value : 0);

/** Lines to send in order, and the spool that keeps them: this process's own, or one that was left behind. */
class Lane {
  constructor(spool = null) {
    this.spool = spool;
    this.lines = (spool?.lines || []).map((line) => ({ line, size: Buffer.byteLength(line) + 1, spooled: true }));
    this.begun = spool?.batch || null; // by a process that is gone: [how many lines, key, since], to be sent as they were
    if (spool) spool.lines = [];
  }
}

/**
 * Sends page views to the tallyd at `url`, in the background.
 *
 * `site` is for events without one.  `bots`: 'drop' or 'count' events of known robots; null: as the server does.  `spool`: a
 * path where the queue outlives the process.  When the process has nothing else to do close() waits for `exitMs` at most.
 */
class Client {
  #endpoint;
  #options;
  #lanes; // the last one is this process's own, the ones before were left behind
  #bytes = 0; // in the own lane
  #queued = 0; // lines of the own lane: ever queued, done with, wanted at once
  #finished = 0;
  #hurry = 0;
  #oldest = 0; // ms, performance.now(): since when an event waits
  #batchLimit;
  #closeBy = Infinity; // ms, performance.now(): close() waits until then
  #running = false;
  #timer = null;
  #pausing = null;
  #waiting = new Set(); // of flush(): called whenever lines are done with
  #counts = { tracked: 0, recovered: 0, accepted: 0, rejected: 0, filtered: 0, left: 0, requests: 0, retries: 0, unspooled: 0 };
  #dropped = {};
  #said = {};
  #beforeExit = () => { if (this.#holds()) this.close(); };
  #atExit = () => { if (!this.#holds()) this.#keep(() => this.#own.spool?.close(false)); };

  constructor(url, { token, site, bots = 'drop', spool, queueEvents = 10_000, queueBytes = 16 << 20, batchEvents = 500,
    intervalMs = 1000, timeoutMs = 15_000, exitMs = 5000, log = console.warn } = {}) {
    this.#endpoint = new Endpoint(url, token, bots);
    this.#options = { site, queueEvents, queueBytes, batchEvents, intervalMs, timeoutMs, exitMs, log };
    this.#batchLimit = batchEvents;
    const { own, left } = spool ? takeAll(spool) : { own: null, left: [] };
    this.#lanes = [...left.map((file) => new Lane(file)), new Lane(own)];
    this.#counts.recovered = this.#lanes.reduce((n, lane) => n + lane.lines.length, 0);
    process.on('beforeExit', this.#beforeExit);
    process.on('exit', this.#atExit);
    this.#schedule();
  }

  get #own() {
    return this.#lanes[this.#lanes.length - 1];
  }

  #holds() {
    return this.#lanes.some((lane) => lane.lines.length > 0);
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
    const own = this.#own;
    const size = Buffer.byteLength(line) + 1;
    if (this.#closeBy !== Infinity) return this.#drop('closed', 1, 'the client is closed');
    if (own.lines.length >= this.#options.queueEvents || this.#bytes + size > this.#options.queueBytes) {
      return this.#drop('full', 1, `${own.lines.length} events wait: more are dropped`);
    }
    const spooled = own.spool?.append(line) || false;
    if (own.spool && !spooled) {
      this.#counts.unspooled++;
      this.#complain('spool', 'the spool takes no more: is the disk full? Events are kept in memory only');
    }
    if (own.lines.length === 0) this.#oldest = performance.now();
    own.lines.push({ line, size, spooled });
    this.#bytes += size;
    this.#queued++;
    this.#schedule();
    return true;
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
    return { ...this.#counts, queued: this.#lanes.reduce((n, lane) => n + lane.lines.length, 0), dropped: { ...this.#dropped } };
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
    const target = this.#hurry = this.#queued;
    const isDone = () => this.#finished >= target && this.#lanes.length === 1;
    this.#schedule();
    return this.#until(isDone, timeoutMs);
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
    for (const lane of this.#lanes) {
      const kept = lane.lines.filter(({ spooled }) => spooled).length;
      const lost = lane.lines.length - kept;
      this.#counts.left += kept;
      if (lost > 0) this.#drop('exit', lost, `${lost} events were not sent before the end`);
      lane.lines = [];
      if (lane.spool !== null) this.#keep(() => lane.spool.close(kept > 0));
      lane.spool = null;
    }
    process.removeListener('exit', this.#atExit);
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
    const own = this.#own;
    if (performance.now() >= this.#closeBy || !this.#holds()) return false;
    return this.#lanes.length > 1 || this.#closeBy !== Infinity || own.begun !== null || own.lines.length >= this.#batchLimit
      || this.#bytes >= BATCH_BYTES || this.#finished < this.#hurry || performance.now() >= this.#oldest + this.#options.intervalMs;
  }

  #schedule() {
    if (this.#running) return;
    if (this.#due()) {
      this.#running = true;
      setImmediate(() => this.#run());
    } else if (this.#timer === null && this.#holds() && this.#closeBy === Infinity) {
      const wait = Math.max(1, this.#oldest + this.#options.intervalMs - performance.now());
      this.#timer = setTimeout(() => { this.#timer = null; this.#schedule(); }, wait);
      this.#timer.unref();
    }
  }

  async #run() {
    try {
      while (this.#due() && await this.#deliver(this.#choose()));
    } catch (error) { // no memory, say
      this.#complain('again', `page views wait: ${error.stack}`);
      await this.#pause(1000);
    }
    this.#running = false;
    this.#schedule();
    for (const look of [...this.#waiting]) look();
  }

  /** A batch; what another process began is sent as it was. */
  #choose() {
    const lane = this.#lanes.find(({ lines }) => lines.length > 0);
    const batch = (n, key, doubtSince) => ({ lane, n, key, doubtSince, spooled: lane.lines[0].spooled, lines: lane.lines.slice(0, n).map(({ line }) => line) });
    if (lane.begun !== null) {
      const [n, key, since] = lane.begun;
      lane.begun = null;
      return batch(n, key, since);
    }
    let n = 0;
    let size = 0;
    for (const { size: more, spooled } of lane.lines) {
      if (n === this.#batchLimit || spooled !== lane.lines[0].spooled || (n > 0 && size + more > BATCH_BYTES)) break;
      n++;
      size += more;
    }
    return batch(n, randomUUID(), null);
  }

  /** Try until the batch is done with or is found too large.  False: close() has no more time for it. */
  async #deliver(batch) {
    const body = await gzip(batch.lines.join('\n') + '\n');
    for (let attempt = 1; ; attempt++) {
      const now = Date.now();
      if (batch.spooled && batch.lane.spool === null) return false; // close() has given up on it
      if (batch.spooled && !batch.lane.spool.isOwn()) return this.#lose(batch.lane);
      if (batch.doubtSince !== null && now + this.#options.timeoutMs > batch.doubtSince + KEY_LIFE_MS) {
        return this.#finish(batch, 'expired', 'an attempt a day ago was not answered, and tallyd has forgotten its key: sent again the '
          + 'events might count twice');
      }
      if (batch.spooled && batch.doubtSince === null) this.#keep(() => batch.lane.spool.begin(batch.lines, batch.key, now));
      const outcome = await this.#endpoint.post(body, batch.key, Math.max(100, Math.min(this.#options.timeoutMs, this.#closeBy - performance.now())));
      this.#counts.requests++;
      if (outcome.inDoubt) batch.doubtSince ??= now;
      if (outcome.verdict === 'taken') return this.#finish(batch, null, '', outcome.answer);
      if (outcome.verdict === 'refused' || (outcome.verdict === 'too large' && batch.n === 1)) {
        return this.#finish(batch, 'refused', `tallyd refuses a batch: ${outcome.text}`);
      }
      if (outcome.verdict === 'too large' && batch.doubtSince === null) {
        this.#batchLimit = Math.floor(batch.n / 2); // nothing of it was counted: its halves are batches of their own
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
      this.#complain('spool', `the spool cannot be written: ${error.message}`);
    }
  }

  /** Another process has taken the spool while this one stood still: its lines are that process's to send. */
  #lose(lane) {
    const n = lane.lines.filter(({ spooled }) => spooled).length;
    this.#counts.left += n;
    if (lane === this.#own) {
      this.#finished += n;
      this.#bytes -= lane.lines.reduce((sum, { size, spooled }) => sum + (spooled ? size : 0), 0);
    } else {
      this.#lanes.splice(this.#lanes.indexOf(lane), 1);
    }
    lane.lines = lane.lines.filter(({ spooled }) => !spooled);
    lane.spool.close(true);
    lane.spool = null;
    return true;
  }

  /** The batch's lines are done with: counted by tallyd, or dropped because of `why`.  True. */
  #finish(batch, why, text, answer) {
    const { lane, n } = batch;
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
    const gone = lane.lines.splice(0, n);
    if (batch.spooled) this.#keep(() => lane.spool.done(batch.lines));
    if (lane === this.#own) {
      this.#finished += n;
      this.#bytes -= gone.reduce((sum, { size }) => sum + size, 0);
      this.#oldest = performance.now();
    } else if (lane.lines.length === 0) {
      this.#lanes.splice(this.#lanes.indexOf(lane), 1);
      lane.spool.close(false);
    }
    for (const look of [...this.#waiting]) look();
    return true;
  }
}

module.exports = { Client };
