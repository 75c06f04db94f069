/* deletion.pml - a site is deleted while processes take events, fold them, die and take over.
 *
 * Follows: storage/deletion/{ask,work,sweep}.c, storage/lua/{deletion_mark,deletion_step,delete}.lua, schema/tombstones.h,
 * fold/share.c (take_deleted; an EXEC is void when the state has changed).
 *
 * Two partitions.  A request is an entry of a log with events in both; it has one instant of arrival by Redis's clock, and each
 * partition is folded by itself, once (log_fold.pml), by a process that remembers what it has announced, and another one after it
 * that does not.  A request was folded before.  The leader of token 1 is followed by that of token 2 at any moment, and may go on late; each
 * may lose any answer (-DLOSE).  A process may or may not have heard of a deletion, so it may append at any moment.
 * Checked when all is folded and no deletion is under way: what was acknowledged before the last DELETE is gone (`left`), what came
 * when it was over is counted (`lost`), what came in between is counted in both partitions or in none (`half`), and whatever is
 * counted is in the set by which the rollup finds it (`unseen`).
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

inline mark(t) {                          /* deletion_mark.lua, both partitions one after the other */
  p = 0;
  do
  :: p < 2 ->
     d_step {
       ok = token >= ftok[p];
       if :: ok -> ftok[p] = token; tomb[p] = t; CHANGED(p) :: else fi };
     if :: !ok -> goto stop :: else fi;
#ifdef LOSE
     if :: goto again :: skip fi;         /* the answer is lost */
#endif
     p++
  :: else -> break
  od; p = 0
}

inline step(is, instant) {                /* deletion_step.lua */
  d_step {
    ok = token >= ftok[0] && rec != 0 && id == my;
    if :: ok -> rec = is; until = instant :: else fi };
  if :: !ok -> goto again :: else fi;
#ifdef LOSE
  if :: goto again :: skip fi
#endif
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
  mark(ALL);
sweep:
  found = 0;
  do
  :: p < 2 ->
     d_step {                             /* delete.lua */
#ifdef M_NOFENCE
       ok = 1;
#else
       ok = token >= ftok[p];
#endif
       if :: ok -> found = found || data[p] != 0 || open[p]; data[p] = 0; open[p] = 0 :: else fi };
     if :: !ok -> goto stop :: else fi;
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
  d_step { if :: token >= ftok[0] -> ftok[0] = token; tomb[0] = at; CHANGED(0) :: else fi };
  at = clk + AHEAD;
  d_step { if :: token >= ftok[1] -> ftok[1] = token; tomb[1] = at; CHANGED(1) :: else fi };
#else
  mark(at);
#endif
#ifndef M_LATE
  if :: clk >= at -> goto end :: else fi; /* it took too long */
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
  :: stays != 0 && gone > 1 -> assert(goal)
#endif
  :: else
  fi
}

init {
  byte e = 1;
  atomic {
    run Fold(); run Leader(1); run Leader(2);
    do :: e <= NE -> run Request(e); e++ :: else -> break od
  }
}
