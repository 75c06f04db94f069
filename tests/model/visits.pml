/* visits.pml - the hashes of visits: visitor -> (time of the last event, arrival of it), one hash a slot of arrival time.
 *
 * Follows: storage/merge/merge_visits.c.  Beside it runs the rule of the contract: what a visitor did last is remembered for
 * two timeouts of arrival time; an event starts a visit iff nothing is remembered or it is later than the last one by more
 * than the timeout.  Both must agree on every event, for all courses of arrivals, event times (in and out of order, ahead of the clock
 * too) and of another visitor, who shares the hashes and so decides when they are made, given their expiry and unlinked.
 */
#define T 2                               /* the timeout */
#ifndef TMAX
#define TMAX 11
#endif
#define NS (TMAX/T + 1)
#ifndef EVENTS
#define EVENTS 4
#endif
byte now;
byte last[NS*2], arr[NS*2];               /* slot * 2 + visitor: time of the last event + 1 (0: no entry), its arrival */
byte expire[NS]; bit there[NS];           /* the hash, and when Redis deletes it */
byte slast[2], sarr[2];                   /* the contract's rule */
byte n; bit differ;

inline spec() {
  if :: slast[v] > 0 && now - sarr[v] > 2*T -> slast[v] = 0 :: else fi;
  want = (slast[v] == 0 || ts > slast[v] - 1 + T);
  if :: ts + 1 > slast[v] -> slast[v] = ts + 1 :: else fi;
  sarr[v] = now
}
#ifdef M_NOARRIVAL
#define YOUNG(s) 1
#else
#define YOUNG(s) (now - arr[(s)*2+v] <= 2*T)
#endif
#ifdef M_BACK1
#define BACK 1
#else
#define BACK 2
#endif
#ifdef M_GE
#define LATER(a, b) ((a) >= (b))
#else
#define LATER(a, b) ((a) > (b))
#endif
inline built() {
  slot = now / T; k = 0; seen = 0; fresh = (last[slot*2+v] == 0);
  do                                      /* the newest slot that has the visitor */
  :: k <= BACK && k <= slot && last[(slot-k)*2+v] == 0 -> k++
  :: k <= BACK && k <= slot && last[(slot-k)*2+v] != 0 -> if :: YOUNG(slot-k) -> seen = last[(slot-k)*2+v] :: else fi; break
  :: else -> break
  od;
  got = (seen == 0 || LATER(ts, seen - 1 + T));
#ifdef M_NOMAX
  last[slot*2+v] = ts + 1;
#else
  last[slot*2+v] = (seen > ts + 1 -> seen : ts + 1);
#endif
  arr[slot*2+v] = now;
  if
  :: fresh && !there[slot] ->
#ifdef M_EXPSHORT
     expire[slot] = now + 2*T;
#else
     expire[slot] = now + 4*T + 1;
#endif
#ifdef M_UNLINK2
     if :: slot >= 2 -> gone(slot - 2) :: else fi
#else
     if :: slot >= 3 -> gone(slot - 3) :: else fi
#endif
  :: else
  fi;
  there[slot] = 1; k = 0; seen = 0; slot = 0; fresh = 0
}
inline gone(s) { there[s] = 0; last[(s)*2] = 0; last[(s)*2+1] = 0; arr[(s)*2] = 0; arr[(s)*2+1] = 0; expire[s] = 0 }

active proctype World() {
  byte v = 0, ts = 0, k = 0, slot = 0, seen = 0; bit want = 0, got = 0, fresh = 0;
  do
  :: d_step { now < TMAX -> now++; k = 0;
       do :: k < NS -> if :: there[k] && now >= expire[k] -> gone(k) :: else fi; k++ :: else -> k = 0; break od }
  :: atomic { n < EVENTS -> n++;
       if :: v = 0 :: v = 1 fi;
       if :: ts = now :: now >= 1 -> ts = now - 1 :: now >= 3 -> ts = now - 3 :: ts = now + 1 fi;
       d_step { spec(); built();
         if :: want != got -> assert(differ) :: else fi;
         v = 0; ts = 0; want = 0; got = 0 } }
  :: now == TMAX || n == EVENTS -> break
  od
}
