'use strict';
// A file that keeps events until tallyd has them: what is in it survives the process.
//
// The file is a head of 256 bytes and, behind it, an event a line.  The head, a JSON object, says which bytes are not done
// yet (`from` to the end), and which of them are a batch that may have been sent (`from` to `to`, under `key`, first at
// `since`).  It is written before a batch is sent, in place: that needs no room, so a full disk cannot stop it.
//
// Node has no file locks, so the name is the lock: PATH.OWNER, where OWNER names the boot, the pid namespace, the process
// and its start.  A file whose process is gone is taken by renaming it: that succeeds for one only.  Of a process that
// cannot be seen from here, in another container for example, the file's time tells: its owner sets it every ten seconds.
const fs = require('fs');
const path = require('path');
const { threadId } = require('worker_threads');

const HEAD_BYTES = 256;
const REWRITE_BYTES = 4 << 20; // so much that is done may stand before what is not
const HEARTBEAT_MS = 10_000;
const GONE_MS = 60_000;
const LOOK_MS = 1000; // so long a file that was this process's is taken to be it still

const read = (name) => { try { return fs.readFileSync(name, 'latin1').trim(); } catch { return ''; } };
const started = (pid) => read(`/proc/${pid}/stat`).replace(/^.*\) /s, '').split(' ')[19] || '0';
const BOOT = read('/proc/sys/kernel/random/boot_id').slice(0, 8) || 'x';
const NAMESPACE = (() => { try { return fs.readlinkSync('/proc/self/ns/pid').replace(/\D/g, ''); } catch { return 'x'; } })();
const OWNER = [BOOT, NAMESPACE, process.pid, started(process.pid), threadId].join('-');
let instances = 0;

/** Is the process gone that made the file `name` for the owner [boot, namespace, pid, start, thread, instance]? */
function isGone(name, [boot, namespace, pid, start]) {
  if (boot !== BOOT || namespace !== NAMESPACE) return Date.now() - fs.statSync(name).mtimeMs > GONE_MS;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === 'ESRCH';
  }
  return started(pid) !== start && started(pid) !== '0';
}

/** One file that this process owns.  `lines`: what it held; `batch`: [how many of them, key, since], or null. */
class Spool {
  #path;
  #fd;
  #from = HEAD_BYTES;
  #end = HEAD_BYTES;
  #broken = false; // half a line could not be taken back: no more lines until it is empty
  #heartbeat;
  #looked = 0; // Date.now() when the file was last seen to be this process's
  lines = [];
  batch = null;

  constructor(name) {
    this.#path = name;
    this.#fd = fs.openSync(name, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    try {
      this.#load();
    } catch (error) {
      fs.closeSync(this.#fd);
      throw error;
    }
    this.#heartbeat = setInterval(() => { try { fs.futimesSync(this.#fd, new Date(), new Date()); } catch { /* the next time */ } }, HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  #load() {
    const data = fs.readFileSync(this.#path);
    if (data.length === 0) {
      this.#writeHead();
      return;
    }
    const head = JSON.parse(data.toString('latin1', 0, HEAD_BYTES));
    if (!Number.isInteger(head.from)) throw new SyntaxError('no spool');
    this.#end = Math.max(data.lastIndexOf(10) + 1, HEAD_BYTES);
    this.#from = head.from <= this.#end ? head.from : this.#end;
    fs.ftruncateSync(this.#fd, this.#end); // half a line was never acknowledged
    this.lines = data.toString('utf8', this.#from, this.#end).split('\n').slice(0, -1);
    if (head.key && this.#from < head.to && head.to <= this.#end) {
      this.batch = [data.toString('latin1', this.#from, head.to).split('\n').length - 1, head.key, head.since];
    }
  }

  #writeHead(to = 0, key = null, since = 0) {
    const head = JSON.stringify({ 'tallyd-spool': 1, from: this.#from, to, key, since });
    fs.writeSync(this.#fd, head.padEnd(HEAD_BYTES - 1) + '\n', 0, 'latin1');
  }

  /** Keep a line; false: it is not kept, because the disk is full, say. */
  append(line) {
    if (this.#broken || (Math.abs(Date.now() - this.#looked) > LOOK_MS && !this.isOwn())) return false;
    const data = Buffer.from(line + '\n');
    let written = 0;
    try {
      written = fs.writeSync(this.#fd, data, 0, data.length, this.#end);
    } catch {
      // see below
    }
    if (written === data.length) {
      this.#end += written;
      return true;
    }
    try {
      if (written > 0) fs.ftruncateSync(this.#fd, this.#end);
    } catch {
      this.#broken = true;
    }
    return false;
  }

  /** Is the file this process's still?  Not if the process stood still for so long that another one took the file. */
  isOwn() {
    try {
      this.#looked = Date.now();
      return fs.statSync(this.#path).ino === fs.fstatSync(this.#fd).ino;
    } catch {
      this.#broken = true;
      return false;
    }
  }

  /** The oldest `lines` are about to be sent under `key`, at the time `since` (ms). */
  begin(lines, key, since) {
    this.#writeHead(this.#from + bytesOf(lines), key, since);
  }

  /** The oldest `lines` need not be kept any more. */
  done(lines) {
    if (!this.isOwn()) return;
    this.#from += bytesOf(lines);
    if (this.#from >= this.#end) {
      fs.ftruncateSync(this.#fd, HEAD_BYTES); // before the head: a `from` behind the end means that nothing is left
      this.#from = this.#end = HEAD_BYTES;
      this.#broken = false;
    } else if (this.#from > REWRITE_BYTES && !this.#broken && this.#rewrite()) {
      return;
    }
    this.#writeHead();
  }

  /** Leave out what is done, in a new file that takes this one's place. */
  #rewrite() {
    const fresh = this.#path + '.new';
    let fd = -1;
    try {
      const rest = Buffer.alloc(HEAD_BYTES + this.#end - this.#from);
      fs.readSync(this.#fd, rest, HEAD_BYTES, rest.length - HEAD_BYTES, this.#from);
      rest.write(JSON.stringify({ 'tallyd-spool': 1, from: HEAD_BYTES, to: 0, key: null, since: 0 }).padEnd(HEAD_BYTES - 1) + '\n', 'latin1');
      fd = fs.openSync(fresh, 'w+', 0o600);
      if (fs.writeSync(fd, rest, 0, rest.length, 0) !== rest.length) throw new Error('disk full');
      fs.renameSync(fresh, this.#path);
      fs.closeSync(this.#fd);
      [this.#fd, this.#from, this.#end] = [fd, HEAD_BYTES, rest.length];
      return true;
    } catch {
      if (fd >= 0) fs.closeSync(fd);
      return false;
    }
  }

  /** Nothing is left, and the file goes; with `keep` it stays for the next process. */
  close(keep) {
    clearInterval(this.#heartbeat);
    if (!keep && this.isOwn()) fs.unlinkSync(this.#path);
    fs.closeSync(this.#fd);
  }
}

function bytesOf(lines) {
  return lines.reduce((n, line) => n + Buffer.byteLength(line) + 1, 0);
}

/** {own: a Spool to write into, left: [Spools of processes that are gone]}.  Throws where no file can be made. */
function takeAll(base) {
  const mine = () => `${base}.${OWNER}-${instances++}`;
  const left = [];
  const prefix = path.basename(base) + '.';
  for (const file of fs.readdirSync(path.dirname(path.resolve(base))).filter((f) => f.startsWith(prefix))) {
    const name = path.join(path.dirname(base), file);
    const [, owner, half] = /^((?:\w+-){5}\d+)(\.new)?$/.exec(file.slice(prefix.length)) || [];
    const taken = mine();
    try {
      if (owner === undefined || !isGone(name, owner.split('-'))) continue;
      if (half) fs.unlinkSync(name); // its process died while it wrote a shorter file
      else fs.renameSync(name, taken);
    } catch {
      continue; // another process has taken it
    }
    if (half) continue;
    try {
      const spool = new Spool(taken);
      if (spool.lines.length > 0) left.push(spool);
      else spool.close(false);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      fs.renameSync(taken, `${taken}.broken`);
    }
  }
  return { own: new Spool(mine()), left };
}

module.exports = { takeAll };
