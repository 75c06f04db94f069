/* cache.pml - what is remembered of closed buckets: a tallyd that keeps counts of closed buckets in memory, joins identical queries in flight, or serves an
 * answer for a while; another process writes late events into the same closed bucket. Redis may go back (CRASH).
 * bk: the bucket's content as a bit mask of events; hour `closed`; ver: unique id of the last change to anything closed.
 */
byte bk; bit closed; byte ver; byte vers;
byte acked, lost;                        /* masks */
bit unseen;                              /* never set: names what is broken */
byte Sbk, Sver; bit Sclosed;
byte cval, cver; bit chas;               /* the cache entry */
bit fly, sent, got; byte fval;           /* the execution in flight: sent to Redis, executed */

#ifdef M_BLIND
#define VALID 1
#else
#define VALID (ver == cver)
#endif

active [2] proctype Writer() {
  byte e = 1 << (_pid % 2);
  d_step { bk = bk | e; lost = lost & (255 - e);
#ifndef M_NOVER
    if :: closed -> vers++; ver = vers :: else fi
#endif
  };
  acked = acked | e
}
active proctype Rollup() {
  byte n = 0;
  do
  :: n < 2 -> d_step { if :: !closed -> closed = 1;
#ifndef M_NOCLOSEVER
         vers++; ver = vers
#endif
         :: else fi; n++ }
  :: n == 2 -> break
  od
}
#ifdef CRASH
active proctype Crash() {
  d_step { Sbk = bk; Sver = ver; Sclosed = closed };
  d_step { lost = lost | (bk & (255 - Sbk)); bk = Sbk; closed = Sclosed;
#ifdef M_COUNTER
    vers = Sver;                         /* a counter instead of unique ids: it goes back with Redis and comes again */
#endif
    ver = Sver }
}
#endif
active [2] proctype Query() {             /* each asks twice */
  byte n = 0, need, a; bit ok;
  do
  :: n < 2 ->
     n++; need = acked; ok = 0; a = 0;
     if
#ifdef CACHE
     :: atomic { closed -> a = bk; cval = bk; cver = ver; chas = 1; ok = 1 }            /* a miss: one MULTI: state and the bucket */
     :: atomic { chas && closed && VALID -> a = cval; ok = 1 }                          /* a hit: state is still read, and says so */
#endif
#ifdef FLIGHT
     :: atomic { !fly -> fly = 1; sent = 0; got = 0; fval = 0 };                        /* starts an execution */
        sent = 1; atomic { fval = bk; got = 1 }; atomic { a = fval; ok = 1; fly = 0 }
#ifdef M_JOINSENT
     :: atomic { fly -> skip };                                                         /* joins what is in flight, whatever its state */
        atomic { got -> a = fval; ok = 1 }
#else
     :: atomic { fly && !sent -> skip };                                                /* joins only what has not been sent */
        atomic { got -> a = fval; ok = 1 }
#endif
#endif
     :: skip
     fi;
     if :: ok && (need & (255 - lost) & (255 - a)) != 0 -> assert(unseen) :: else fi
  :: n == 2 -> break
  od
}
