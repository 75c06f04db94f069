/* settings.pml - keep times that change: cfg and `kept` in t:{p}:state.
 *
 * Follows: storage/lua/{settings,advance,expire}.lua, settings.c (retention_changed), prepare/prepare.c, time/closed.h
 * (retention_keep_s), time/write_plan.c, fold/share_decide.c (an EXEC that is void begins again with the new state), cover.c (bucket_kept).
 *
 * Two buckets of one level, each with a parent that is complete one after the other.  Buckets end at 1 and 2; keep times are 1, 2 or 3.
 * Processes with any keep time change the settings up to CHANGES times; whoever has other settings than the partition refuses to work.
 * Checked at every moment: a bucket that a reader may use by what `state` says then has all that is acknowledged; what is over gets
 * an expiry once the pass is over.
 */
#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef TMAX
#define TMAX 5
#endif
byte clk;
byte cfg = 1, until, before;              /* keep time; kept: buckets ending at or before `until` live for `before` only */
byte w; bit pass, x;                      /* parents complete; a pass is open, and in its last phase */
byte data[2], exp[2], acked[2];           /* masks of events; when the key expires, 0 never */
bit unseen, leaked, goal;
#define KEEP(b, c, u, f) ((u) != 0 && (b) + 1 <= (u) && (f) < (c) -> (f) : (c))
#define LEGAL(b) (w <= b || clk < b + 1 + KEEP(b, cfg, until, before))

inline redis_expires() {
  if :: exp[0] != 0 && clk >= exp[0] -> data[0] = 0; exp[0] = 0 :: else fi;
  if :: exp[1] != 0 && clk >= exp[1] -> data[1] = 0; exp[1] = 0 :: else fi
}

proctype Change() {                       /* processes that start, one after the other, or at once */
  byte c = 0, ocfg = 0, ou = 0, obf = 0, ow = 0, u = 0, f = 0, n = 0;
  do
  :: n < CHANGES ->
     n++;
     if :: c = 1 :: c = 2 :: c = 3 fi;
     atomic { ocfg = cfg; ou = until; obf = before; ow = w };
     d_step {                             /* retention_changed */
       u = ou; f = obf;
       if
       :: c > ocfg ->
          f = ((ou != 0 && obf < ocfg) -> obf : ocfg); u = ow
       :: else
       fi };
     d_step {                             /* settings.lua */
       if
#ifdef M_NOST
       :: cfg == ocfg && c != ocfg ->
#else
       :: cfg == ocfg && w == ow && c != ocfg ->
#endif
          cfg = c;
#ifndef M_NOKEPT
          until = u; before = f
#endif
       :: else
       fi;
       c = 0; ocfg = 0; ou = 0; obf = 0; ow = 0; u = 0; f = 0 }
  :: n == CHANGES -> break
  od
}

proctype Writer(byte e, b) {              /* its own keep time is what it plans with; it may be an old one */
  byte c = 0, u = 0, f = 0, ow = 0, k = 0; bit ok = 0;
  atomic { c = cfg; u = until; f = before; ow = w };
  do
  :: ok -> break
  :: !ok ->
     d_step {
       k = KEEP(b, c, u, f);
       if
#ifndef M_NOCFG
       :: cfg != c -> c = cfg; u = until; f = before; ow = w       /* another process, or this one with the settings replaced */
#endif
       :: else ->
          if
          :: w != ow -> ow = w                                      /* the EXEC is void: the state only */
          :: else ->
             if
             :: w > b && clk >= b + 1 + k -> skip                   /* its time is over */
             :: else -> data[b] = data[b] | (1 << e);
                if :: w > b && exp[b] == 0 -> exp[b] = b + 1 + k :: else fi
             fi;
             ok = 1; c = 0; u = 0; f = 0; ow = 0; redis_expires()
          fi
       fi; k = 0 }
  od;
  acked[b] = acked[b] | (1 << e)
}

proctype Leader() {
  byte c = 0, u = 0, f = 0, ow = 0, k = 0; bit ok = 0, my = 0;
again:
  atomic { c = cfg; u = until; f = before; ow = w; my = 0;
    if :: w == 2 && pass == 0 -> goto stop :: else fi };
  d_step {                                /* mark or take over */
    if :: cfg == c && w == ow -> pass = 1; my = 1 :: else fi };
  if :: my == 0 -> goto again :: else fi;
  if
  :: !x -> d_step { ok = 0; if :: cfg == c && pass && !x -> w++; x = 1; ok = 1 :: else fi }
     if :: !ok -> goto again :: else fi; ow++
  :: x -> skip
  fi;
  if :: goto again :: skip fi;            /* the reply is lost */
  d_step {                                /* expire.lua */
    ok = 0; k = KEEP(ow - 1, c, u, f);
    if
#ifdef M_PASSCFG
    :: pass && x ->
#else
    :: cfg == c && pass && x ->
#endif
       ok = 1; if :: data[ow - 1] != 0 && exp[ow - 1] == 0 -> exp[ow - 1] = ow + k :: else fi;
       pass = 0; x = 0; redis_expires()
    :: else
    fi; k = 0 };
  goto again;
stop: skip
}

active proctype Clock() { do :: d_step { clk < TMAX -> clk++; redis_expires() } :: clk == TMAX -> break od }

active proctype Monitor() {
end:
  do
  :: d_step { LEGAL(0) && (acked[0] & data[0]) != acked[0] -> assert(unseen) }
  :: d_step { LEGAL(1) && (acked[1] & data[1]) != acked[1] -> assert(unseen) }
  :: d_step { w > 0 && !(x && w == 1) && data[0] != 0 && exp[0] == 0 -> assert(leaked) }
  :: d_step { w > 1 && !(x && w == 2) && data[1] != 0 && exp[1] == 0 -> assert(leaked) }
#ifdef GOAL
  :: d_step { w == 2 && pass == 0 && until == 1 && before == 1 && acked[1] == 3 && exp[1] == 5 -> assert(goal) }
#endif
  od
}
init { atomic {
#ifdef GOAL
  run Writer(0, 1); run Writer(1, 1);
#else
  run Writer(0, 0);
  if :: run Writer(1, 0) :: run Writer(1, 1) fi;
#endif
  run Change(); run Leader() } }
