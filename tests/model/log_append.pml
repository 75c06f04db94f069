/* log_append.pml - entries into a log (storage/log/append.c, append_jobs.c, append.lua, close_log.lua): numbered entries of one writer A, connections lost
 * with late copies, refusals whose answers are lost, requests with a key (the same key in two entries, twice in one, through a process B), Redis going back
 * (CRASH), a log closed while its writer sleeps (CLOSE), a new id.
 *
 * Requests are bits: U0 U2 U5 without a key, K1 K3 (A) and K4 (B) with one and the same key.  pres: requests that stand in some log, or were counted when
 * theirs was closed.  Items are A's entries: fs 0 not begun, 1 held, not answered, 2 answered (202) and held, 3 answered and let go, 4 given up (503),
 * 5 in doubt for good (504).  pin: it has number fq of log fl.  out: a copy is under way on the present connection; dbt: was on a lost one.  nd: to be sent.
 * The script decides the content: requests whose record exists are left out.  rec: the request whose record it is (0: none).
 * A crash restores a snapshot; what was sent before dies with its connections (LATECRASH: not so).  An item is let go only when no snapshot can take it
 * away: the 2 s of everysec; BEYOND: at any time, so acknowledged entries may be lost, but nothing else may go wrong.
 */
bit twice, dishonest, wrong, unseen, lost, stuck, goal;      /* never set: name what is broken, or reached */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi
#ifndef F
#define F 3
#endif
#ifndef LOSS
#define LOSS 1
#endif
#ifndef REFS
#define REFS 1
#endif
#ifndef GU
#define GU 1                              /* refused ones that may be given up (503) */
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef CLOSE
#define CLOSE 0
#endif
#ifndef NB
#define NB 1                              /* attempts of B */
#endif
#ifndef BBODY
#define BBODY 1
#endif
#define U0 1
#define K1 2
#define U2 4
#define K3 8
#define K4 16
#define U5 32
#define KM (K1|K3|K4)
#define BODY(k) (((k) == K4) -> BBODY : 1)
#ifdef M_NEWID
#define L 6
#else
#define L (2+CLOSE+CRASH)
#endif
#define NC 3
#define OK 1
#define DUP 2
#define REF 3
#define GAP 4
#define GONE 5
#define NONE 6

byte epoch;
/* Redis */
byte ex = 2, head[L], pres, rec;          /* ex: bits, log l (from 1) is registered */
bit hole;                                 /* M_NOPLUS1: number 1 was left out */
byte Sex, Shead[L], Spres, Srec; bit snp;  /* snapshot */
chan q[NC] = [2] of { byte, byte, byte, byte, bit };         /* item, log, n, content, jump */
chan rep = [4] of { byte, byte, byte, byte, byte };          /* item, log, kind, rec, epoch */
/* writer A */
byte cn; bit sdead;
byte fs[F], c[F], fl[F], fq[F]; bit pin[F], out[F], dbt[F], nd[F], jmp[F], forg[F];
byte me = 1, nx = 1, nf;
byte ngu, nl, nref, ncl, no;              /* no: requests that were answered 503 */

#define EXISTS(l) ((ex >> (l)) & 1)
#if F == 2
#define LIVE ((fs[0]==1)+(fs[1]==1))
#define ANY(x) (x(0) || x(1))
#else
#define LIVE ((fs[0]==1)+(fs[1]==1)+(fs[2]==1))
#define ANY(x) (x(0) || x(1) || x(2))
#endif
#define LOWER(i,j)  (pin[j] && nd[j] && (!pin[i] || fq[j] < fq[i]))      /* j must be sent before i */
#define TOP(i)      (nx == fq[i] + 1)

inline clr(i) { pin[i] = 0; fq[i] = 0; fl[i] = 0; dbt[i] = 0; jmp[i] = 0 }
inline send(i) {
  if :: !pin[i] -> pin[i] = 1; fl[i] = me; fq[i] = nx; nx++ :: else fi;
  if :: !sdead -> q[cn]!i, fl[i], fq[i], c[i], jmp[i] :: else fi;
  out[i] = 1; nd[i] = 0; printf("A sends item %d as %d:%d content %d jump %d on conn %d\n", i, fl[i], fq[i], c[i], jmp[i], cn)
}
inline ack(i, r, e) {                     /* the entry is there; r: the record that stands */
  fs[i] = 2; jmp[i] = 0;
  MUST(!(c[i] & KM) || r != 0, unseen);      /* a request in the log finds its key's record */
  if :: e == epoch -> MUST((c[i] & ~KM & ~pres) == 0, unseen) :: else fi;
  if
#ifdef M_DUPACK
  :: (c[i] & KM) && r != 0 -> MUST(BODY(r) == BODY(c[i] & KM), wrong)
#else
  :: (c[i] & KM) && r != 0 -> if :: BODY(r) != BODY((c[i] & K1 -> K1 : K3)) -> MUST((pres & c[i] & KM) == 0, wrong); c[i] = c[i] & ~KM :: else fi      /* 422 */
#endif
  :: else
  fi;
  if :: e == epoch && (c[i] & KM) && r != 0 -> MUST((pres & KM) != 0, unseen) :: else fi
}
inline gone(i) {                          /* in doubt: 504; else into the new log */
#ifndef M_GONEALL
  if :: dbt[i] -> c[i] = 0 :: else fi;
#endif
  clr(i); if :: c[i] == 0 -> fs[i] = 5; nd[i] = 0 :: else -> nd[i] = 1 fi
}
inline lose() {                           /* the connection is over: all that is held is to be sent again */
  do :: nempty(rep) -> rep?_,_,_,_,_ :: empty(rep) -> break od;
  j = 0;
  do :: j < F ->
        if :: out[j] -> dbt[j] = 1; out[j] = 0; nd[j] = 1 :: else fi;
        if :: fs[j] == 2 -> nd[j] = 1 :: else fi;
#ifndef M_OLDID
        if :: fs[j] == 1 && fl[j] != 0 && fl[j] != me -> gone(j) :: else fi;
#endif
        j++
     :: else -> break od;
  j = 0;
  do :: j < NC && j != cn && len(q[j]) == 0 -> break :: else -> j++ od;
  cn = j; sdead = 0; j = 0
}
#define FREE ((cn != 0 && empty(q[0])) || (cn != 1 && empty(q[1])) || (cn != 2 && empty(q[2])))
#if F == 2
#define BEFORE(i) (((i) == 0 || !LOWER(i,0)) && ((i) == 1 || !LOWER(i,1)))
#else
#define BEFORE(i) (((i) == 0 || !LOWER(i,0)) && ((i) == 1 || !LOWER(i,1)) && ((i) == 2 || !LOWER(i,2)))
#endif

#define OUT(i) out[i]
#define HELDBELOW(x) (x != i && pin[x] && (fs[x] == 1 || fs[x] == 2) && fl[x] == fl[i] && fq[x] < fq[i])
#ifdef M_REUSE
#define GIVEUP(i) (!out[i] && (!pin[i] || TOP(i)))
#else
#define GIVEUP(i) (!out[i] && !pin[i] && !dbt[i])
#endif
#ifdef BEYOND
#define DURABLE(i) 1
#else
#ifdef M_UNSEEN                           /* counted from the answer, no look at whether this connection still lives */
#define SEEN 1
#else
#define SEEN (!sdead)
#endif
#ifdef M_NOHOLD
#define DURABLE(i) SEEN
#else
#define DURABLE(i) (SEEN && (!snp || (fl[i] == me && fq[i] <= Shead[me] && ((Sex >> me) & 1) && (!(c[i] & KM) || (Spres & KM)))))
#endif
#endif

inline newid() {                          /* the log is gone: a new id, registered; what is in doubt may have been counted: not again without a key */
  j = 0;
  do
  :: j < F ->
     if
     :: (fs[j] == 1 || fs[j] == 2) && fl[j] != 0 && fl[j] != me -> skip
     :: fs[j] == 2 && fl[j] == me -> fs[j] = 3; nd[j] = 0; forg[j] = ((c[j] & ~KM & ~pres) != 0 || ((c[j] & KM) && !(pres & KM))); clr(j)
     :: fs[j] == 1 && fl[j] == me && !out[j] -> gone(j)
     :: else
     fi; j++
  :: else -> j = 0; break
  od;
  me++; assert(me < L); nx = 1; ex = ex | (1 << me)
}

active proctype Writer() {
  byte i = 0, j = 0, w = 0, k = 0, r = 0, e = 0;
  do
  :: atomic { nf < F && LIVE < 2 -> i = nf; nf++; fs[i] = 1; nd[i] = 1;
       if
#ifdef TWICE
       :: i == 0 -> c[i] = U0 | K1 | K3
       :: i == 2 -> c[i] = U5
#else
       :: i == 0 -> c[i] = U0 | K1
       :: i == 2 -> c[i] = U5 | K3
#endif
       :: i == 1 -> c[i] = U2
       fi; i = 0 }
  :: atomic {
       if :: (fs[0] == 1 || fs[0] == 2) && nd[0] && BEFORE(0) && nfull(q[cn]) -> i = 0
          :: (fs[1] == 1 || fs[1] == 2) && nd[1] && BEFORE(1) && nfull(q[cn]) -> i = 1
#if F > 2
          :: (fs[2] == 1 || fs[2] == 2) && nd[2] && BEFORE(2) && nfull(q[cn]) -> i = 2
#endif
       fi; send(i); i = 0 }
  :: atomic { rep?i,w,k,r,e -> out[i] = 0; printf("A reads answer %d (log %d) to item %d, record %d\n", k, w, i, r);
       if
       :: k == OK || k == DUP -> ack(i, r, e)
       :: k == REF || k == NONE || (k == GAP && w == fl[i] && !jmp[i]) ->
          nd[i] = 1;
          if :: k == GAP && !ANY(HELDBELOW) ->
#ifndef BEYOND
                assert(lost);              /* what is safe is never missing */
#endif
                jmp[i] = 1
             :: else fi;
          if :: fs[i] == 1 && !dbt[i] && TOP(i) && !jmp[i] -> clr(i); nx-- :: else fi        /* its number is free */
       :: k == GONE -> nd[i] = 1;
          if :: w == me -> newid() :: else fi;
          if :: fs[i] == 1 && fl[i] != 0 && fl[i] != me -> gone(i) :: else fi;
          if :: fs[i] == 2 && fl[i] != me -> fs[i] = 3; nd[i] = 0; clr(i); forg[i] = ((c[i] & ~KM & ~pres) != 0 || ((c[i] & KM) && !(pres & KM))) :: else fi
       :: k == GAP && w == fl[i] && jmp[i] -> assert(stuck)
       :: else -> nd[i] = 1
       fi;
       i = 0; j = 0; w = 0; k = 0; r = 0; e = 0 }
#if GU > 0
  :: atomic {                             /* given up: 503 */
       if :: ngu < GU && fs[0] == 1 && GIVEUP(0) -> i = 0
          :: ngu < GU && fs[1] == 1 && GIVEUP(1) -> i = 1
       fi; ngu++;
#ifdef M_REUSE
       if :: pin[i] -> nx-- :: else fi;
#endif
       printf("A gives up item %d\n", i); fs[i] = 4; nd[i] = 0; no = no | c[i]; clr(i); MUST((c[i] & pres & ~KM) == 0, dishonest); c[i] = 0; i = 0 }
#endif
#if CRASH > 0
  :: atomic {                             /* safe: let go */
       if :: fs[0] == 2 && !nd[0] && !out[0] && DURABLE(0) -> i = 0
          :: fs[1] == 2 && !nd[1] && !out[1] && DURABLE(1) -> i = 1
#if F > 2
          :: fs[2] == 2 && !nd[2] && !out[2] && DURABLE(2) -> i = 2
#endif
       fi; printf("A lets go item %d\n", i); fs[i] = 3; clr(i); i = 0 }
#endif
  :: atomic { (sdead || nl < LOSS) && FREE && (sdead || ANY(OUT)) ->
       if :: sdead -> skip :: else -> nl++ fi; lose(); printf("A: new connection %d\n", cn);
#ifdef M_NEWID
       newid()
#endif
     }
  od
}
inline apply(l, n, x) {                   /* one script: all of it or nothing */
#ifdef M_CHECKSET
  if :: rec != 0 -> x = x & ~KM :: else fi;      /* all records looked at first, then all written */
  if :: (x & KM) -> rec = x & KM; if :: rec & K1 -> rec = K1 :: else fi :: else fi;
#else
  if :: rec != 0 -> x = x & ~KM
     :: rec == 0 && (x & K1) -> rec = K1; x = x & ~(KM & ~K1)
     :: rec == 0 && (x & K3) && !(x & K1) -> rec = K3
     :: else fi;
#endif
#ifdef M_RECSEP
  if :: (x & KM) -> rec = 0 :: else fi;
#endif
  if :: EXISTS(l) ->
        MUST((x & pres) == 0, twice);
        MUST((x & no) == 0, dishonest);
        pres = pres | x;
        MUST(((pres & K1) != 0) + ((pres & K3) != 0) + ((pres & K4) != 0) <= 1, twice)
     :: else fi;
  head[l] = n
}

active proctype Redis() {
  byte cc = 0, i = 0, l = 0, n = 0, x = 0, k = 0; bit jp = 0;
  do
  :: atomic {
       if :: nempty(q[0]) -> cc = 0 :: nempty(q[1]) -> cc = 1 :: nempty(q[2]) -> cc = 2 fi;
       q[cc]?i,l,n,x,jp;
       if
       :: cc != cn -> goto drop                                       /* late bytes that never come */
       :: nref < REFS -> nref++; k = REF                              /* OOM, MISCONF, LOADING..: nothing done */
       :: true ->
          if
#ifdef M_FIRST                                                        /* no head and n = 1: a log is begun */
          :: !EXISTS(l) && n > 1 -> k = GONE
          :: !EXISTS(l) && n == 1 -> k = OK; apply(l, n, x)
#else
          :: !EXISTS(l) -> k = GONE
#endif
#if defined(M_NOPLUS1) || defined(M_LOST)                             /* any n above the head is appended */
#ifdef M_LOST                                                         /* below it, what is not there is refused */
          :: EXISTS(l) && n <= head[l] && n == 1 && hole -> k = GAP
          :: EXISTS(l) && n <= head[l] && !(n == 1 && hole) -> k = DUP
#else
          :: EXISTS(l) && n <= head[l] -> k = DUP
#endif
          :: EXISTS(l) && n > head[l] -> k = OK; if :: n == 2 && head[l] == 0 -> hole = 1 :: else fi; apply(l, n, x)
#else
          :: EXISTS(l) && n <= head[l] -> k = DUP
          :: EXISTS(l) && n > head[l] + 1 && !jp -> k = GAP
          :: EXISTS(l) && n > head[l] && (jp || n == head[l] + 1) -> k = OK; apply(l, n, x)
#endif
          fi
       fi;
       printf("Redis: item %d as %d:%d on conn %d: %d; head %d pres %d\n", i, l, n, cc, k, head[l], pres);
       if :: cc == cn && !sdead -> rep!i,l,k,rec,epoch :: else fi;
drop:  cc = 0; i = 0; l = 0; n = 0; x = 0; k = 0; jp = 0 }
#ifdef M_RECSEP
  :: atomic { rec == 0 && (pres & KM) -> if :: pres & K1 -> rec = K1 :: pres & K3 -> rec = K3 :: pres & K4 -> rec = K4 fi }
#endif
#if CLOSE > 0
  :: atomic { ncl < CLOSE && EXISTS(me) && (!snp || Shead[me] == head[me]) -> ncl++; ex = ex & ~(1 << me); head[me] = 0;
       printf("log %d closed\n", me) }      /* A is taken for dead; all was folded */
#endif
  od
}

active proctype B() {                     /* the client's repeat, through another process */
  byte n = 0;
  do
  :: atomic { n < NB && !(pres & K4) -> n++;
       printf("B: rec %d\n", rec);
       if :: rec == 0 -> rec = K4; pres = pres | K4; MUST((pres & (K1|K3)) == 0, twice) :: rec != 0 -> MUST((pres & KM) != 0, unseen) fi }
  :: break
  od
}

#if CRASH > 0
active proctype Crash() {
  byte n = 0, i = 0;
  do
  :: n < CRASH ->
     atomic { snp = 1; printf("snapshot\n"); Sex = ex; Spres = pres; Srec = rec; i = 0; do :: i < L -> Shead[i] = head[i]; i++ :: else -> i = 0; break od };
     atomic {
       n++;
       if
       :: true -> epoch++; printf("Redis goes back\n");
          ex = Sex; pres = Spres; rec = Srec; i = 0; do :: i < L -> head[i] = Shead[i]; i++ :: else -> i = 0; break od;
#ifndef LATECRASH
          do :: i < NC -> do :: nempty(q[i]) -> q[i]?_,_,_,_,_ :: empty(q[i]) -> break od; i++ :: else -> i = 0; break od;
#endif
          sdead = 1
       :: true                                                        /* or it does not happen */
       fi;
       snp = 0; Sex = 0; Spres = 0; Srec = 0; i = 0; do :: i < L -> Shead[i] = 0; i++ :: else -> i = 0; break od }
  :: break
  od
}
#endif

#define DONE(i)  (fs[i] == 0 || fs[i] > 1 )
#ifdef BEYOND
#define THERE(i) 1
#else
#define THERE(i) (fs[i] < 2 || fs[i] > 3 || forg[i] || ((c[i] & ~KM & ~pres) == 0 && (!(c[i] & KM) || (pres & KM))))
#endif
active proctype Stuck() {
  byte i = 0;
  timeout ->
  atomic { i = 0; do :: i < F -> MUST(DONE(i), stuck); MUST(THERE(i), unseen); i++ :: else -> break od;
#ifdef GOAL
  if :: fs[0] == 2 && fs[F-1] == 2 && nl == LOSS && epoch == CRASH && ncl == CLOSE && nref == REFS -> assert(goal) :: else fi
#endif
  }
}
