/* clock.pml - whose minute is it?  An event without `ts` gets its time of arrival from process A, a query with `to=now` gets
 * its end from process B, and minutes too far ahead for any event are taken as complete and empty, at every level.
 *
 * Follows: clock.c, core.c (core_time_seen), the check of `ts` against --max-future (FUT at most), count.c (to_is_now), count/read.c
 * (counter_basis), cover.c (empty_from_s = TIME + FUT + SLACK).  True time is Redis's (now, in minutes); each process knows a lower bound of it: the TIME
 * in a reply.  BACK: Redis's clock is set back once, by less than SLACK (which
 * promises nothing for `to=now`).
 */
#define FUT 2
#ifndef SLACK
#define SLACK 2
#endif
#define TMAX 4
byte now = 1, stamp; bit have, acked, ahead;
bit unseen;
active proctype Time() {
  bit b = 0;
  do
  :: now < TMAX -> now++
#ifdef BACK
  :: atomic { !b && now > 1 -> b = 1; now-- }
#endif
  :: break
  od
}
active proctype Writer() {
  byte seen;
  seen = now;                              /* a reply with TIME, at any earlier moment */
#ifdef M_SKEW
  if :: skip :: seen++; seen++ fi;         /* an estimate that may run ahead of Redis */
#endif
  if :: stamp = seen :: stamp = seen + FUT; ahead = 1 :: stamp = seen + 1; ahead = 1 fi;
  have = 1;
  acked = 1
}
active proctype Reader() {
  byte est, end_s; bit need, found, again, tonow;
  est = now;                               /* may be old */
  need = acked;                            /* the query begins: the event must be in the answer if it is acknowledged */
  if :: tonow = 1 :: tonow = 0 fi;         /* up to now; or far into the future */
  atomic {                                 /* MULTI: keys, TIME */
#ifdef BACK
    tonow = 0;
#endif
#ifdef M_OWNTIME
    end_s = est + FUT;                     /* without the TIME of the reply, without slack */
#else
    end_s = now + FUT + SLACK;
#endif
    found = have && (tonow -> stamp <= est : stamp < end_s);
#ifndef M_NOTIME
    again = tonow && now > est
#endif
  };
  if :: need && !again && !found && !(tonow && ahead) -> assert(unseen) :: else fi
}
