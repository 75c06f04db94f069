/* answers.pml - an answer is given again without asking the partitions (storage/read/answers.c, settled.c): two servers, each with a log and a partition.
 * Events go into any log, are acknowledged, and are folded into their partition.  What there is is deleted once: partition by partition, then partition 0
 * gets new ids, then it is said to be over.  A log of which everything is counted may be closed: it has no head any more, and the server counts that.
 * With RECALL all is counted already, and what a partition has is remembered by its id.
 * With CRASH a server goes back, which ends its connections.  Two readers ask the same, ASKS times each.
 * With JOIN a question that came later may join one that has looked, once a round of folds has counted what was acknowledged before it.
 */
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef ASKS
#define ASKS 1
#endif
#define OF(p) (p == 0 -> 5 : 2)          /* the events of partition p */
byte lm[2], n[2], era[2];                /* of each log: its events, its last number (0: no head), the connection that appended it */
byte shut[2], ever[2];                   /* of each server: logs that were closed, events that were ever in its log */
byte cnt[2], fold[2];                    /* of each partition: the events that it has; those that it has counted ever */
byte ids = 1, ident[2] = 1;                /* ids that were given; of each partition, those of partition 0 are in the print */
byte conn[2];
byte acked, lost, going, gone;           /* acknowledged; taken by a server; being deleted; said to be deleted */
bit unseen, undead, goal;                /* never set: name what is broken, or reached */
#ifdef RECALL
byte mem[2], mid[2];                     /* what is remembered of each partition, and by which id */
#endif
byte aval, an[2], aera[2], ashut[2], aid, aconn[2]; bit ahas; /* the answer that is remembered, and by what */

#ifdef M_ONELOG
#define OTHER true
#else
#define OTHER (an[1] == n1)
#endif
#ifdef M_NOSHUT
#define SHUT true
#else
#ifdef M_ONESHUT
#define SHUT (ashut[0] == s0)
#else
#define SHUT (ashut[0] == s0 && ashut[1] == s1)
#endif
#endif
#ifdef M_NOERA
#define ERAS true
#else
#define ERAS (aera[0] == e0 && aera[1] == e1)
#endif
#ifdef M_NOPRINT
#define PRINT true
#else
#define PRINT (aid == i)
#endif
#ifdef M_CONN
#define CONNS true
#else
#define CONNS (aconn[0] == c0 && aconn[1] == c1)
#endif

#ifdef JOIN
#ifdef M_JOINED
#define ALONE true
#else
#define ALONE (!joined)
#endif
#else
#define ALONE true
#endif

#ifndef RECALL
active [EVENTS] proctype Append() {
  byte e = 1 << _pid; byte s = _pid & 1;
#ifdef ANY
  if :: s = 0 :: s = 1 fi;
#endif
  atomic { lm[s] = lm[s] | e; ever[s] = ever[s] | e; n[s]++; era[s] = conn[s] };
  atomic { if :: ever[s] & e -> acked = acked | e :: else fi }
}

active proctype Fold() {                 /* an event at a time; a partition that has gone back counts again */
  byte e, p;
end:
  do
  :: atomic { if :: e = 1; p = 0 :: e = 2; p = 1 :: EVENTS > 2 -> e = 4; p = 0 fi;
       ((lm[0] | lm[1]) & e) && !(fold[p] & e) -> cnt[p] = cnt[p] | e; fold[p] = fold[p] | e; e = 0; p = 0 }
  od
}

#endif

#ifndef NOCLOSE
#define COUNTED(s) ((lm[s] & (255 - (fold[0] | fold[1]))) == 0)
active proctype Close() {                /* a log's id has no part in this: the next one may have the same number and connection */
  byte s;
end:
  do
  :: atomic { n[0] > 0 && COUNTED(0) -> s = 0; n[s] = 0; era[s] = 0; lm[s] = 0
#ifdef M_SHUTLATE
     };
     atomic { skip
#endif
     ; shut[s]++ }
  :: atomic { n[1] > 0 && COUNTED(1) -> s = 1; n[s] = 0; era[s] = 0; lm[s] = 0
#ifdef M_SHUTLATE
     };
     atomic { skip
#endif
     ; shut[s]++; s = 0 }
  od
}
#endif

#ifndef NODELETE
#ifndef RECALL
active
#endif
proctype Delete() {
  byte d;
  atomic { acked != 0 && (cnt[0] | cnt[1]) != 0 -> d = cnt[0] | cnt[1]; going = d };
#ifdef M_IDSFIRST
  atomic { ids++; ident[0] = ids };
#endif
#ifdef RECALL
  atomic { ids++; ident[0] = ids }; atomic { ids++; ident[1] = ids };
#endif
  atomic { going = going | (d & cnt[0]); cnt[0] = cnt[0] & (255 - d) };
  atomic { going = going | (d & cnt[1]); cnt[1] = cnt[1] & (255 - d) };
#ifdef M_ZEROFIRST
  atomic { ids++; ident[0] = ids }; atomic { ids++; ident[1] = ids };
#else
#ifdef RECALL
  atomic { ids++; ident[1] = ids };                  /* partition 0 last */
#endif
#ifndef M_IDSFIRST
#ifndef M_NOIDS
  atomic { ids++; ident[0] = ids };
#endif
#endif
#endif
  atomic { gone = going; d = 0 }
}
#endif

#ifdef CRASH
active proctype Crash() {                /* what was deleted in the partition comes back, and what its log had acknowledged is gone */
  byte s, L, N, E, C, F, I, S, V;
  if :: s = 0 :: s = 1 fi;
  d_step { L = lm[s]; N = n[s]; E = era[s]; C = cnt[s]; F = fold[s]; I = ident[s]; S = shut[s]; V = ever[s] };
  d_step { lost = lost | (ever[s] & (255 - V)); lm[s] = L; ever[s] = V; shut[s] = S;
    lost = lost | (fold[s] & (255 - F) & (255 - (lm[0] | lm[1]))); /* closed too early for that: close.c waits (log_fold.pml) */
    n[s] = N; era[s] = E; cnt[s] = C; fold[s] = F;
    ident[s] = I;
    going = going & (F - (F & C) + (255 - OF(s))); gone = gone & going; conn[s]++; L = 0; N = 0; E = 0; C = 0; F = 0; I = 0; S = 0; V = 0 }
}
#endif

#ifdef RECALL
inline read_one(p) {                     /* the partition says its id, and what it has if that is not remembered by this id */
  if
  :: mid[p] == ident[p] -> v = v | mem[p]
  :: mid[p] != ident[p] -> v = v | cnt[p]; mem[p] = cnt[p]; mid[p] = ident[p]
  fi
}
#endif

#ifdef RECALL
init { atomic { lm[0] = 1; lm[1] = 2; n[0] = 1; n[1] = 1; ever[0] = 1; ever[1] = 2; cnt[0] = 1; cnt[1] = 2; fold[0] = 1; fold[1] = 2; acked = 3;
  run Delete(); run Question(); run Question() } }
proctype Question() {
#else
active [2] proctype Question() {
#endif
#ifdef JOIN
  bit joined;
#endif
  byte need, forbid, n0, n1, e0, e1, s0, s1, c0, c1, i, v, t, g, w; bit ok, all;
  do
  :: t < ASKS -> t++;
     atomic { need = acked; forbid = gone; c0 = conn[0]; c1 = conn[1] };
#ifdef M_LATE
     v = cnt[0]; v = v | cnt[1];         /* the data before the heads */
#endif
     atomic { n0 = n[0]; e0 = era[0]; s0 = shut[0]; i = ident[0]; all = ((lm[0] & (255 - (fold[0] | fold[1]))) == 0) };
     atomic { n1 = n[1]; e1 = era[1]; s1 = shut[1]; all = all && ((lm[1] & (255 - (fold[0] | fold[1]))) == 0); ok = (conn[0] == c0 && conn[1] == c1) };
#ifdef JOIN
     atomic { if :: (acked & (255 - (fold[0] | fold[1]))) == 0 -> need = acked; joined = 1 :: true fi };
#endif
     if
     :: atomic { ALONE && ahas && ok && an[0] == n0 && OTHER && SHUT && ERAS && PRINT && CONNS -> v = aval; g = going; w = gone;
#ifdef GOAL
        assert(goal);
#endif
        all = 0 }
     :: else ->
#ifdef RECALL
        atomic { read_one(0) };
        atomic { read_one(1) };
#else
#ifndef M_LATE
        v = cnt[0]; v = v | cnt[1];
#endif
#endif
        atomic { g = going; w = gone; ok = (conn[0] == c0 && conn[1] == c1 && all); /* what is not counted is waited for: such a question is not followed */
          if
#ifdef M_UNCOUNTED
          :: conn[0] == c0 && conn[1] == c1
#else
          :: ok && ALONE
#endif
             -> aval = v; an[0] = n0; an[1] = n1; aera[0] = e0; aera[1] = e1; ashut[0] = s0; ashut[1] = s1; aid = i; aconn[0] = c0; aconn[1] = c1; ahas = 1
          :: else
          fi }
     fi;
     atomic {
       if :: ok && (need & (255 - lost) & (255 - g) & (255 - v)) != 0 -> assert(unseen) :: else fi;
       if :: ok && (v & forbid & w) != 0 -> assert(undead) :: else fi;
#ifdef JOIN
       joined = 0;
#endif
       need = 0; forbid = 0; n0 = 0; n1 = 0; e0 = 0; e1 = 0; s0 = 0; s1 = 0; c0 = 0; c1 = 0; i = 0; v = 0; ok = 0; all = 0; g = 0; w = 0 }
  :: t == ASKS -> break
  od
}
