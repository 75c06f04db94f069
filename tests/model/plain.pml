/* plain.pml - pieces without a MULTI (storage/read/judge.c, proved_ask.c, proved_take.c, storage/count/read.c): two minutes of an open hour are read one
 * after the other, and the ids of the state behind them; folds, the hour's closing, the expiry of its minutes, and Redis going back (CRASH), come between.
 * A sketch and the page views beside it are read in one step.  What was read is remembered by the id `fold`.
 * Behind the closing two closed buckets are read in the same way, while late events are counted into them.  They may expire when no question is under
 * way that was planned by them: what is read plainly is kept for longer than any question takes.
 */
#define MINUTES 2
byte mn[MINUTES]; byte sketch;           /* a minute's sum as a bit mask of events; the sketch of minute 0 */
bit open = 1, kept = 1;                  /* the hour; its minutes */
byte ver = 1, fold = 1, ids = 1, conn;
byte cl[2]; bit ckept = 1; byte planned; /* the closed buckets: sums; kept; questions under way that were planned by them */
byte acked, lost;                        /* masks */
bit unseen, undead, torn, goal;          /* never set: name what is broken, or reached */
byte cval, cid; bit chas;                /* the cache entry: both minutes, by `fold` */
byte dval, did; bit dhas;                /* another one: both closed buckets, by `ver` */

inline newid(field) { ids++; field = ids }

active [2] proctype Fold() {             /* one event each */
  byte e = 1 << _pid; byte i;
  if :: i = 0 :: i = 1 fi;
  atomic {
    if
    :: open -> mn[i] = mn[i] | e; if :: i == 0 -> sketch = sketch | e :: else fi; newid(fold); acked = acked | e
    :: !open && ckept -> cl[i] = cl[i] | e; newid(ver); acked = acked | e
    :: else
    fi; i = 0 }
}

active proctype Close() {
  atomic { cl[0] = mn[0]; cl[1] = mn[1]; open = 0;
#ifndef M_NOVER
    newid(ver)
#endif
  };
  atomic { !open -> kept = 0; mn[0] = 0; mn[1] = 0; sketch = 0 } /* compares the state: rollup.pml */
}

active proctype Expire() {
#ifdef M_SOON
  atomic { !open -> ckept = 0; cl[0] = 0; cl[1] = 0 }
#else
  atomic { !open && planned == 0 -> ckept = 0; cl[0] = 0; cl[1] = 0 }
#endif
}

#ifdef CRASH
active proctype Crash() {
  byte S0, S1, C0, C1, Ss, Sver, Sfold; bit Sopen, Skept, Sckept;
  d_step { S0 = mn[0]; S1 = mn[1]; C0 = cl[0]; C1 = cl[1]; Ss = sketch; Sver = ver; Sfold = fold; Sopen = open; Skept = kept; Sckept = ckept };
  d_step { lost = lost | (acked & (255 - (S0 | S1 | C0 | C1)));
    mn[0] = S0; mn[1] = S1; cl[0] = C0; cl[1] = C1; sketch = Ss; ver = Sver; fold = Sfold; open = Sopen; kept = Skept; ckept = Sckept; conn++;
    S0 = 0; S1 = 0; C0 = 0; C1 = 0; Ss = 0; Sver = 0; Sfold = 0 }
}
#endif

active [2] proctype Query() {            /* what one reads the other one may recall */
  byte need, gone, a, b, pver, pfold, c; bit ok, closed;
  if                                                               /* planned by an hour that is open, or closed and kept, at any time before.. */
  :: atomic { open -> pver = ver; pfold = fold }
#ifdef M_ANYPLAN
  :: atomic { ckept -> pver = ver; closed = 1; planned++ }
#else
  :: atomic { !open && ckept -> pver = ver; closed = 1; planned++ }
#endif
  fi;
  atomic { need = acked; gone = lost; c = conn }                   /* ..the question */
  if
  :: closed && dhas && did == pver ->
     atomic { a = dval; ok = (ver == pver && conn == c); planned-- }
  :: closed ->                                                     /* two closed buckets, and `ver` behind them */
     a = cl[0]; a = a | cl[1];
#ifdef M_EARLIER
     b = ver;                                                      /* a piece that was asked before, and is carried out behind */
     atomic { ok = (ver == b);
#else
     atomic { ok = (ver == pver);
#endif
#ifndef M_CONN
       ok = ok && conn == c;
#endif
       if :: ok -> dval = a; did = ver; dhas = 1 :: else fi;
       b = 0; planned-- }
  :: !closed && chas && cid == pfold ->                                       /* recalled; the reply must have the same id */
     atomic { a = cval; ok = (fold == pfold && ver == pver && conn == c) }
  :: !closed ->
#ifdef M_PROOFFIRST
     atomic { ok = (ver == pver); b = (fold == pfold) };
     a = mn[0]; a = a | mn[1];
#else
     a = mn[0]; a = a | mn[1];
     atomic { ok = (ver == pver); b = (fold == pfold) };
#endif
     atomic {
#ifndef M_CONN
       ok = ok && conn == c;
#endif
       if
#ifdef M_REMEMBER
       :: ok -> cval = a; cid = fold; chas = 1
#else
       :: ok && b -> cval = a; cid = pfold; chas = 1
#endif
       :: else
       fi;
#ifdef GOAL
       if :: ok && b && a == 3 -> assert(goal) :: else fi;
#endif
       b = 0 }
  :: !closed ->                                                    /* a page: its sketch and its views */
#ifdef M_SKETCH
     a = sketch; b = mn[0];
     ok = (ver == pver && conn == c);
#else
     atomic { a = sketch; b = mn[0]; ok = (ver == pver) };
#endif
     atomic { if :: ok && a != b -> assert(torn) :: else fi; ok = 0; b = 0 }
  fi;
  atomic {
    if :: ok && (need & (255 - lost) & (255 - a)) != 0 -> assert(unseen) :: else fi;
    if :: ok && (a & gone & lost) != 0 -> assert(undead) :: else fi;
    need = 0; gone = 0; a = 0; b = 0; ok = 0; pver = 0; pfold = 0; c = 0 }
}
