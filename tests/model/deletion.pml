/* deletion.pml - a site, or pages, are deleted while processes take events, fold them, die and take over.
 *
 * Follows: storage/deletion/{ask,work,sweep}.c, storage/lua/{deletion_mark,deletion_step,delete}.lua, schema/tombstones.h,
 * fold/share.c (take_deleted; an EXEC is void when the state has changed), what rollup.c does if deletion_work.in_doubt.
 *
 * Two partitions.  A request is an entry of a log with events in both; it has one instant of arrival by Redis's clock, and each
 * partition is folded by itself, once (log_fold.pml), by a process that remembers what it has announced, and another one after it
 * that does not.  One request was folded before.  A process may or may not have heard of a deletion, so a request may be appended
 * at any moment.  The leader of token 1 is followed by that of token 2 at any moment, and may go on late.  -DLOSE: each may lose
 * any answer.  -DSTUCK: one leader; a command of it has no answer, and Redis runs it at any later moment, or never.
 *
 * Checked when all is folded and no deletion is under way: what was acknowledged before the last DELETE is gone (`left`), what came
 * when the deletion was over is counted (`lost`), what came in between is counted in both partitions or in none (`half`), and
 * whatever is counted is in the set by which the rollup finds it (`unseen`).
 */
#ifndef DELETES
#define DELETES 1
#endif
#ifndef NE
#define NE 1                              /* requests, beside the one that is counted from the beginning */
#endif
#ifndef TMAX
#define TMAX 2
#endif
#define AHEAD 1
#define ALL 255                           /* a tombstone of a deletion that goes on */
#define BIT(e) (1 << (e))

byte clk, n_deletes;
byte rec, until, id;                      /* t:{0}:deletions: 0 none, 1 goes on, 2 it has the instant */
byte tomb[2], ftok[2];                    /* state and pass of the partitions.. */
bit stale[2], forget[2];                  /* ..which has changed since the fold's read, and since it remembers */
byte data[2] = 1; bit open[2] = 1;        /* masks of requests that are counted; the site is in the set `open` */
byte arrived[NE + 1], sent = 1;           /* masks */
byte done[2] = 1;
byte gone = 0, stays = 1;                 /* requests from before the last DELETE, and from when none was under way */
mtype = { NO_COMMAND, MARK, DELETE, STEP };
mtype stuck = NO_COMMAND;                 /* a command that is on its way.. */
byte on, tells, under, about;             /* ..its partition, what it says, its token, its deletion */
bit was_stuck;
bit left, lost, half, unseen, goal;       /* never true: the names of what is violated */
#define CHANGED(p) stale[p] = 1; forget[p] = 1

#define OVER (rec == 0 || rec == 2 && clk >= until)
#define REST (sent == (1 << (NE + 1)) - 1 && done[0] == sent && done[1] == sent && n_deletes == DELETES && rec == 0)

active proctype Client() {                /* DELETE /sites/{site} */
  do
  :: d_step { n_deletes < DELETES && OVER -> n_deletes++; id++; rec = 1; until = 0; gone = sent; stays = 0 }
  :: n_deletes == DELETES -> break
  od
}

proctype Request(byte e) {                /* appended, and acknowledged */
  d_step { arrived[e] = clk; sent = sent | BIT(e); if :: OVER -> stays = stays | BIT(e) :: else fi }
}

inline covered(ret, e, t) { ret = (t == ALL || t != 0 && arrived[e] < t) }

proctype Fold() {                         /* it knows at first that the site is in the set */
  byte e = 0, p = 0, t = 0; bit c = 0, memory[2];
  memory[0] = 1; memory[1] = 1;
  do
  :: done[0] != sent || done[1] != sent ->
     atomic {                             /* WATCH, and the state is read */
       if :: done[0] != sent -> p = 0 :: done[1] != sent -> p = 1 :: else fi;
       t = tomb[p]; stale[p] = 0 };
     d_step {                             /* EXEC, of one of those that are not folded */
       if
       :: sent & ~done[p] & 2 -> e = 1
       :: sent & ~done[p] & ~3 -> e = 2
       :: else -> e = 0
       fi;
       if
#ifdef M_NOWATCH
       :: e != 0 ->
#else
       :: e != 0 && !stale[p] ->
#endif
          covered(c, e, t);
#ifdef M_NOTOMB
          c = 0;
#endif
#ifndef M_KEEPMEMORY
          if :: forget[p] -> memory[p] = 0 :: else fi;
#endif
          forget[p] = 0;
          done[p] = done[p] | BIT(e);
          if
          :: c
          :: else ->
             data[p] = data[p] | BIT(e);
             if :: memory[p] == 0 -> open[p] = 1 :: else fi;
             memory[p] = 1
          fi
       :: else
       fi; e = 0; p = 0; t = 0; c = 0 }
  :: memory[0] || memory[1] -> memory[0] = 0; memory[1] = 0   /* another process folds from now on */
  :: REST -> break
  od
}

/* The scripts, each in one step; ok: the answer is not that it refuses. */
inline run_mark(q, t, tok, my_id) {       /* deletion_mark.lua */
#ifdef M_BLINDMARK
  ok = tok >= ftok[q];
#else
  ok = tok >= ftok[q] && (q != 0 || rec == 1 && id == my_id);
#endif
  if :: ok -> ftok[q] = tok; tomb[q] = t; CHANGED(q) :: else fi
}

inline run_delete(q, tok) {               /* delete.lua */
#ifdef M_NOFENCE
  ok = 1;
#else
  ok = tok >= ftok[q];
#endif
  if :: ok -> found = found || data[q] != 0 || open[q]; data[q] = 0; open[q] = 0 :: else fi
}

inline run_step(is_now, instant, tok, my_id) { /* deletion_step.lua */
  ok = tok >= ftok[0] && rec != 0 && id == my_id;
  if :: ok -> rec = is_now; until = instant :: else fi
}

/* The command is stuck, or is run; then its answer comes, or is lost. */
inline may_stick(kind, q, t) {
#ifdef STUCK
  if
  :: d_step { !was_stuck -> was_stuck = 1; stuck = kind; on = q; tells = t; under = token; about = my }
#ifndef M_SAMETOKEN
     token = token + 2;                   /* rollup.c: in_doubt */
#endif
     goto again
  :: skip
  fi
#else
  skip
#endif
}

inline may_lose() {
#ifdef LOSE
  if :: goto again :: skip fi
#else
  skip
#endif
}

#ifdef STUCK
active proctype Network() {
  bit ok = 0, found = 0;
  stuck != NO_COMMAND;
  d_step {
    if
    :: stuck == MARK -> run_mark(on, tells, under, about)
    :: stuck == DELETE -> run_delete(on, under)
    :: stuck == STEP -> run_step(on, tells, under, about)
    fi;
    stuck = NO_COMMAND; on = 0; tells = 0; under = 0; about = 0; ok = 0; found = 0 }
}
#endif

inline mark(t, last) {                    /* both partitions one after the other, partition 0 first or last */
  p = 0;
  do
  :: p < 2 ->
     may_stick(MARK, (p ^ last), t);
     d_step { run_mark((p ^ last), t, token, my) };
     if :: !ok -> goto again :: else fi;
     may_lose();
     p++
  :: else -> break
  od; p = 0
}

inline step(is_now, instant) {
  may_stick(STEP, is_now, instant);
  d_step { run_step(is_now, instant, token, my) };
  if :: !ok -> goto again :: else fi;
  may_lose()
}

proctype Leader(byte token) {
  byte p = 0, my = 0, at = 0, is = 0; bit ok = 0, found = 0;
again:
  p = 0; found = 0; ok = 0;
  atomic { is = rec; my = id; at = until };
  if
  :: is == 0 && REST -> goto stop
  :: is == 0 && !REST -> (rec != 0 || REST); goto again
  :: is == 1
  :: is == 2 -> goto over
  fi;
begin:
  mark(ALL, 0);
sweep:
  found = 0;
  do
  :: p < 2 ->
     may_stick(DELETE, p, 0);
     d_step { run_delete(p, token) };
     if :: !ok -> goto again :: else fi;
     p++
  :: else -> break
  od;
  p = 0;
  if :: found -> goto sweep :: else fi;
end:
  at = clk + AHEAD;                       /* TIME */
#ifdef M_RECFIRST
  step(2, at);
#endif
#ifdef M_OWNINSTANT
  d_step { run_mark(0, at, token, my) };
  at = clk + AHEAD;
  d_step { run_mark(1, at, token, my) };
#else
  mark(at, 1);
#endif
#ifndef M_LATE
#ifdef M_ANEW
  if :: clk >= at -> goto end :: else fi;
#else
  if :: clk >= at -> goto begin :: else fi; /* it took too long */
#endif
#endif
#ifndef M_RECFIRST
  step(2, at);
#endif
over:
  clk >= at;
  step(0, 0);
  goto again;
stop: skip
}

active proctype Clock() { do :: clk < TMAX -> clk++ :: REST -> break :: clk == TMAX -> break od }

active proctype Judge() {
  REST;
  if
  :: (data[0] | data[1]) & gone -> assert(left)
  :: data[0] != data[1] -> assert(half)
  :: (data[0] & stays) != stays -> assert(lost)
  :: data[0] != 0 && !open[0] || data[1] != 0 && !open[1] -> assert(unseen)
#ifdef GOAL
  :: stays != 0 && !(data[0] & 1) -> assert(goal)
#endif
  :: else
  fi
}

init {
  byte e = 1;
  atomic {
    run Fold(); run Leader(1);
#ifndef STUCK
    run Leader(2);
#endif
    do :: e <= NE -> run Request(e); e++ :: else -> break od
  }
}
