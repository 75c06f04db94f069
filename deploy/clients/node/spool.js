'use strict';
// Files that keep batches until tallyd has them: what is in them survives the process.
//
// A batch is a file beside PATH with an event a line, PATH.OWNER.KEY-DONE-N-SINCE: the first DONE events are done with, and
// the next N may have been sent, first at SINCE (0: none).  The name changes before a request is sent, which needs no room on
// the disk.
//
// Node has no file locks, so the name is the lock: OWNER names the boot, the pid namespace, the process, its start and its
// thread.  A file whose process is gone is taken by renaming it: that succeeds for one only.  Of a process that cannot be
// seen from here, in another container for example, the file's time tells: its owner sets it every ten seconds.
const fs = require('fs');
const path = require('path');
const { threadId } = require('worker_threads');

const HEARTBEAT_MS = 10_000;
const GONE_MS = 60_000;
const LOOK_MS = 1000; // so long a file that was this process's is taken to be it still

const read = (name) => { try { return fs.readFileSync(name, 'latin1').trim(); } catch { return ''; } };
const started = (pid) => read(`/proc/${pid}/stat`).replace(/^.*\) /s, '').split(' ')[19] || '0';
const BOOT = read('/proc/sys/kernel/random/boot_id').slice(0, 8) || 'x';
const NAMESPACE = (() => { try { return fs.readlinkSync('/proc/self/ns/pid').replace(/\D/g, ''); } catch { return 'x'; } })();
const OWNER = [BOOT, NAMESPACE, process.pid, started(process.pid), threadId].join('_');
const mine = new Set(); // the Files of this process
let heartbeat = null;

/** Is the process gone that made the file `name`?  A Client of this process that is closed has left its files to the next one. */
function isGone(name, owner) {
  const [boot, namespace, pid, start] = owner.split('_');
  if (owner === OWNER) return ![...mine].some((file) => file.path === name);
  if (boot !== BOOT || namespace !== NAMESPACE) return Date.now() - fs.statSync(name).mtimeMs > GONE_MS;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === 'ESRCH';
  }
  return started(pid) !== start && started(pid) !== '0';
}

/** One batch's file, which is this process's.  `left`: {lines, key, done, n, since} of one that another process left. */
class File {
  #base;
  #fd;
  #end = 0;
  #looked = Date.now(); // when the file was last seen to be this process's
  left = null;

  constructor(base, name) {
    this.#base = base;
    this.path = name;
    this.#fd = fs.openSync(name, 'a+', 0o600);
    mine.add(this);
    heartbeat ??= setInterval(() => { for (const file of mine) file.#beat(); }, HEARTBEAT_MS).unref();
  }

  #beat() {
    try { fs.futimesSync(this.#fd, new Date(), new Date()); } catch { /* the next time */ }
  }

  /** Is the file this process's still?  Not if the process stood still for so long that another one took the file. */
  isOwn() {
    this.#looked = Date.now();
    return fs.existsSync(this.path);
  }

  /** Keep a line.  False: it is not kept, because the disk is full, say; then nothing more may be appended. */
  append(line) {
    if (Math.abs(Date.now() - this.#looked) > LOOK_MS && !this.isOwn()) return false;
    const data = Buffer.from(line + '\n');
    try {
      if (fs.writeSync(this.#fd, data) === data.length) {
        this.#end += data.length;
        return true;
      }
      fs.ftruncateSync(this.#fd, this.#end);
    } catch {
      // half a line at the end is no line
    }
    return false;
  }

  mark(key, done, n, since) {
    const name = `${this.#base}.${OWNER}.${key}-${done}-${n}-${since}`;
    fs.renameSync(this.path, name);
    this.path = name;
  }

  close(keep) {
    mine.delete(this);
    if (!keep && this.isOwn()) fs.unlinkSync(this.path);
    fs.closeSync(this.#fd);
  }
}

/** An empty File.  Throws: there can be none. */
const create = (base, key) => new File(base, `${base}.${OWNER}.${key}-0-0-0`);

/** The Files that processes that are gone have left, the oldest first. */
function takeLeft(base) {
  const taken = [];
  for (const file of fs.readdirSync(path.dirname(path.resolve(base)))) {
    const [, owner, key, ...numbers] = /^((?:\w+_){4}\d+)\.([0-9a-f-]{36})-(\d+)-(\d+)-(\d+)$/.exec(file.slice(path.basename(base).length + 1)) || [];
    const name = path.join(path.dirname(base), file);
    if (owner === undefined || !file.startsWith(path.basename(base) + '.')) continue;
    const [done, n, since] = numbers.map(Number);
    let found;
    try {
      if (!isGone(name, owner)) continue;
      const time = fs.statSync(name).mtimeMs;
      const own = `${base}.${OWNER}.${key}-${numbers.join('-')}`;
      fs.renameSync(name, own);
      found = { time, file: new File(base, own) };
    } catch {
      continue; // another process has taken it
    }
    const lines = fs.readFileSync(found.file.path, 'utf8').split('\n').slice(0, -1);
    if (done < lines.length && done + n <= lines.length) {
      found.file.left = { lines, key, done, n, since };
      taken.push(found);
    } else {
      found.file.close(false);
    }
  }
  return taken.sort((a, b) => a.time - b.time).map(({ file }) => file);
}

module.exports = { create, takeLeft };
