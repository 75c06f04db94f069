/* lane.pml - flushes without a key: (writer id, sequence number) in each partition, two flushes under way, parts of several
 * partitions in one script.
 *
 * Follows: lane.c (line by line), delivery.c (pump, replies), delivery_answer.c (is_untouched, flush_is_finished, late answers), the first lines of
 * storage/lua/write.lua.  Checked against tests/lib/write_model.h in the unit tests, on the real lane.c, at random; here on a
 * model of it, for all courses of events.
 *
 * One writer.  A connection may be lost or left at any time; what was sent over it arrives late, in part or never.  A script is executed as
 * a whole, refused as a whole (AGAIN: LOADING, BUSY..; REFUSED: OOM, MISCONF..), or breaks off half way (FAILED).  The clients' deadline
 * (LATE) comes at any time.  Redis goes back to an earlier moment (CRASH); bytes sent before die with their connections.
 *
 * Shapes: default F=3 flushes of one part, one partition.  PARTS2: F=2 flushes of two parts in one partition.  LANES2: F=2 flushes
 * of one part in each of two partitions.  A flush is acknowledged when all its parts are answered.
 * Budgets, by -D: LOSS connections lost, ST changes of the rollup state, AGAINS, REFUSES, FAILS, LATE, RESTART, CRASH, TMAX (time in half hours:
 * a part's ttl is 1, a marker's life 2).
 */
#ifndef F
#if defined(PARTS2) || defined(LANES2)
#define F 2
#else
#define F 3
#endif
#endif
#ifdef PARTS2
#define N (2*F)
#define P 1
#define FL(x) ((x) / 2)
#define LA(x) 0
#else
#ifdef LANES2
#define N (2*F)
#define P 2
#define FL(x) ((x) / 2)
#define LA(x) ((x) % 2)
#else
#define N F
#define P 1
#define FL(x) (x)
#define LA(x) 0
#endif
#endif
#ifndef LOSS
#define LOSS 1
#endif
#ifndef ST
#define ST 1
#endif
#ifndef AGAINS
#define AGAINS 0
#endif
#ifndef REFUSES
#define REFUSES 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef RESTART
#define RESTART 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef TMAX
#define TMAX 0
#endif
#define TTL 1
#define KEEP 2
#define W 6                               /* ids a partition may need in all: more is running away */
#define NC (LOSS + RESTART + CRASH + 1 < 3 -> LOSS + RESTART + CRASH + 1 : 3)
#define WINDOW 2
#define IDX(l, w) ((l) * W + (w))

/* part states, fates, answers: lane.h */
#define NONE 0
#define HELD 1
#define SENT 2
#define OK 3
#define OVER 4
#define GONE 5
#define UNKNOWN 1
#define REFUSED 2
#define A_OK 1
#define A_AGAIN 2
#define A_REPLAN 3
#define A_GAP 4
#define A_STALE 5
#define A_REFUSED 6
#define A_FAILED 7
#define BEFORE_IT 8
#define IN_IT 9
#ifdef M_NOSTALE
#define TTLOK 1
#else
#define TTLOK (clk < g + TTL)
#endif
#ifdef M_GT
#define NEXT (s > last[IDX(l, w)])
#else
#define NEXT (s == last[IDX(l, w)] + 1)
#endif

byte clk, epoch;
/* Redis */
byte last[P*W], mt[P*W], st[P], cnt[N];
#if CRASH > 0
byte Slast[P*W], Smt[P*W], Sst[P], Scnt[N];
#endif
chan q0 = [N] of { byte, byte, byte, byte, byte, bit };   /* part, id, seq, gen, st; last of its script */
chan q1 = [N] of { byte, byte, byte, byte, byte, bit };
chan q2 = [N] of { byte, byte, byte, byte, byte, bit };
chan rep = [N] of { byte, byte, byte, byte, byte, bit };  /* part, answer, st, time, epoch; last */
/* the writer */
byte cn; bit sdead;                       /* sdead: Redis is gone behind this connection */
byte ps[N], era[N], sq[N], sera[N], gen[N], fate[N], ae[N]; bit dbt[N];
byte cera[P], nseq[P], nsent[P], ws[P];
byte seen;                                /* a lower bound of Redis's clock */
byte nf; bit jobs[F];                     /* flushes begun; clients are waiting */
byte nl, nst, nag, nre, nfa, nla, nrs, gl; bit over;
bit half[N];                              /* its script broke off in it */
bit said503[N];                           /* its client was told that nothing of it holds */
bit twice, lost, dishonest, stuck, runaway, goal;         /* never set: name what is broken */

#define LIVE(f) (f < nf && !(ps[FIRST(f)] == GONE))
#if defined(PARTS2) || defined(LANES2)
#define FIRST(f) (2*(f))
#define UNDERWAY ((ps[0] != NONE && ps[0] != GONE) + (ps[2] != NONE && ps[2] != GONE))
#else
#define FIRST(f) (f)
#if F == 2
#define UNDERWAY ((ps[0] != NONE && ps[0] != GONE) + (ps[1] != NONE && ps[1] != GONE))
#elif F == 3
#define UNDERWAY ((ps[0] != NONE && ps[0] != GONE) + (ps[1] != NONE && ps[1] != GONE) + (ps[2] != NONE && ps[2] != GONE))
#else
#define UNDERWAY ((ps[0] != NONE && ps[0] != GONE) + (ps[1] != NONE && ps[1] != GONE) + (ps[2] != NONE && ps[2] != GONE) + (ps[3] != NONE && ps[3] != GONE))
#endif
#endif
#define BEFORE(a, b) (era[a] < era[b] || (era[a] == era[b] && sq[a] < sq[b]))    /* order in the lane */
#define MAYSEND(x) (ps[x] == HELD && nsent[LA(x)] < WINDOW)
#if N == 2
#define CANSEND (MAYSEND(0) || MAYSEND(1))
#elif N == 3
#define CANSEND (MAYSEND(0) || MAYSEND(1) || MAYSEND(2))
#else
#define CANSEND (MAYSEND(0) || MAYSEND(1) || MAYSEND(2) || MAYSEND(3))
#endif
#define PENDING(x) (ps[x] == HELD || ps[x] == SENT)

inline number(x) { era[x] = cera[LA(x)]; sq[x] = nseq[LA(x)]; nseq[LA(x)]++ }
inline new_id(l) { if :: cera[l] + 1 < W -> cera[l]++ :: else -> assert(runaway) fi; nseq[l] = 1; gl = 0 }
/* lane_next: the first held part of lane l into x; N: none */
inline lane_next(l) {
  x = N; y = 0;
  do
  :: y < N && LA(y) == l && ps[y] == HELD && nsent[l] < WINDOW && (x == N || BEFORE(y, x)) -> x = y; y++
  :: y < N && !(LA(y) == l && ps[y] == HELD && nsent[l] < WINDOW && (x == N || BEFORE(y, x))) -> y++
  :: y == N -> break
  od; y = 0
}
inline send(lst) {
  if
  :: sdead -> skip
  :: else ->
     if :: cn == 0 -> q0!z, era[z], sq[z], gen[z], ws[LA(z)], lst
        :: cn == 1 -> q1!z, era[z], sq[z], gen[z], ws[LA(z)], lst
        :: cn == 2 -> q2!z, era[z], sq[z], gen[z], ws[LA(z)], lst fi
  fi
}
inline take(l) {                          /* all that lane l may send; scripts end anywhere, at the latest at the end */
  lane_next(l);
  do
  :: x < N ->
     if
     :: z == N -> skip
     :: z < N -> send(0)
     :: z < N -> send(1)
     fi;
     z = x; ps[x] = SENT; sera[x] = era[x]; nsent[l]++;
     lane_next(l)
  :: x == N -> break
  od
}
inline lane_move(l, dead) {               /* lane.c, move() */
  if :: dead == cera[l] -> new_id(l) :: else fi;
  do                                      /* in order, each to the end */
  :: x = N; y = 0;
     do
     :: y < N && LA(y) == l && PENDING(y) && era[y] == dead && (x == N || BEFORE(y, x)) -> x = y; y++
     :: y < N && !(LA(y) == l && PENDING(y) && era[y] == dead && (x == N || BEFORE(y, x))) -> y++
     :: y == N -> break
     od;
     y = 0;
     if :: x < N -> number(x) :: x == N -> break fi
  od;
  x = 0
}
inline lane_answered(p, k) {
  nsent[LA(p)]--; ps[p] = HELD;
  if
  :: k == A_OK -> ps[p] = (fate[p] == UNKNOWN -> OVER : OK)
  :: k == A_AGAIN || k == A_REPLAN -> skip
  :: k == A_GAP ->
     b = 1; y = 0;                        /* is it the first unanswered one of its id? */
#ifndef M_GAPFINAL
     do :: y < N -> if :: y != p && LA(y) == LA(p) && PENDING(y) && era[y] == era[p] && BEFORE(y, p) -> b = 0 :: else fi; y++ :: y == N -> break od;
     y = 0;
#endif
     if
#ifdef M_SENTERA
     :: b -> w = era[p]; lane_move(LA(p), w); w = 0
#else
#ifdef M_STAY
     :: 0 -> skip
#else
     :: b && sera[p] == era[p] -> w = era[p]; lane_move(LA(p), w); w = 0
#endif
#endif
     :: else
     fi; b = 0
  :: k == A_STALE -> ps[p] = OVER; fate[p] = UNKNOWN
  :: k == A_REFUSED ->
#ifdef M_REFDOUBT
     ps[p] = OVER; fate[p] = REFUSED
#else
     if :: !dbt[p] -> ps[p] = OVER; fate[p] = REFUSED :: else fi
#endif
  :: k == A_FAILED ->
     if
     :: dbt[p] -> fate[p] = UNKNOWN
#ifdef M_FAILAGAIN                         /* half a script is sent again, and acknowledged for its marker */
     :: !dbt[p] -> skip
#else
     :: !dbt[p] -> ps[p] = OVER; fate[p] = UNKNOWN
#endif
     fi
  fi
}
inline lane_lost() {                      /* the connection is gone */
  do :: len(rep) > 0 -> rep?_,_,_,_,_,_ :: else -> break od;
  x = 0;
  do
  :: x < N ->
#ifdef M_OKSTAYS
     if :: ps[x] == SENT -> ps[x] = HELD; dbt[x] = 1 :: else fi;
#else
     if :: ps[x] == SENT || ps[x] == OK -> ps[x] = HELD; dbt[x] = 1 :: else fi;
#endif
     x++
  :: x == N -> x = 0; break
  od;
  y = 0; do :: y < P -> nsent[y] = 0; y++ :: y == P -> y = 0; break od;
  if :: cn != 0 && len(q0) == 0 -> cn = 0 :: else -> if :: cn != 1 && len(q1) == 0 -> cn = 1 :: else -> cn = 2 fi fi;
  sdead = 0; gl = 0
}
#define FREE ((cn != 0 && len(q0) == 0) || (cn != 1 && len(q1) == 0) || (cn != 2 && len(q2) == 0))

#ifdef M_UNTOUCHED                        /* a part that is held counts as untouched, in doubt or not */
#define CLEAN(x) (ps[x] == HELD || (ps[x] == OVER && fate[x] == REFUSED))
#else
#define CLEAN(x) ((ps[x] == HELD && !dbt[x]) || (ps[x] == OVER && fate[x] == REFUSED))
#endif
#define DONE(x) (ps[x] == OK || ps[x] == OVER)
#if defined(PARTS2) || defined(LANES2)
#define UNTOUCHED(f) (CLEAN(2*(f)) && CLEAN(2*(f)+1))
#define ALLDONE(f) (DONE(2*(f)) && DONE(2*(f)+1))
#define NPARTS 2
#else
#define UNTOUCHED(f) CLEAN(f)
#define ALLDONE(f) DONE(f)
#define NPARTS 1
#endif
/* finish_flush: jobs lie in any of its parts, so each part's answer is somebody's.  b: is any answer from after the last loss of data? */
inline finish(f) {
  x = FIRST(f); b = 0;
  do :: x < FIRST(f) + NPARTS -> if :: ps[x] == OK && ae[x] == epoch -> b = 1 :: else fi; x++ :: else -> break od;
  x = FIRST(f);
  do
  :: x < FIRST(f) + NPARTS ->
     if
     :: ps[x] == OK -> if :: (b && cnt[x] != 1) || half[x] -> assert(lost) :: else fi       /* 202 */
     :: CLEAN(x) -> if :: cnt[x] > 0 && jobs[f] -> assert(dishonest) :: else fi; said503[x] = jobs[f]
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = FIRST(f);
  do :: x < FIRST(f) + NPARTS -> ps[x] = GONE; era[x] = 0; sq[x] = 0; sera[x] = 0; gen[x] = 0; fate[x] = 0; ae[x] = 0; dbt[x] = 0; x++ :: else -> break od;
  jobs[f] = 0; x = 0; b = 0
}

/* 503 if nothing of it holds or can, and given up; else 504, and delivered all the same. */
inline late(f) { if :: UNTOUCHED(f) -> finish(f) :: else -> jobs[f] = 0 fi }

active proctype Writer() {
  byte x = 0, y = 0, z = 0, w = 0, k = 0, v = 0, t = 0, e = 0; bit b = 0;
  d_step { x = 0; do :: x < P -> cera[x] = 0; nseq[x] = 1; x++ :: x == P -> x = 0; break od };
  do
  :: atomic { nf < F && UNDERWAY < 2 ->   /* a new flush */
       jobs[nf] = 1; x = FIRST(nf);
       do :: x < FIRST(nf) + NPARTS -> ps[x] = HELD; gen[x] = seen; number(x); x++ :: else -> break od;
       x = 0; nf++ }
  :: atomic { CANSEND ->                  /* delivery_pump */
       z = N; take(0);
#if P > 1
       take(1);
#endif
       send(1); x = 0; y = 0; z = 0 }
  :: atomic { nempty(rep) ->              /* delivery_take_reply: all parts of one script */
       do
       :: rep?x,k,v,t,e,b -> z = x;
          seen = (t > seen -> t : seen);
#ifndef NOLIVE
          if :: k == A_GAP -> gl++; if :: gl > 2*N + 2 -> assert(stuck) :: else fi :: else -> gl = 0 fi;
#endif
          if
          :: k == A_REPLAN -> ws[LA(z)] = v
#ifdef M_REGEN
          :: k == A_STALE -> gen[z] = t; k = A_AGAIN
#else
          :: k == A_STALE && !dbt[z] -> gen[z] = t; k = A_AGAIN
#endif
          :: k == A_OK -> ae[z] = e
          :: else
          fi;
          if :: b -> v = 1 :: else -> v = 0 fi;
          b = 0; lane_answered(z, k);
          if :: v -> break :: else fi
       od;
       x = 0; y = 0; z = 0; k = 0; v = 0; t = 0; e = 0; b = 0 }
  :: d_step { LIVE(0) && (ALLDONE(0) || (!jobs[0] && UNTOUCHED(0))) -> finish(0) }
  :: d_step { LIVE(1) && (ALLDONE(1) || (!jobs[1] && UNTOUCHED(1))) -> finish(1) }
#if F > 2
  :: d_step { LIVE(2) && (ALLDONE(2) || (!jobs[2] && UNTOUCHED(2))) -> finish(2) }
#endif
#if F > 3
  :: d_step { LIVE(3) && (ALLDONE(3) || (!jobs[3] && UNTOUCHED(3))) -> finish(3) }
#endif
#if LATE > 0
  :: d_step { nla < LATE && LIVE(0) && jobs[0] -> nla++; late(0) }     /* the clients' time is up */
  :: d_step { nla < LATE && LIVE(1) && jobs[1] -> nla++; late(1) }
#if F > 2
  :: d_step { nla < LATE && LIVE(2) && jobs[2] -> nla++; late(2) }
#endif
#endif
  :: atomic { (sdead || nl < LOSS) && FREE && UNDERWAY > 0 ->
       if :: sdead -> skip :: else -> nl++ fi;
       lane_lost();
#ifdef M_NEWID                            /* a lost connection: all under a new id */
       z = 0; do :: z < P -> w = cera[z]; lane_move(z, w); z++ :: z == P -> z = 0; w = 0; break od;
#endif
     }
#if RESTART > 0
  :: atomic { nrs < RESTART && UNDERWAY > 0 && FREE -> nrs++; lane_lost();    /* the process dies: nothing is sent again, new ids */
       x = 0;
       do :: x < N -> if :: ps[x] != NONE && ps[x] != GONE -> ps[x] = GONE; era[x] = 0; sq[x] = 0; sera[x] = 0; gen[x] = 0; fate[x] = 0; ae[x] = 0; dbt[x] = 0; jobs[FL(x)] = 0 :: else fi; x++ :: x == N -> break od;
       y = 0; do :: y < P -> new_id(y); ws[y] = 0; y++ :: y == P -> break od; x = 0; y = 0 }
#endif
  :: atomic { nf == F && UNDERWAY == 0 -> over = 1 } break
  od
}

active proctype Redis() {
  byte c = 0, x = 0, w = 0, s = 0, g = 0, v = 0, k = 0, mode = 0, l = 0; bit b = 0;
  do
  :: atomic {
       if :: nempty(q0) -> c = 0 :: nempty(q1) -> c = 1 :: nempty(q2) -> c = 2 fi;
       if
       :: true -> mode = 0
       :: c != cn -> mode = 1                              /* bytes that never come */
#if AGAINS > 0
       :: nag < AGAINS && c == cn -> nag++; mode = A_AGAIN
#endif
#if REFUSES > 0
       :: nre < REFUSES && c == cn -> nre++; mode = A_REFUSED
#endif
#if FAILS > 0
       :: nfa < FAILS && c == cn -> nfa++; mode = A_FAILED            /* will break off before some part, or in it */
#endif
       fi;
       do
       :: if :: c == 0 -> q0?x,w,s,g,v,b :: c == 1 -> q1?x,w,s,g,v,b :: c == 2 -> q2?x,w,s,g,v,b fi;
          l = LA(x);
          if
          :: mode == A_FAILED -> skip                      /* this part as usual, the break is behind it */
          :: mode == A_FAILED -> mode = BEFORE_IT
          :: mode == A_FAILED -> mode = IN_IT
          :: mode != A_FAILED -> skip
          fi;
          if
          :: mode != 0 && mode != A_FAILED && mode != IN_IT -> k = mode
          :: else ->
             if
#ifndef M_NOSTALE
             :: clk >= g + TTL -> k = A_STALE
#endif
             :: TTLOK && s <= last[IDX(l, w)] -> k = A_OK
#ifndef M_GT
             :: TTLOK && s > last[IDX(l, w)] + 1 -> k = A_GAP
#endif
             :: TTLOK && NEXT && v != st[l] -> k = A_REPLAN
             :: TTLOK && NEXT && v == st[l] -> k = A_OK;
                if :: cnt[x] > 0 -> assert(twice) :: else fi;
                if :: said503[x] -> assert(dishonest) :: else fi;
                cnt[x]++;
#ifdef M_MARKLAST                          /* the marker is set behind the counts */
                if :: mode != IN_IT -> last[IDX(l, w)] = s; mt[IDX(l, w)] = clk + KEEP :: else fi
#else
                last[IDX(l, w)] = s; mt[IDX(l, w)] = clk + KEEP
#endif
             fi;
             if :: mode == IN_IT -> half[x] = (cnt[x] == 1); mode = BEFORE_IT :: else fi
          fi;
          if :: mode >= A_FAILED -> k = A_FAILED :: else fi;         /* one error for all parts of the script */
          if
          :: c == cn && !sdead && mode != 1 -> rep!x, k, st[l], clk, epoch, b
          :: !(c == cn && !sdead && mode != 1) -> skip
          fi;
          if :: b -> break :: else fi
       od;
       c = 0; x = 0; w = 0; s = 0; g = 0; v = 0; k = 0; mode = 0; l = 0; b = 0 }
#if ST > 0
  :: atomic { nst < ST && !over -> nst++; st[0]++ }
#endif
  od
}

#if TMAX > 0
active proctype Clock() {
  byte i = 0;
  do
  :: d_step { clk < TMAX -> clk++; i = 0;
       do :: i < P*W -> if :: last[i] > 0 && clk >= mt[i] -> last[i] = 0; mt[i] = 0 :: else fi; i++ :: else -> i = 0; break od }
  :: break
  od
}
#endif

#if CRASH > 0
active proctype Crash() {
  byte n = 0, c = 0, i = 0;
  do
  :: n < CRASH ->
     d_step { c = clk; i = 0;
       do :: i < P*W -> Slast[i] = last[i]; Smt[i] = mt[i]; i++ :: else -> break od; i = 0;
       do :: i < P -> Sst[i] = st[i]; i++ :: else -> break od; i = 0;
       do :: i < N -> Scnt[i] = cnt[i]; i++ :: else -> i = 0; break od };
     d_step {
       if
       :: c == clk -> epoch++; i = 0;
          do :: i < P*W -> last[i] = Slast[i]; mt[i] = Smt[i]; i++ :: else -> break od; i = 0;
          do :: i < P -> st[i] = Sst[i]; i++ :: else -> break od; i = 0;
          do :: i < N -> cnt[i] = Scnt[i]; i++ :: else -> i = 0; break od;
#ifndef LATECRASH
          do :: len(q0) > 0 -> q0?_,_,_,_,_,_ :: else -> break od;
          do :: len(q1) > 0 -> q1?_,_,_,_,_,_ :: else -> break od;
          do :: len(q2) > 0 -> q2?_,_,_,_,_,_ :: else -> break od;
#endif
          sdead = 1
       :: else
       fi;
       n++; c = 0; i = 0;
       do :: i < P*W -> Slast[i] = 0; Smt[i] = 0; i++ :: else -> break od; i = 0;
       do :: i < P -> Sst[i] = 0; i++ :: else -> break od; i = 0;
       do :: i < N -> Scnt[i] = 0; i++ :: else -> i = 0; break od }
  :: break
  od
}
#endif

active proctype Stuck() {                 /* nothing can move any more: then everything is answered */
  timeout -> if :: over -> skip :: else -> assert(stuck) fi;
#ifdef GOAL
  if :: cera[0] > 0 && cnt[N-1] == 1 && cnt[0] == 1 -> assert(goal) :: else fi
#endif
}
