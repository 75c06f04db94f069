/* counts.pml - counters that are known are set, and others are incremented (known_counts.h): the folds' memory by the id of the last fold.
 *
 * Follows: storage/known/known_counts.c, storage/merge/merge_counts_write.c, storage/fold/{share,share_write}.c; of a deletion of pages
 * deletion_mark.lua, delete.lua and storage/deletion/work.c.
 *
 * One counter of one partition; events are counted one at a time, in order, by two folds: the state has the number of those that are done.  A fold has two
 * steps: WATCH with the state, and EXEC.  It may be slow, its EXEC may be carried out without an answer (the connection is lost), and it may go on with the
 * memory that it has.  Each fold has a memory: a value, and the id for which that holds.  A deletion of the page marks the state, takes the counter away, and
 * marks the state again.  It may begin again between its steps.  CRASH: Redis goes back to any earlier moment.  Not modelled: a delete.lua of an older
 * leader, which the fencing token refuses (deletion.pml); Redis's clock.
 *
 * ASK: a fold reads the counter behind its WATCH, in place of a memory (merge_counts_ask.c).  PASS: the counter is that of a coarser bucket.  A pass of
 * the rollup closes it for writers, sets it to what the bucket's parts have, and closes it for readers.
 *
 * Checked after every change: the counter has the events that are done since the counter was last taken away (`wrong`); with PASS once it is closed.
 */
#ifndef EVENTS
#define EVENTS 4
#endif
bit wrong, goal;                          /* never set: assertions by name */

byte done, count, id, sweep;              /* the state, and the counter.  id: of the last fold or mark, unique */
byte gone;                                /* events that were done when the counter was last taken away */
byte ids;                                 /* that were drawn */
bit dirty[2];                             /* the state was changed since the fold's WATCH */

#ifdef M_NOSWEEP                          /* as if the state did not say that a deletion sweeps */
#define SWEPT 0
#else
#define SWEPT (sweep != 0)
#endif
#define CHANGED dirty[0] = 1; dirty[1] = 1
inline newid() {
#ifdef M_COUNTER
  id++
#else
  ids++; id = ids
#endif
}
#ifdef PASS
bit late, closed;                         /* closed for writers, who count in it from then on; for readers */
#define HOLDS (!closed || count == done - gone)
#define LATE late
#else
#define HOLDS (count == done - gone)
#define LATE 1
#endif
#if defined(PASS) && !defined(M_ASKOPEN)
#define MAYASK closed
#else
#define MAYASK true
#endif
inline check() { if :: !HOLDS -> assert(wrong) :: else fi }

active [2] proctype Fold() {
  byte value = 0, held = 0;               /* the memory; held 0: nothing is known */
  byte at = 0, from = 0; bit swept = 0, asks = 0, counts = 0;
  do
  :: done < EVENTS ->
     atomic { at = id; from = done; swept = SWEPT; asks = MAYASK; counts = LATE; dirty[_pid] = 0 };
#ifdef ASK
     atomic { held = 0; value = 0; if :: asks -> held = at + 1; value = count :: else fi };
#define WAS_READ true
#else
#define WAS_READ false
#endif
     /* the memory holds for the id that was read */
#ifdef M_NOID
     skip;
#else
     atomic { if :: !WAS_READ && held != at -> held = 0; value = 0 :: else fi };
#endif
     atomic {
       if
#ifdef M_NOWATCH
       :: true ->
#else
       :: !dirty[_pid] ->
#endif
          done = from + 1;
          if
          :: !counts -> skip
          :: counts && held != 0 && !swept -> count = value + 1;
#ifdef GOAL
             if :: gone != 0 -> assert(goal) :: else fi
#endif
          :: else -> count = count + 1
          fi;
          newid(); CHANGED;
          check();
          if
          :: value = count; held = (swept -> 0 : id)
#ifdef M_HOLDLOST
          :: held = (swept -> 0 : id)
#else
          :: skip                         /* nobody knows what became of it */
#endif
          fi
       :: else                            /* void */
       fi;
       at = 0; from = 0; swept = 0; asks = 0; counts = 0 }
  :: done >= EVENTS -> break
  od
}

/* It may not notice that Redis has gone back: delete.lua asks whether the state still has the mark. */
active proctype Delete() {
  byte n = 0;
mark:
  do
  :: atomic { newid(); sweep = 1; CHANGED };
     do
#ifdef M_BLINDDELETE
     :: atomic { n < 2 -> gone = done; count = 0; n++; check() }
#else
     :: atomic { n < 2 && sweep != 0 -> gone = done; count = 0; n++; check() }   /* delete.lua: it changes no state */
     :: sweep == 0 -> goto mark           /* from the record */
#endif
     :: break
     od;
     if
     :: n < 2 -> n++                      /* another leader begins again */
     :: break
     fi
  od;
  atomic { newid(); sweep = 0; CHANGED }
}

#ifdef PASS
active proctype Pass() {
  atomic { late = 1; CHANGED };           /* mark.lua */
  atomic { count = done - gone };         /* merge.lua: it changes no state */
  atomic { closed = 1; CHANGED; check() } /* advance.lua */
}
#endif

#ifdef CRASH
active proctype Crash() {
  byte Sdone, Scount, Sid, Ssweep, Sgone;
  d_step { Sdone = done; Scount = count; Sid = id; Ssweep = sweep; Sgone = gone };
  d_step { done = Sdone; count = Scount; id = Sid; sweep = Ssweep; gone = Sgone; CHANGED }
}
#endif
