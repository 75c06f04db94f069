/* direct.pml - a request with an Idempotency-Key, the direct way and the way by a claim: two tallyd processes, one Redis.
 *
 * Follows: handlers/ingest/events.c (try_directly, claimed, give_back), storage/{claims,delivery,flush,unit}.c, storage/lua/{write,claim,settle}.lua.
 * (The direct way needs all of a flush in one script, so one node; idem.pml has the way by a claim on two nodes that lose data independently.)
 *
 * Directly: one script writes the events and the record, with its answer, unless the key has a record.  Whoever finds one, or loses the
 * connection, claims the key; what was lost is then in doubt: it may have been applied, or may still come (LATE), so there is no 503 unless
 * the claim says that it was not, and the claim is not released, whose record stops the copy that may come.  Nor is one that was taken over:
 * the parts of the one before have markers, which only another claim would look at.
 * By a claim: record in flight, the parts of two partitions with their markers (gen), each within the time of the claim, then the answer.
 *
 * An attempt (0..3) is one request: it may end anywhere (its process dies, or 504), be refused, lose every reply.  Its claim may be taken
 * over at any time (pauses).  Time in ticks of 12 h, as in idem.pml: a key lives TTL; a script of a flush, or of a claim's attempt, that
 * comes a tick later is refused (30 and 10 minutes).  The client has one body and asks until it has a 202; it may use the key again for a
 * second operation when 24 h are over.
 *
 * Flags.  ATT attempts a process, TMAX.  CRASH: Redis goes back to an earlier moment (the beginning too: it comes back empty), and what was
 * under way is gone with its connection.  LATE: a copy is executed at any time later.  NODIRECT, NOCLAIM: one way only.  M_*: a wrong rule.
 */
#ifndef ATT
#define ATT 2
#endif
#ifndef TMAX
#define TMAX 3
#endif
#define TTL 2

byte clk;
/* ---- Redis: the record (0 none, 1 in flight, 2 done), gen, owner (attempt + 1); markers gen + 1, and until when they live; counts */
byte rst, rgen, rown; bit rdir;          /* rdir: written directly (it has no lease) */
byte mk[2], mt[2];
byte cnt[4];                             /* partition p, operation o: cnt[2*p+o] */
/* ---- ghosts */
byte genop[8], start, ops;               /* operation of a generation; first use of the current one; operations begun */
bit redo, acked[2], forgiven[2];         /* redo: its record is gone, a repeat within 24 h is the same operation */
bit did[4], no[4];                       /* attempt: a script of it counted something; it was told that nothing was counted */
bit wasdirect;
byte epoch;                              /* a process sees it as a lost connection */
bit twice, unseen, dishonest, goal;      /* never set: name what is broken */
#ifdef LATE
byte zk, zg, zt, za;                     /* a copy under way: 1, 2 of a part, 3 direct; its generation, time of the claim, attempt */
#endif
#ifdef CRASH
bit Srdir; byte Srst, Srgen, Srown, Smk[2], Smt[2], Scnt[4]; bit Sdid[4];
#endif

#define SAME     (redo && clk < start + TTL)
#define MAYBEGIN (SAME || ops < 2)       /* the model's bound */
#define VALID    (rst > 0 && clk < rgen + TTL)
#define OPG(g)   genop[g]
#define WHOLE(o) (forgiven[o] || (cnt[o] == 1 && cnt[2 + o] == 1))
inline begin_op(g) { if :: !SAME -> ops++; start = clk :: else fi; redo = 0; genop[g] = ops - 1 }
inline told_202(o) { acked[o] = 1; if :: !WHOLE(o) -> assert(unseen) :: else fi }

#ifdef M_INFLIGHT                         /* a record in flight does not hold it back */
#define HELD (VALID && rst == 2)
#else
#ifdef M_BLIND                            /* no record is looked for */
#define HELD 0
#else
#define HELD VALID
#endif
#endif
#ifdef M_NOSTALE
#define STALE(g) 0
#else
#define STALE(g) (clk != (g))
#endif
#ifdef M_RECAPART
#define RECORD(g, a) skip
#else
#define RECORD(g, a) rst = 2; rgen = g; rown = (a) + 1; rdir = 1
#endif
/* write.lua with a direct claim.  r: 1 applied, 2 the key was used, 3 nothing done */
inline direct(g, a) {
  if
  :: STALE(g) || (!HELD && !VALID && !MAYBEGIN) -> r = 3
  :: else ->
     if
     :: HELD -> r = 2
     :: else -> if :: VALID -> genop[g] = OPG(rgen) :: else -> begin_op(g) fi; RECORD(g, a); cnt[OPG(g)]++; cnt[2 + OPG(g)]++; did[a] = 1; r = 1
     fi
  fi
}
/* write.lua, the part of partition p, where the claim still is.  r: 1 it holds, 3 too late, or the claim was lost */
#ifdef M_PARTBLIND
#define CLAIMED(g) 1
#else
#ifdef M_PARTANY                          /* a record that was written directly is good enough */
#define CLAIMED(g) (rst > 0 && rgen == (g))
#else
#define CLAIMED(g) (rst > 0 && rgen == (g) && !rdir)
#endif
#endif
inline part(p, g, t, a) {
  if
  :: clk != t || clk >= g + TTL || !CLAIMED(g) -> r = 3
  :: else -> r = 1;
     if
     :: mk[p] > 0 && g < mk[p] - 1 + TTL -> if :: mk[p] < g + 1 -> mk[p] = g + 1; mt[p] = clk + 4 :: else fi
     :: else -> cnt[2 * p + OPG(g)]++; mk[p] = g + 1; mt[p] = clk + 4; did[a] = 1
     fi
  fi
}
#ifdef M_RELEASEANY                       /* whoever has it now, and also when it is done */
#define MINE(g, a) (rst > 0)
#else
#define MINE(g, a) (rst == 1 && rown == (a) + 1 && rgen == g)
#endif
inline release(g, a) { if :: MINE(g, a) -> rst = 0; rdir = 0; rgen = 0; rown = 0; redo = 1 :: else fi }
#ifdef M_DOUBTRELEASE
#define RELEASES fresh
#else
#ifdef M_TAKENRELEASE
#define RELEASES (!doubt)
#else
#define RELEASES (!doubt && fresh)
#endif
#endif

proctype Server(byte me) {
  byte g, ct, ep, a, r, n = 0; bit doubt, fresh, sent, done0, done1;
next: skip;
  d_step { g = 0; ct = 0; ep = 0; a = 0; r = 0; doubt = 0; fresh = 0; sent = 0; done0 = 0; done1 = 0 };
  if
  :: n == ATT -> goto stop
  :: n < ATT -> d_step { a = me * ATT + n; n++; g = clk; ep = epoch }
  fi;
#ifndef NODIRECT
  if
  :: d_step { direct(g, a) };             /* it gets there */
#ifdef M_RECAPART                         /* the record in a script of its own */
     if :: r == 1 -> d_step { rst = 2; rgen = g; rown = a + 1; rdir = 1 } :: else fi;
#endif
     if
     :: atomic { r == 1 && ep == epoch -> told_202(OPG(g)); wasdirect = 1 }; goto next
     :: r == 2 && ep == epoch -> skip     /* bounced */
     :: r == 3 && ep == epoch -> goto next
     :: doubt = 1                         /* the answer is lost */
     :: goto next
     fi
  :: doubt = 1                            /* it does not get there, nobody knows */
#ifdef LATE
  :: atomic { zk == 0 -> zk = 3; zg = g; za = a }; doubt = 1
  :: atomic { zk == 0 -> zk = 3; zg = g; za = a }; goto next
#endif
  :: no[a] = 1; goto next                 /* refused, or never sent: 503 */
#ifndef NOCLAIM
  :: skip                                 /* not small, or a guard: by a claim */
#endif
  fi;
#endif
#ifdef M_LOSTIS                           /* what is in doubt is taken for not applied: as if it were claimed */
  if :: doubt -> d_step { ct = clk; ep = epoch; if :: MAYBEGIN -> begin_op(g) :: else r = 3 fi }; if :: r == 3 -> goto next :: else goto parts fi :: else fi;
#endif
  if
  :: atomic { clk == g ->                 /* claim.lua; within the request's deadline, which is far less than a tick */
       if
       :: !VALID && MAYBEGIN -> rst = 1; rdir = 0; rgen = clk; rown = a + 1; begin_op(clk); fresh = 1; r = 1
       :: !VALID && !MAYBEGIN -> r = 3
       :: VALID && rst == 1 -> if :: rown = a + 1; r = 1 :: rown != a + 1 -> r = 3 fi       /* its own, or taken over; or 409 */
       :: VALID && rst == 2 -> told_202(OPG(rgen)); r = 3                                  /* the first answer */
       fi;
       g = rgen; ct = clk; ep = epoch }
  :: r = 3;                               /* Redis cannot be asked, or the time is over */
#ifdef M_DOUBT503
     no[a] = 1
#else
     if :: !doubt -> no[a] = 1 :: else fi
#endif
  fi;
  if :: r == 3 -> goto next :: else fi;
  if
  :: d_step { if :: RELEASES -> release(g, a) :: else fi; no[a] = 1 }; goto next           /* by now it is to be rejected: 4xx */
  :: skip
  fi;
parts:
  do
  :: done0 && done1 -> break
  :: !done0 -> d_step { part(0, g, ct, a); sent = 1; if :: r == 1 -> done0 = 1 :: else fi }; if :: r == 3 -> goto next :: else fi
  :: !done1 -> d_step { part(1, g, ct, a); sent = 1; if :: r == 1 -> done1 = 1 :: else fi }; if :: r == 3 -> goto next :: else fi
  :: !sent -> d_step { no[a] = 1; if :: RELEASES -> release(g, a) :: else fi }; goto next  /* refused: 503 */
  :: goto next                            /* 504, or the process dies */
#ifdef LATE
  :: atomic { zk == 0 -> if :: zk = 1 :: zk = 2 fi; zg = g; zt = ct; za = a }; goto next
#endif
  od;
  atomic {                                /* settle.lua */
    if
    :: ep != epoch -> ep = epoch; done0 = 0; done1 = 0; r = 2                              /* all parts once more */
    :: ep == epoch && rst > 0 && rgen == g -> rst = 2; told_202(OPG(g)); r = 1;
       if
       :: if :: mk[0] == g + 1 -> mt[0] = clk + 1 :: else fi; if :: mk[1] == g + 1 -> mt[1] = clk + 1 :: else fi
       :: skip                                                                            /* lost: they only take room */
       fi
    :: ep == epoch && !(rst > 0 && rgen == g) -> r = 3                                     /* 504 */
    fi };
  if :: r == 2 -> goto parts :: else goto next fi;
stop: skip
}

#ifdef LATE
active proctype Late() {
  byte r = 0;
end:
  do
  :: d_step { zk > 0 && zk < 4 ->
       if
       :: zk == 3 -> direct(zg, za);
#ifdef M_RECAPART
          if :: r == 1 -> rst = 2; rgen = zg; rown = za + 1; rdir = 1 :: else fi
#endif
       :: zk < 3 -> part((zk - 1), zg, zt, za)
       fi;
       zk = 4; zg = 0; zt = 0; za = 0; r = 0 }
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
inline pair(x, Sx) { if :: back -> x = Sx; Sx = 0 :: else -> Sx = x fi }
inline all() {
  pair(rst, Srst); pair(rdir, Srdir); pair(rgen, Srgen); pair(rown, Srown); pair(mk[0], Smk[0]); pair(mk[1], Smk[1]); pair(mt[0], Smt[0]); pair(mt[1], Smt[1]);
  pair(cnt[0], Scnt[0]); pair(cnt[1], Scnt[1]); pair(cnt[2], Scnt[2]); pair(cnt[3], Scnt[3]);
  pair(did[0], Sdid[0]); pair(did[1], Sdid[1]); pair(did[2], Sdid[2]); pair(did[3], Sdid[3])
}
active proctype Crash() {
  byte i = 0, c = 0; bit back = 0;
  d_step { all(); c = clk; back = 1 };
  d_step {
    if
    :: c == clk ->                        /* a second's worth of history, not a tick's */
       do :: i < 2 -> if :: acked[i] && (cnt[i] != Scnt[i] || cnt[2 + i] != Scnt[2 + i]) -> forgiven[i] = 1 :: else fi; i++ :: else -> i = 0; break od;
       if :: rst > 0 && (Srst == 0 || rgen != Srgen) -> redo = 1 :: else fi;
       all(); epoch = 1;
#ifdef LATE
       zk = 4; zg = 0; zt = 0; za = 0
#endif
    :: else
    fi;
    Srst = 0; Srdir = 0; Srgen = 0; Srown = 0; Smk[0] = 0; Smk[1] = 0; Smt[0] = 0; Smt[1] = 0; Scnt[0] = 0; Scnt[1] = 0; Scnt[2] = 0; Scnt[3] = 0;
    Sdid[0] = 0; Sdid[1] = 0; Sdid[2] = 0; Sdid[3] = 0; c = 0; back = 0 }
}
#endif

active proctype Monitor() {
end:
  do
  :: d_step { cnt[0] > 1 || cnt[1] > 1 || cnt[2] > 1 || cnt[3] > 1 -> assert(twice) }
  :: d_step { (did[0] && no[0]) || (did[1] && no[1]) || (did[2] && no[2]) || (did[3] && no[3]) -> assert(dishonest) }
#ifdef GOAL
  :: d_step { acked[0] && acked[1] && wasdirect && cnt[0] == 1 && cnt[3] == 1 && mk[0] > 0 -> assert(goal) }
#endif
  od
}

init { atomic { run Server(0); run Server(1) } }
