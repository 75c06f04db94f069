/* over.pml - what is remembered of minutes of an open hour that are over (`over` in storage/fold/share_write.c, read/run.c, count/recall.c, storage/read/proved_read.c): two folds
 * put events into any of two minutes at any time, late or not; a process remembers the run of both, which it reads in two pieces; Redis may go back
 * (CRASH), its clock too (BACK).
 * mn[i]: a minute's content as a bit mask of events; over: minutes [0, over) are; id: unique id of the last change to `over` or to one of them.
 */
#define MINUTES 2
byte mn[MINUTES]; byte over; byte id; byte ids;
byte now;                                /* Redis's clock: minutes [0, now) have ended */
byte acked, lost;                        /* masks */
bit unseen, undead, goal;                /* never set: name what is broken (an acknowledged event is missing; a lost one is still told), or reached */
byte Smn[MINUTES], Sover, Sid;
byte cval, cid; bit chas;                /* the cache entry: both minutes */

inline newid() { ids++; id = ids }

inline write(e, i) {
  mn[i] = mn[i] | e;
  if
#ifdef M_KEEPID
  :: now > over -> over = now            /* going further keeps the id: what was not over had none to prove it */
#else
  :: now > over -> over = now; newid()
#endif
#ifdef M_CLOCK
  :: now <= over && i < now -> newid()   /* late by the clock, not by `over` */
  :: now <= over && i >= now -> skip
#else
#ifdef M_NOID
  :: now <= over -> skip
#else
  :: now <= over && i < over -> newid()
  :: now <= over && i >= over -> skip
#endif
#endif
  fi
}

active [2] proctype Writer() {           /* an event each, and one more by the first: something must be written after a loss */
  byte e = 1 << _pid;
  byte i;
again:
  if :: i = 0 :: i = 1 fi;
  d_step { write(e, i); lost = lost & (255 - e); i = 0 };
  acked = acked | e;
  if
  :: e == 1 -> e = 4; goto again
  :: else
  fi
}

active proctype Clock() {
#ifdef BACK
  byte n = 0;
  do
  :: n < 4 && now < MINUTES -> atomic { now++; n++ }
  :: n < 4 && now > 0 -> atomic { now--; n++ }
  :: break
  od
#else
  do
  :: now < MINUTES -> now++
  :: break
  od
#endif
}

#ifdef CRASH
active proctype Crash() {
  d_step { Smn[0] = mn[0]; Smn[1] = mn[1]; Sover = over; Sid = id };
  d_step { lost = lost | ((mn[0] | mn[1]) & (255 - (Smn[0] | Smn[1])));
    mn[0] = Smn[0]; mn[1] = Smn[1]; over = Sover;
#ifdef M_COUNTER
    ids = Sid;
#endif
    id = Sid }
}
#endif

active [2] proctype Query() {            /* what one reads the other one may recall */
  byte need, gone, a, first, firstid;
  atomic { need = acked; gone = lost };
  if
  :: atomic { first = mn[0]; firstid = id };
     atomic { a = first | mn[1]; first = 0;
       if
#ifdef M_PIECES
       :: over == MINUTES -> cval = a; cid = id; chas = 1
#else
       :: over == MINUTES && id == firstid -> cval = a; cid = id; chas = 1
#endif
       :: else
       fi; firstid = 0 }
  :: atomic { chas && id == cid -> a = cval;
#ifdef GOAL
       assert(goal);
#endif
     }
  :: atomic { a = need; gone = 0 }       /* asks nothing */
  fi;
  atomic {
    if :: (need & (255 - lost) & (255 - a)) != 0 -> assert(unseen) :: else fi;
    if :: (a & gone & lost) != 0 -> assert(undead) :: else fi;
    need = 0; gone = 0; a = 0 }
}
