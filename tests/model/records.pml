/* records.pml - records of keys, and what their requests are counted for, on servers of a cluster that go back one without the other.
 *
 * Follows: storage/log/acknowledge.c, append.c, append.lua; storage/fold/round.c, gather_streams.c, transaction.c, storage/session/replicated.c;
 * storage/read/log_progress.c, storage/read/settled.c.
 *
 * Server L has the logs of two processes, their heads, and the record of key K: one slot, so one history.  Server P has a partition: counts and
 * cursors.  Each has a replica with an earlier state of it, which may take over FOL (FOP) times; epL, epP: how often.  That ends all connections.
 * A's log: entry 1 has E0, without a key, and K; entry 2 has E2.  B's log: entry 1 has K, the client's repeat, as it has had no answer.
 * Each process appends all of its entries again over a new connection, and has a fold: own entries from memory or from the stream, those of the
 * other from the stream.  An append and its answer are one step (log_append.pml), and so are WATCH and EXEC (log_fold.pml).  DIES: A may die.
 * QUEST, without B: a reader that remembers cursors, and another one that takes over what the first has found.
 *
 * Checked: an event counts once, K once over both logs (`twice`); what was acknowledged is counted when all is at rest (`lost`); an answer has what
 * was acknowledged before its question (`unseen`).
 */
#ifndef FOL
#define FOL 1
#endif
#ifndef FOP
#define FOP 1
#endif
#define E0 1
#define K 2
#define E2 4
bit twice, lost, unseen, goal;            /* never set: name what is broken, or reached */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi

/* L and its replica.  ent: of A's entries 1 and 2, B's entry.  rec: whose request set the record, 1 A's, 2 B's.  era: epL + 1 of the last append. */
byte head[2], ent[3], era[2], rec, Rhead[2], Rent[3], Rera[2], Rrec, epL;
/* P and its replica. */
byte cnt, cur[2], Rcnt, Rcur[2], epP;
/* The processes: the epoch of the connection, what was answered over it, acknowledged, let go to the fold; first answers and their eras. */
byte ac[2], an[2], ackd[2], fold[2], mem[3], mera[3];
bit dead;
byte acked;
bit armed, told;

#define BEHIND (Rhead[0] != head[0] || Rhead[1] != head[1] || Rera[0] != era[0] || Rera[1] != era[1])
#define WANT(f, n) (f == 1 -> K : ((n) == 1 -> (E0 | K) : E2))
#define LAST(f) (2 - (f))
#define AT(f, n) (2 * (f) + (n) - 1)
#ifdef NOWAIT                             /* --ack-replicas 0 */
#define HAS(f, n) 1
#else
#define HAS(f, n) (Rhead[f] >= (n))       /* so has it the record, and all that was written before */
#endif

active proctype L() {
  byte n = 0;
  do
  :: d_step { BEHIND -> Rhead[0] = head[0]; Rhead[1] = head[1]; Rent[0] = ent[0]; Rent[1] = ent[1]; Rent[2] = ent[2]; Rera[0] = era[0]; Rera[1] = era[1]; Rrec = rec }
  :: atomic { n < FOL -> n++; epL++;
       head[0] = Rhead[0]; head[1] = Rhead[1]; ent[0] = Rent[0]; ent[1] = Rent[1]; ent[2] = Rent[2]; era[0] = Rera[0]; era[1] = Rera[1];
#ifndef M_RECAPART
       rec = Rrec;
#endif
       printf("L fails over: heads %d %d, record %d\n", head[0], head[1], rec) }
  :: atomic { n < FOL -> n = FOL }
  od
}
active proctype P() {
  byte n = 0;
  do
  :: d_step { cnt != Rcnt || cur[0] != Rcur[0] || cur[1] != Rcur[1] -> Rcnt = cnt; Rcur[0] = cur[0]; Rcur[1] = cur[1] }
  :: atomic { n < FOP -> n++; epP++; cnt = Rcnt; cur[0] = Rcur[0]; cur[1] = Rcur[1]; printf("P fails over: cursors %d %d, counts %d\n", cur[0], cur[1], cnt) }
  :: atomic { n < FOP -> n = FOP }
  od
}
#ifdef M_RECAPART
active proctype Records() { if :: atomic { rec != 0 -> rec = 0; printf("the record is gone\n") } :: true fi }      /* on a server of its own */
#endif

proctype Writer(bit f) {
  byte sn = 1, x = 0;
  do
  :: atomic { !(f == 0 && dead) && ac[f] == epL && sn <= LAST(f) && sn <= head[f] + 1 ->
       if
       :: sn <= head[f] -> skip           /* DUP */
       :: sn == head[f] + 1 ->
          x = WANT(f, sn);
          if
          :: (x & K) && (rec == 0 || rec == f + 1) -> rec = f + 1
          :: (x & K) && rec == 2 - f -> x = x & ~K
          :: else
          fi;
          head[f] = sn; era[f] = epL + 1; ent[AT(f, sn)] = x;
          printf("process %d appends %d: %d\n", f, sn, x)
       fi;
       if :: mera[AT(f, sn)] == 0 -> mem[AT(f, sn)] = ent[AT(f, sn)]; mera[AT(f, sn)] = epL + 1 :: else fi;
       an[f] = sn; sn++; x = 0 }
  :: atomic { !(f == 0 && dead) && ac[f] != epL -> ac[f] = epL; sn = 1; an[f] = 0 }
  :: atomic { !(f == 0 && dead) && ac[f] == epL && ackd[f] < an[f] && HAS(f, ackd[f] + 1) ->      /* WAIT is answered */
       ackd[f]++; acked = acked | WANT(f, ackd[f]); if :: fold[f] < ackd[f] -> fold[f] = ackd[f] :: else fi }
#if defined(LAG) || defined(M_NOTDUR)
  :: atomic { !(f == 0 && dead) && fold[f] < an[f] -> fold[f]++ }
#endif
#ifdef DIES
  :: atomic { f == 0 && !dead -> dead = 1; printf("A dies\n") }
#endif
  :: atomic { f == 0 && dead -> break }
  od
}

#define HASENT(n) (fr < (n) && (n) <= to)
#ifdef M_NOERA
#define SAMEERA(n) 1
#else
#define SAMEERA(n) (!HASENT(n) || mera[AT(l, n)] == er)
#endif
proctype Fold(bit f) {
  byte h = 0, er = 0, eo = 0, fr = 0, to = 0, x = 0; bit l = 0, st = 0;
  do
  :: atomic {                             /* the heads */
       if :: cur[0] < head[0] && (f == 1 || fold[0] > cur[0] && !dead) -> l = 0
          :: cur[1] < head[1] && (f == 0 && !dead || f == 1 && fold[1] > cur[1]) -> l = 1
       fi;
       h = head[l]; er = era[l]; eo = epL }
     atomic { fr = cur[l]; st = 0 }       /* the cursor */
     atomic {                             /* own entries: as far as replicas have them */
       if
       :: l == f && fold[l] > fr -> to = fold[l];
          if
          :: h < to || !SAMEERA(1) || !SAMEERA(2) -> st = 1; to = (to < h -> to : h)      /* the stream */
          :: else -> x = (HASENT(1) -> mem[AT(l, 1)] : 0) | (l == 0 && HASENT(2) -> mem[1] : 0)
          fi
       :: l == f && fold[l] <= fr -> to = fr
       :: l != f -> st = 1; to = h
       fi }
     if
     :: st && l != f ->                   /* WAIT, behind a write of its own */
#ifndef M_NOTASKED
        if
#ifdef LAG
        :: skip
#endif
        :: atomic { !BEHIND -> skip }
        :: to = fr                        /* not within 100 ms */
        fi
#else
        skip
#endif
     :: else
     fi;
     atomic {                             /* XRANGE: what L has now */
       if
#ifndef M_CONN
       :: st && eo != epL -> to = fr      /* not the connection over which the heads were read */
#endif
       :: else ->
          if
          :: st -> x = (HASENT(1) && 1 <= head[l] -> ent[AT(l, 1)] : 0) | (l == 0 && HASENT(2) && 2 <= head[0] -> ent[1] : 0)
          :: else
          fi
       fi }
     atomic {                             /* WATCH, the state, EXEC */
       if
#ifdef M_MISSING
       :: cur[l] <= fr && to > fr ->
#else
       :: cur[l] == fr && to > fr ->
#endif
          printf("fold of process %d counts log %d from %d to %d: %d\n", f, l, fr, to, x);
          MUST((cnt & x) == 0, twice);
          cnt = cnt | x; cur[l] = to
       :: else
       fi;
       h = 0; er = 0; eo = 0; fr = 0; to = 0; x = 0; l = 0; st = 0 }
  :: atomic { f == 0 && dead -> break }
  od
}

#ifdef QUEST
active proctype Reader() {                /* remembers that the cursors had reached heads r0 and r1, over connections to L and P of epochs qL and qP */
  byte need = 0, qL = 0, qP = 0, r0 = 0, r1 = 0, h0 = 0, h1 = 0, k = 0; bit has = 0, tells = 0, ok = 0;
  do
  :: k < 2 ->
     atomic { k++; need = acked; tells = armed }
again:
     ok = 0;
     if
     :: atomic { has && qL == epL -> h0 = head[0]; h1 = head[1] }      /* heads alone, and something of P */
        if
#ifdef M_QOTHERS
        :: h0 == r0 && h1 == r1 -> ok = 1
        :: else -> has = 0
#else
        :: atomic { h0 == r0 && h1 == r1 && qP == epP -> ok = 1 }
        :: else -> has = 0
#endif
        fi
     :: atomic { !has || qL != epL -> qL = epL; has = 0; h0 = head[0]; h1 = head[1] }
        atomic { cur[0] >= h0 && cur[1] >= h1 -> qP = epP; has = 1; ok = 1; r0 = h0; r1 = h1 }
     fi;
     if
     :: ok && tells -> told = 1
     :: else
     fi;
     atomic {
       if
       :: ok && qP == epP -> MUST((need & ~cnt) == 0, unseen); need = 0; ok = 0; tells = 0
       :: else ->
#ifdef M_QREMEMBER
          qP = epP;
#else
          has = 0;
#endif
          goto again
       fi }
  :: else -> break
  od
}
active proctype Other() {                 /* its connection stands when its question comes, and that is before the first one's reading begins */
  byte need = 0, q = 0;
  q = epP;
  atomic { need = acked; armed = 1 }
  atomic { told -> if :: q == epP -> MUST((need & ~cnt) == 0, unseen) :: else fi; need = 0; q = 0 }
}
#endif

init {
  atomic {
    run Writer(0); run Fold(0);
#ifndef QUEST
    run Writer(1); run Fold(1)
#endif
  }
}

active proctype Rest() {
  timeout ->
  atomic {
#ifdef GOAL
    if :: cnt == (E0 | K | E2) -> assert(goal) :: else fi;
#endif
    MUST((acked & ~cnt) == 0, lost) }
}
