/* idem.pml - a request with an Idempotency-Key over two partitions, on two Redis nodes (0: home record and partition 0; 1: partition 1),
 * served by two tallyd processes: lease, takeover, reuse of the key after its 24 h, lost suffixes.
 *
 * Made before the code, which was then compared with it (storage/job/claim.h).  What the code must do here, step by step: `claim` (one
 * script on the home record), `part` (write.lua with marker once:<id> = gen), `finish` (compare-and-set on the generation).
 *
 * Time is counted in units of 12 h (clk); a key lives TTL = 2 units.  The client has one body; it asks until it has a 202
 * (attempts of one operation), and may use the key again for a second operation once the first one's 24 h are over.
 * home: hst 0 none, 1 in flight, 2 done; hgen = time of the claim (the request's generation); hown = who claims.
 * mk[p]: generation + 1 of the marker in partition p, 0 none; cnt[2*p+o] = how often operation o's events are in partition p.
 *
 * Flags.  ATT attempts a process, TMAX.  CRASH=n: nodes go back to an earlier moment (ONENODE: both together).  LATE: a part that was given up is
 * executed at any time later.  SHORT: markers are shortened to 15 minutes once the answer is stored, as was first designed (a tick
 * is longer); CLAIMED: a part carries the time of the claim it works under, and is refused once that is as old as that.
 */
#ifndef ATT
#define ATT 2
#endif
#define TTL 2
#ifndef TMAX
#define TMAX 4
#endif
byte clk;
byte hst, hgen, hown;                    /* node 0 */
byte mk[2], mt[2];
byte cnt[4];                             /* partition p, operation o: cnt[2*p+o] */
#define OPG(g) (genop[g])
bit twice, unseen, goal;                  /* never set: name what is broken */
#ifdef LATE
byte zk, zg, zt;                          /* a copy of part zk - 1 that is still under way: its generation, the time of its claim */
#endif
byte genop[8];                           /* ghost: operation (0, 1) of a generation */
bit redo;                                /* ghost: a claim was lost; a repeat within 24 h of the first use is the same operation */
byte start;                              /* ghost: first use of the current operation */
#define SAME (redo && clk < start + TTL)
              /* node p: marker, its physical time to live, counter */
byte Shst, Shgen, Shown, Smk[2], Smt[2], Scnt[4];
byte ops;                                /* operations the client has begun */
bit acked[2], forgiven[2];               /* forgiven: acknowledged, then undone by a crash (everysec may) */
byte epoch[2];                           /* counts crashes of a node: a process sees it as a lost connection */
#ifdef M_PHYS                            /* a marker counts as long as it happens to live: 24 h from its own writing */
#define KEEP 2
#define DUPL(p, g)  (mk[p] > 0)
#define DEAD(g)     0
#else
#define KEEP 4
#ifdef M_NODEADLINE
#define DEAD(g)     0
#else
#define DEAD(g)     (clk >= (g) + TTL)
#endif
#define DUPL(p, g)  (mk[p] > 0 && (g) < mk[p] - 1 + TTL)       /* decided by the generations, not by expiry */
#endif

#ifdef M_NOREFRESH
#define REFRESH(p) skip
#else
#define REFRESH(p) if :: mk[p] < g + 1 -> mk[p] = g + 1; mt[p] = clk + KEEP :: else fi
#endif

#ifdef CLAIMED
#define INTIME (clk == zt)
#define OVERDUE (clk != ct)
#else
#define INTIME 1
#define OVERDUE 0
#endif

proctype Server(byte me) {               /* one attempt after the other */
  byte g, ct, e0, e1, n = 0; bit ok, done0, done1;
next:
  do
  :: n < ATT ->
     n++; ok = 0; g = 0; ct = 0;
     atomic {                            /* claim: one script on the home record */
       if
       :: (hst == 0 || clk >= hgen + TTL) && (SAME || ops < 2) -> hst = 1;
          hgen = clk; hown = me; ok = 1;
          if :: !SAME && ops < 2 -> ops++; start = clk :: else fi; redo = 0; genop[clk] = ops - 1
       :: (hst == 0 || clk >= hgen + TTL) && !SAME && ops == 2 -> skip      /* the model's bound */
       :: hst == 1 && clk < hgen + TTL ->
          if :: hown == me -> ok = 1
#ifndef M_NOTAKE
             :: hown != me -> hown = me; ok = 1                   /* its lease is over (any time: pauses) */
#endif
             :: hown != me -> ok = 0 fi                           /* 409 */
       :: hst == 2 && clk < hgen + TTL -> ok = 0;                 /* replayed: an acknowledgement as well */
          if :: !(forgiven[OPG(hgen)] || (cnt[OPG(hgen)] == 1 && cnt[2 + OPG(hgen)] == 1)) -> assert(unseen) :: else fi
       fi;
       g = hgen; ct = clk; e0 = epoch[0]; e1 = epoch[1]; done0 = 0; done1 = 0
     };
     if :: !ok -> goto next :: else fi;
part:
     do
     :: done0 && done1 -> break
     :: !done0 -> d_step {
          if
          :: DEAD(g) || OVERDUE -> ok = 0
          :: !DEAD(g) && !OVERDUE && DUPL(0, g) -> REFRESH(0)
          :: else -> cnt[OPG(g)]++; mk[0] = g + 1; mt[0] = clk + KEEP
          fi; done0 = 1 }
        if :: !ok -> goto next :: ok fi
     :: !done1 -> d_step {
          if
          :: DEAD(g) || OVERDUE -> ok = 0
          :: !DEAD(g) && !OVERDUE && DUPL(1, g) -> REFRESH(1)
          :: else -> cnt[2 + OPG(g)]++; mk[1] = g + 1; mt[1] = clk + KEEP
          fi; done1 = 1 }
        if :: !ok -> goto next :: ok fi
     :: goto next                        /* gives up: 504, or the process dies */
#ifdef LATE
     :: atomic { zk == 0 -> if :: zk = 1 :: zk = 2 fi; zg = g; zt = ct } goto next        /* ..and a copy is still under way */
#endif
     od;
     atomic {                            /* finish: done, if it is still this generation */
       ok = 0;
       if
#ifndef M_NORESEND
       :: epoch[0] != e0 || epoch[1] != e1 ->                     /* a connection was lost since the claim: everything once more */
          e0 = epoch[0]; e1 = epoch[1]; done0 = 0; done1 = 0; ok = 1
       :: epoch[0] == e0 && epoch[1] == e1 &&
#else
       ::
#endif
#ifdef M_FINNOCAS
          true
#else
          hgen == g && hst > 0
#endif
          -> hst = 2; hgen = g;
          /* 202 */
          acked[OPG(g)] = 1;
          if :: !(forgiven[OPG(g)] || (cnt[OPG(g)] == 1 && cnt[2 + OPG(g)] == 1)) -> assert(unseen) :: else fi
#ifdef SHORT
          ; if :: mk[0] == g + 1 -> mt[0] = clk + 1 :: else fi; if :: mk[1] == g + 1 -> mt[1] = clk + 1 :: else fi
#endif
       :: else                                                    /* the claim is gone: from the beginning */
       fi };
     if :: ok -> ok = 1; goto part :: else fi
  :: n == ATT -> break
  od
}

#ifdef LATE
active proctype Late() {
  byte g = 0;
end:
  do
  :: d_step { zk == 1 || zk == 2 -> g = zg;
       if
       :: DEAD(g) || !INTIME -> skip
       :: else ->
          if
          :: DUPL(zk - 1, g) -> REFRESH(zk - 1)
          :: else -> cnt[2 * (zk - 1) + OPG(g)]++; mk[zk - 1] = g + 1; mt[zk - 1] = clk + KEEP
          fi
       fi;
       zk = 3; zg = 0; zt = 0; g = 0 }
  od
}
#endif

active proctype Clock() {
  do
  :: d_step { clk < TMAX -> clk++;
       if :: mk[0] > 0 && clk >= mt[0] -> mk[0] = 0; mt[0] = 0 :: else fi;
       if :: mk[1] > 0 && clk >= mt[1] -> mk[1] = 0; mt[1] = 0 :: else fi }
  :: clk == TMAX -> break
  od
}

#ifdef CRASH
#ifdef ONENODE
#define HIT(x) 1
#else
#define HIT(x) (p == x)
#endif
active proctype Crash() {                /* a node goes back to an earlier moment (within the last second: no clock tick) */
  byte n = 0, p = 0, c = 0, i = 0;
  do
  :: n < CRASH ->
     if :: p = 0
#ifndef ONENODE
        :: p = 1
#endif
     fi;
     d_step { c = clk; Shst = hst; Shgen = hgen; Shown = hown; i = 0;
       do :: i < 2 -> if :: HIT(i) -> Smk[i] = mk[i]; Smt[i] = mt[i]; Scnt[2*i] = cnt[2*i]; Scnt[2*i+1] = cnt[2*i+1] :: else fi; i++ :: else -> i = 0; break od };
     d_step {
       if
       :: c == clk ->
          do
          :: i < 2 ->
             if
             :: HIT(i) ->
                if :: acked[0] && cnt[2*i] != Scnt[2*i] -> forgiven[0] = 1 :: else fi;
                if :: acked[1] && cnt[2*i+1] != Scnt[2*i+1] -> forgiven[1] = 1 :: else fi;
                cnt[2*i] = Scnt[2*i]; cnt[2*i+1] = Scnt[2*i+1]; mk[i] = Smk[i]; mt[i] = Smt[i]; epoch[i]++
             :: else
             fi;
             i++
          :: else -> i = 0; break
          od;
          if :: p == 0 && hst > 0 && (Shst == 0 || hgen != Shgen) -> redo = 1 :: else fi;
          if :: p == 0 -> hst = Shst; hgen = Shgen; hown = Shown :: else fi
       :: else
       fi;
       n++; Shst = 0; Shgen = 0; Shown = 0; i = 0;
       do :: i < 2 -> Smk[i] = 0; Smt[i] = 0; Scnt[2*i] = 0; Scnt[2*i+1] = 0; i++ :: else -> i = 0; break od;
       p = 0; c = 0 }
  :: else -> break
  od
}
#endif

active proctype Monitor() {
end:
  do
  :: d_step { cnt[0] > 1 || cnt[1] > 1 || cnt[2] > 1 || cnt[3] > 1 -> assert(twice) }     /* never twice */
#ifdef GOAL
  :: d_step { acked[0] && acked[1] && cnt[0] == 1 && cnt[3] == 1 -> assert(goal) }
#endif
  od
}

init { atomic { run Server(1); run Server(2) } }
