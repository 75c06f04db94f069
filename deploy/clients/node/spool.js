'use strict';
// A batch, and its file of the spool: what is in the file survives the process.
//
// The file has an event a line and lies beside PATH as PATH.OWNER.KEY-DONE-N-SINCE: the first DONE events are done with, and the
// next N may have been sent, first at SINCE (0: none).  The name changes before a request, which needs no room on the disk.
//
// Node has no file locks, so the name is the lock: OWNER names the boot and pid namespace, the process, its start and its
// thread.  A file whose process is gone is taken by renaming it: that succeeds for one only.  Of a process that cannot be
// seen from here, in another container for example, the file's time tells: its owner sets it every ten seconds.
const fs = require('fs');
const path = require('path');
const { randomUUID } = require('crypto');
const { threadId } = require('worker_threads');

const HEARTBEAT_MS = 10_000;
const GONE_MS = 60_000;

const attempt = (act, otherwise) => { try { return act(); } catch { return otherwise; } };
const started = (pid) => attempt(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')[19], '');
const SEEN_FROM_HERE = attempt(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
  + fs.readlinkSync('/proc/self/ns/pid').replace(/\D/g, ''), 'x');
const OWNER = [SEEN_FROM_HERE, process.pid, started(process.pid), threadId].join('_');
const mine = new Set(); // the Batches of this thread that have files
let heartbeat = null;

/** Lines, of which the first `done` are done with and the next `n` are a request, first sent at `since`. */
class Batch {
  lines = [];
  size = 0;
  open = true; // takes more lines
  born = performance.now();
  finished = new Promise((resolve) => { this.finish = resolve; });
  #spool;
  fd; // of the file, which has all the lines; null: they are in memory only

  /** New and empty, with a file if there can be one; or the file `name` that a process that is gone has left. */
  constructor(spool, name = `${randomUUID()}-0-0-0`) {
    const [, key, ...numbers] = /^(.*)-(\d+)-(\d+)-(\d+)$/.exec(name);
    [this.done, this.n, this.since] = numbers.map(Number); // since: Date.now(); 0: none of these n can be counted
    Object.assign(this, { key, path: `${spool}.${OWNER}.${name}` });
    this.#spool = spool;
    this.fd = attempt(() => (spool ? fs.openSync(this.path, 'a', 0o600) : null), null);
    if (this.fd !== null) mine.add(this);
    heartbeat ??= setInterval(() => mine.forEach((batch) => attempt(() => fs.futimesSync(batch.fd, new Date(), new Date()))), HEARTBEAT_MS).unref();
  }

  get left() {
    return this.lines.length - this.done;
  }

  /** False: the file does not take the line: the disk is full, or another process has taken the file, because this one stood
   *  still.  Then nothing more may be appended. */
  append(line) {
    const data = Buffer.from(line + '\n');
    if (this.fd !== null && !(fs.existsSync(this.path) && attempt(() => fs.writeSync(this.fd, data) === data.length, false))) return false;
    this.lines.push(line);
    this.size += data.length;
    return true;
  }

  /** Say in the file's name how far the batch is.  Throws ENOENT: another process has taken the file. */
  mark(since) {
    if (this.fd === null) return;
    const name = `${this.#spool}.${OWNER}.${this.key}-${this.done}-${this.n}-${since}`;
    fs.renameSync(this.path, name);
    this.path = name;
  }

  close(keep = false) {
    if (this.fd === null) return;
    mine.delete(this);
    fs.closeSync(this.fd);
    this.fd = null;
    if (!keep) fs.rmSync(this.path, { force: true });
  }
}

/** Is the process gone that made the file?  A Client of this thread that is closed has left its files to the next one. */
function isGone(file, owner) {
  const [seen, pid, start] = owner.split('_');
  if (owner === OWNER) return ![...mine].some((batch) => batch.path === file);
  if (seen !== SEEN_FROM_HERE || !start) return Date.now() - fs.statSync(file).mtimeMs > GONE_MS;
  return started(pid) !== start;
}

/** The Batches that processes that are gone have left, the oldest first.  `spool` is absolute.  Throws: there can be no spool. */
function takeLeft(spool) {
  const taken = [];
  for (const file of fs.readdirSync(path.dirname(spool)).map((name) => path.join(path.dirname(spool), name))) {
    const [, owner, name] = /^\.(\w*_\w*_\w*_\d+)\.([0-9a-f-]{36}-\d+-\d+-\d+)$/.exec(file.slice(spool.length)) || [];
    if (!owner || !file.startsWith(spool)) continue;
    attempt(() => { // it throws where another process has just taken the file
      if (!isGone(file, owner)) return;
      const time = fs.statSync(file).mtimeMs;
      fs.renameSync(file, `${spool}.${OWNER}.${name}`);
      const batch = new Batch(spool, name);
      batch.lines = fs.readFileSync(batch.path, 'utf8').split('\n').slice(0, -1); // half a line at the end is none
      batch.size = batch.lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      batch.open = false;
      if (batch.done + Math.max(batch.n, 1) <= batch.lines.length) taken.push({ time, batch });
      else batch.close();
    });
  }
  return taken.sort((a, b) => a.time - b.time).map(({ batch }) => batch);
}

module.exports = { Batch, takeLeft };
