/* log_fold.pml - from the log to the counts (storage/fold/, storage/read/settled.c, storage/log/close.c, append.lua, close_log.lua, mark and advance): one
 * partition of one Redis; process A, which writes log 0 (after a close log 2) and folds it from memory; process B, which writes log 1, the client's
 * repeat of a request with a key, and folds what it reads from any log; a question, a rollup, a closer, a trim, a reader that remembers.
 *
 * Events are bits: E0 (entry 0:1), K and E2 (entry 0:2, or 2:1); K also in 1:1.  All happen in minute 0.  cnt: the minute; h: its hour; st 0: the hour is
 * open, 1: closed for writers, 2: for readers as well.  a2, a3: what the script wrote into 0:2 and 2:1, which is without K if K's record was there.
 * over, oid: minutes [0, over) are taken for over, under the id oid.  now: Redis's clock, in minutes.
 * WATCH is a dirty bit a connection; an EXEC may stay on a lost connection (lx) and come late.  ep: Redis has gone back so often; every connection ends then.
 *
 * Flags: LATE late EXECs, ROLL, QUEST, LOOK a question that looks at what waits (storage/log/waiting.c), SETTLES one that takes the word of a round,
 * ALONE without B's fold, TRIM, CLOSE, OVER (with BACK: the clock may go back), CRASH times Redis goes back, ADIES A may be killed, NB attempts of B.  What is wrong in an M_ stands where it is tested.
 */
#ifndef NB
#define NB 1
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifdef CLOSE
#define NL 3
#else
#define NL 2
#endif
#define E0 1
#define K 2
#define E2 4

bit twice, unequal, unseen, stale, goal;  /* never set: name what is broken, or reached */

/* Redis: the logs and K's record, then the partition */
byte ep;
byte ex = 3, head[NL], tr, a2, a3, era; bit rec;
byte cur[NL], cnt, h, st; bit rk;
byte Sex, Shead[NL], Str, Sa2, Sa3, Sera; bit Srec, snp;
byte Scur[NL], Scnt, Sh, Sst; bit Srk;
#ifdef OVER
byte over, oid, ids, now, Sover, Soid;
#define OV over
#define NOW now
#else
#define OV 0
#define NOW 0
#endif
bit dw[2];                                /* the watched state was changed */
bit lx, ldw; byte ll, lto, lm, ls, le, lov, lnw;      /* an EXEC on a lost connection */
/* process A */
bit dead, db, weak; byte al, ac, sn = 1, an, mf, memn, mem1, mem2, me1, me2;
                                          /* log, connection (ep when made), next to send, answered; memory: entries (mf, memn], their eras */
bit pv; byte pn, pc, pe;                  /* an answer that is not read yet */
/* ghosts; need: of a question */
byte acked, lost, need;
#ifdef M_CURSEP
bit cp; byte cpl, cpn, cpe;
#endif
#ifdef M_OVERSEP
bit op; byte ope;
#endif

#define EXISTS(l) ((ex >> (l)) & 1)
#define ENT(l,n)  ((l) == 0 -> ((n) == 1 -> (tr >= 1 -> 0 : E0) : (tr >= 2 -> 0 : a2)) : ((l) == 1 -> K : a3))
#define DIRTY dw[0] = 1; dw[1] = 1; ldw = 1
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi
#define SOUND MUST(st < 2 || h == cnt, unequal)
#ifdef CLOSE
#define INLOGS ((EXISTS(0) && head[0] >= 1 -> E0 : 0) | (EXISTS(0) && head[0] >= 2 -> a2 : 0) | (head[1] -> K : 0) | (EXISTS(2) && head[2] -> a3 : 0))
#else
#define INLOGS ((head[0] >= 1 -> E0 : 0) | (head[0] >= 2 -> a2 : 0) | (head[1] -> K : 0))
#endif

#ifdef OVER
inline newid() { ids++; oid = ids }
inline move_over(ov, nw) {                /* by what the fold read behind its WATCH: the stored instant, and TIME */
  if
#ifdef M_OVERKEEP
  :: nw > ov -> over = nw                 /* moves on, and keeps the id */
#else
  :: nw > ov -> over = nw; newid()
#endif
#ifdef M_OVERNOID
  :: nw <= ov -> skip
#else
#ifdef M_OVERCLOCK
  :: nw <= ov && nw >= 1 -> newid()       /* late by the clock, not by the stored instant */
  :: nw <= ov && nw < 1 -> skip
#else
#ifdef M_OVERSEP
  :: nw <= ov && ov >= 1 -> op = 1; ope = ep      /* in a step of its own */
#else
  :: nw <= ov && ov >= 1 -> newid()
#endif
  :: nw <= ov && ov < 1 -> skip
#endif
#endif
  fi
}
#else
inline move_over(ov, nw) { skip }
#endif

inline commit(l, to, m, s, ov, nw) {      /* EXEC: data, cursor and `over` in one */
  printf("EXEC log %d to %d: %d; st seen %d is %d, over seen %d, at %d\n", l, to, m, s, st, ov, nw);
  MUST((cnt & (m)) == 0, twice);
  cnt = cnt | (m); if :: s >= 1 -> h = h | (m) :: else fi;
  if :: (m) != 0 -> move_over(ov, nw) :: else fi;
#ifdef M_CURSEP
  cp = 1; cpl = l; cpn = to; cpe = ep;
#else
  cur[l] = to;
#endif
#ifdef M_OVERAPART                        /* `over` is not in what is watched: only another fold of the same log is noticed */
  dw[0] = dw[0] | (l == fl[0]); dw[1] = dw[1] | (l == fl[1]);
#else
  DIRTY;
#endif
  SOUND
}
#ifdef M_OVERAPART
byte fl[2] = 255;
#endif

#ifdef ALONE                              /* A's folds all */
#define FOREIGN(f) 1
#else
#define FOREIGN(f) ((f) == 1)
#endif
inline letgo(n) { mf = n; mem1 = 0; me1 = 0; if :: n >= 2 -> mem2 = 0; me2 = 0 :: else fi }
proctype Folder(bit f) {                  /* 0: A's, 1: B's */
  byte l = 0, c = 0, s = 0, to = 0, m = 0, we = 0, k1 = 0, k2 = 0, kn = 0, kf = 0, ke = 0, ov = 0, nw = 0, hn = 0; bit mem = 0, mr = 0;
  do
  :: atomic {                             /* the batch: from memory, or read from the stream; before the WATCH */
       if :: cur[0] < head[0] || (f == 0 && !dead && memn > mf && al == 0 && cur[0] < memn) -> l = 0
          :: FOREIGN(f) && cur[1] < head[1] -> l = 1
#ifdef CLOSE
          :: cur[2] < head[2] -> l = 2
#endif
       fi;
       ke = ep;
       if :: f == 0 && l == al && memn > mf && !mr -> mem = 1; kn = memn; kf = mf; k1 = mem1; k2 = mem2
          :: EXISTS(l) -> kn = head[l]; k1 = ENT(l,1); k2 = ENT(l,2)
          :: else -> kn = 0
       fi }
     if
     :: kn > 0 ->
        atomic { dw[f] = 0; we = ep;      /* WATCH */
#ifdef M_OVERAPART
          fl[f] = l
#endif
        }
        atomic { hn = (EXISTS(l) -> head[l] : 255); nw = NOW; m = era }      /* heads and TIME */
        atomic {                          /* the state; and the decision */
          c = cur[l]; s = st; ov = OV; to = kn;
          if
#ifdef M_NOHEAD
          :: false
#else
          :: hn == 255 ->                 /* no head: closed, so counted, or lost.  Memory lets go. */
             to = 0; if :: mem -> letgo(kn) :: else fi
#endif
#ifndef M_READFIRST
          :: hn != 255 && !mem && we != ke -> to = 0      /* read over a connection that is gone */
#endif
#ifndef M_NOERA
          :: hn != 255 && mem && ((kf < 1 && me1 != m) || (kn >= 2 && me2 != m)) -> to = 0; mr = 1
#endif
#ifndef M_MISSING
          :: hn != 255 && mem && c < kf -> to = 0; mr = 1      /* memory lacks what is not counted */
#endif
#ifndef M_PASTHEAD
          :: hn != 255 && hn < kn -> to = 0; mr = 1      /* Redis went back: read the stream */
#endif
          :: else
          fi;
          m = 0;
          if :: c < 1 && to >= 1 -> m = m | k1 :: else fi;
          if :: c < 2 && to >= 2 -> m = m | k2 :: else fi }
        atomic {                          /* MULTI .. EXEC */
          if
#ifdef M_NOWATCH
          :: to > c && ep == we -> commit(l, to, m, s, ov, nw)
#else
          :: to > c && !dw[f] && ep == we -> commit(l, to, m, s, ov, nw); mr = 0; if :: f == 0 && l == al && to > mf -> letgo(to) :: else fi
          :: to > c && (dw[f] || ep != we) -> skip      /* nil, or the connection is dead */
#endif
#ifdef LATE
          :: to > c && !lx && ep == we -> lx = 1; ldw = dw[f]; ll = l; lto = to; lm = m; ls = s; le = we; lov = ov; lnw = nw      /* lost, and may still come */
#endif
          :: to <= c
          fi }
     :: else
     fi;
     atomic { l = 0; c = 0; s = 0; to = 0; m = 0; we = 0; k1 = 0; k2 = 0; kn = 0; kf = 0; ke = 0; ov = 0; nw = 0; hn = 0; mem = 0 }
  :: atomic { f == 0 && dead -> break }
  od
}

#ifdef M_CURSEP
active proctype CurSep() { do :: atomic { cp -> if :: cpe == ep && cur[cpl] < cpn -> cur[cpl] = cpn; DIRTY :: else fi; cp = 0; cpl = 0; cpn = 0; cpe = 0 } od }
#endif
#ifdef M_OVERSEP
active proctype OverSep() { do :: atomic { op -> if :: ope == ep -> newid(); DIRTY :: else fi; op = 0; ope = 0 } od }
#endif
#ifdef LATE
active proctype LateExec() {
  do
  :: atomic { lx ->
#ifdef M_NOWATCH
       if :: le == ep -> commit(ll, lto, lm, ls, lov, lnw) :: else fi;
#else
       if :: le == ep && !ldw -> commit(ll, lto, lm, ls, lov, lnw) :: else fi;
#endif
       lx = 0; ldw = 0; ll = 0; lto = 0; lm = 0; ls = 0; le = 0; lov = 0; lnw = 0 }
  :: atomic { lx -> lx = 0; ldw = 0; ll = 0; lto = 0; lm = 0; ls = 0; le = 0; lov = 0; lnw = 0 }
  od
}
#endif

#define WANT(n) (al == 2 -> (E2|K) : ((n) == 1 -> E0 : (E2|K)))
#define LAST (al == 0 -> 2 : 1)
active proctype A() {
  byte x = 0;
  do
  :: atomic { !dead && !pv && ac == ep && sn <= LAST ->      /* append: one script */
       pv = 1; pn = sn; pe = ep;
       if
       :: !EXISTS(al) -> pc = 255
       :: EXISTS(al) && sn <= head[al] -> pc = (al == 2 -> a3 : (sn == 1 -> E0 : a2))      /* DUP: what it holds, by the records */
       :: EXISTS(al) && sn > head[al] ->
          x = WANT(sn); if :: (x & K) && rec -> x = x & ~K :: (x & K) && !rec -> rec = 1 :: else fi;
          head[al] = sn; era = ac; if :: al == 2 -> a3 = x :: al == 0 && sn == 2 -> a2 = x :: else fi; pc = x;
          printf("A appends %d:%d content %d\n", al, sn, x)
       fi; x = 0 }
  :: atomic { !dead && pv ->              /* its answer */
       if
#ifdef CLOSE
       :: pc == 255 && al == 2 ->         /* the new log's registration was lost, too */
          if :: an == 0 && !db && cur[2] == 0 -> ex = ex | 4; sn = 1
             :: else -> weak = 1; lost = lost | (acked & ~INLOGS & ~cnt); goto stop fi
       :: pc == 255 && al == 0 && an == 2 -> goto stop      /* all was acknowledged, so it was folded */
       :: pc == 255 && al == 0 && an < 2 -> al = 2; ex = ex | 4; an = 0; mf = 0; memn = 0; mem1 = 0; mem2 = 0; me1 = 0; me2 = 0;
          if :: (acked & E0) && !db -> sn = 1 :: else -> goto stop fi      /* in doubt: 504 */
#endif
       :: pc != 255 ->
          if :: pn > an -> an = pn; db = 0 :: else fi; sn = pn + 1;
          if :: pn > memn -> memn = pn; if :: pn == 1 -> mem1 = pc; me1 = ac :: pn == 2 -> mem2 = pc; me2 = ac fi :: else fi;
          acked = acked | WANT(pn); if :: pe == ep -> lost = lost & ~WANT(pn) :: else -> lost = lost | (WANT(pn) & ~INLOGS) fi
       fi;
       pv = 0; pn = 0; pc = 0; pe = 0 }
  :: atomic { !dead && ac != ep && !pv -> ac = ep; sn = 1; printf("A connects again: all that is held, once more\n") }
  :: atomic { !dead && ac != ep && pv -> if :: pn > an -> db = 1 :: else fi; pv = 0; pn = 0; pc = 0; pe = 0 }      /* the answer is lost */
#ifdef ADIES
  :: atomic { !dead -> dead = 1; pv = 0; pn = 0; pc = 0; pe = 0; mf = 0; memn = 0; mem1 = 0; mem2 = 0; me1 = 0; me2 = 0; sn = 0; printf("A dies\n") }
#endif
  :: atomic { dead -> break }
  od;
stop: skip
}

active proctype B() {                     /* holds its entry, and appends it again if it was lost */
  byte n = 0; bit mine = 0;
  do
  :: atomic { (n < NB && head[1] == 0) || (mine && head[1] == 0) ->
       if :: n < NB -> n++ :: else fi;
       if :: !rec -> rec = 1; head[1] = 1; mine = 1; printf("B appends K\n") :: else -> mine = 0 fi;
       acked = acked | K; lost = lost & ~K }
  od
}

#ifdef ROLL
active proctype Rollup() {                /* any leader: each step compares and sets */
  do
#ifdef M_ST
  :: atomic { st == 0 -> st = 1; SOUND }
#else
  :: atomic { st == 0 -> st = 1; DIRTY; SOUND }
#endif
  :: atomic { st == 1 && !rk -> h = cnt; rk = 1 }
  :: atomic { st == 1 && rk -> st = 2; rk = 0; DIRTY; SOUND }
  od
}
#endif

#ifdef M_QCONN
#define SAMECONN 1
#else
#define SAMECONN (e == ep)
#endif
#ifdef QUEST
active proctype Question() {              /* heads, cursors, then the data, over one connection */
  byte h0 = 0, h1 = 0, h2 = 0, e = 0;
#ifdef M_QEARLY
  atomic { h0 = head[0]; h1 = head[1] }
#endif
  atomic { need = acked & ~lost; printf("question, needs %d\n", need) }
  do
  ::
#ifndef M_QEARLY
     atomic { e = ep; h0 = (EXISTS(0) -> head[0] : 0); h1 = head[1];
#ifdef CLOSE
       h2 = (EXISTS(2) -> head[2] : 0)
#endif
     }
#endif
     if
#ifdef M_QNOCUR
     :: true
#else
#ifdef CLOSE
     :: atomic { SAMECONN && cur[0] >= h0 && cur[1] >= h1 && cur[2] >= h2 }
#else
     :: atomic { SAMECONN && cur[0] >= h0 && cur[1] >= h1 }
#endif
#endif
        atomic {
          if :: SAMECONN -> printf("answer st %d cnt %d h %d\n", st, cnt, h); MUST((need & ~(st == 2 -> h : cnt)) == 0, unseen); need = 0; break
             :: else
          fi }
     :: else
     fi
  od
}
#endif

#ifdef LOOK
/* The entries behind cursor c up to head h are in memory, as far as they were answered, under the head's era. */
#ifdef M_LOOKNOERA
#define SAMEERA(r) 1
#else
#define SAMEERA(r) ((r) == er)
#endif
#ifdef M_LOOKBEYOND
#define MEMFROM(c) 1                      /* memory may begin behind what is missing */
#else
#define MEMFROM(c) ((c) >= f)
#endif
/* What is behind the last one that was answered was acknowledged later, but for what has a key: another process may have acknowledged that. */
#ifdef M_LOOKLAST
#define UPTO(h) ((n) < (h) -> (n) : (h))
#else
#define UPTO(h) ((l) == 0 && (h) < 2 && (n) < (h) -> (n) : (h))
#endif
#define COVERS(c, h) (UPTO(h) <= (c) || UPTO(h) <= n && MEMFROM(c) && ((c) >= 1 || SAMEERA(r1)) && (UPTO(h) < 2 || SAMEERA(r2)))
#define WAITS(c, h) ((c) < (h) && !COVERS(c, h))
#ifdef M_LOOKCONN
#define SAMELOOK 1
#else
#define SAMELOOK (e == ep)
#endif
inline note() { l = al; f = mf; n = memn; x1 = mem1; x2 = mem2; r1 = me1; r2 = me2 }
active proctype Look() {                  /* a question of A about one user: what waits in memory, heads and cursors, then the data, over one connection */
  byte h0 = 0, h1 = 0, h2 = 0, c0 = 0, c1 = 0, c2 = 0, e = 0, er = 0, l = 0, f = 0, n = 0, x1 = 0, x2 = 0, r1 = 0, r2 = 0;
  atomic { need = acked & ~lost; printf("question, needs %d\n", need) }
  do
  ::
#ifdef M_LOOKLATE
     skip;
#else
     atomic { note() }
#endif
     atomic { e = ep; er = era; h0 = (EXISTS(0) -> head[0] : 0); h1 = head[1];
#ifdef CLOSE
       h2 = (EXISTS(2) -> head[2] : 0)
#endif
     }
     atomic { c0 = cur[0]; c1 = cur[1];
#ifdef CLOSE
       c2 = cur[2]
#endif
     }
#ifdef M_LOOKLATE
     atomic { note() }
#endif
     atomic {
       if
       :: SAMELOOK ->
          if
#ifndef M_LOOKOTHER
          :: c1 < h1 -> skip
#endif
          :: l == 0 && WAITS(c0, h0) -> skip
          :: l != 0 && c0 < h0 -> skip
          :: l == 2 && WAITS(c2, h2) -> skip
          :: l != 2 && c2 < h2 -> skip
          :: else ->                      /* what the cursor has is left out */
             c0 = (l == 2 -> c2 : c0);
             if :: c0 >= 1 -> x1 = 0 :: else fi;
             if :: c0 >= 2 -> x2 = 0 :: else fi;
             l = 255
          fi
       :: else -> skip
       fi }
     atomic {
       if
       :: l == 255 && SAMELOOK -> printf("answer %d, of memory %d\n", cnt, x1 | x2); MUST((need & ~(cnt | x1 | x2)) == 0, unseen); need = 0; break
       :: else -> h0 = 0; h1 = 0; h2 = 0; c0 = 0; c1 = 0; c2 = 0; e = 0; er = 0; l = 0; f = 0; n = 0; x1 = 0; x2 = 0; r1 = 0; r2 = 0
       fi }
  od
}
#endif

#ifdef SETTLES
#ifdef CLOSE
#define CUR2 cur[2]
#else
#define CUR2 0
#endif
/* A round of A's fold that a question of A waits for (fold/round.c, unfolded.h): of the own log it reaches as far as was answered when the round began.
 * Before that no request with a key is under way: another process may have acknowledged it. */
active proctype Settles() {
  byte n = 0, h0 = 0, h1 = 0, h2 = 0, e = 0, l = 0;
  atomic { need = acked & ~lost; printf("question, needs %d\n", need) }
  do
  ::
#ifdef M_OWNLAST
     atomic { n = memn; l = al; e = ep }
#else
     atomic { !(pv && (WANT(pn) & K)) && !db -> n = memn; l = al; e = ep }
#endif
     atomic { h0 = (EXISTS(0) -> head[0] : 0); h1 = head[1];
#ifdef CLOSE
       h2 = (EXISTS(2) -> head[2] : 0);
#endif
       h0 = (l == 0 && n < h0 -> n : h0); h2 = (l == 2 && n < h2 -> n : h2) }
     atomic {
       if
       :: e == ep && cur[0] >= h0 && cur[1] >= h1 && CUR2 >= h2 -> printf("answer %d\n", cnt); MUST((need & ~cnt) == 0, unseen); need = 0; break
       :: else -> n = 0; h0 = 0; h1 = 0; h2 = 0; e = 0; l = 0
       fi }
  od
}
#endif

#ifdef OVER
active proctype Clock() {
#ifdef BACK
  now = 1; now = 0; now = 1
#else
  now = 1
#endif
}
active proctype Reader() {                /* what it read of minute 0 it remembers, and takes for true while instant and id are the same */
  byte val = 0, id = 0; bit has = 0;
  do
#ifdef M_OVEROTHER
  :: atomic { !has && over >= 1 -> val = cnt }      /* the id of another reading */
     atomic { if :: over >= 1 -> id = oid; has = 1 :: else fi }
#else
  :: atomic { !has && over >= 1 -> val = cnt; id = oid; has = 1 }
#endif
  :: atomic { has && over >= 1 && oid == id -> MUST(val == cnt, stale); has = 0; val = 0; id = 0 }
  :: atomic { has && oid != id && over >= 1 -> has = 0; val = 0; id = 0 }
  od
}
#endif

#ifdef TRIM
active proctype Trim() {                  /* the cursors that are looked at may be those of a partition that is counted in an earlier transaction of the fold */
  byte m = 0, e = 0;
  do
  :: atomic { EXISTS(0) && cur[0] > tr -> m = cur[0]; if :: m > head[0] -> m = head[0] :: else fi; e = ep }
     atomic {
#ifdef M_TRIMBLIND
       if :: m > tr && EXISTS(0) && head[0] > tr -> tr = (m < head[0] -> m : head[0]) :: else fi;
#else
       if :: e == ep && m > tr && EXISTS(0) && head[0] > tr -> tr = (m < head[0] -> m : head[0]) :: else fi;
#endif
       m = 0; e = 0 }
  od
}
#endif

#ifdef CLOSE
/* Closed is a log whose writer was silent for 30 s.  So what is in it is safe, and a living writer has appended again what Redis lost: one that sleeps
 * for 30 s just when Redis goes back loses that. */
#define AWAKE (dead || al != 0 || (an + db <= head[0] && (!pv || pe == ep)))
active proctype Closer() {
  byte hh = 0, e = 0, g = 0;
  atomic { EXISTS(0) && cur[0] >= head[0] && !(snp && Shead[0] < head[0]) && AWAKE -> hh = head[0]; e = ep }
  atomic {
    if
#ifdef M_CLOSENOCAS
    :: true
#else
#ifdef M_CLOSEBLIND
    :: EXISTS(0) && head[0] == hh && AWAKE
#else
    :: EXISTS(0) && head[0] == hh && e == ep && AWAKE
#endif
#endif
       -> ex = ex & ~1; head[0] = 0; a2 = 0; tr = 0; g = ep; printf("log 0 closed\n")
    :: else -> goto out
    fi }
#ifdef M_CURBLIND
  atomic { cur[0] = 0; DIRTY; printf("cursor of 0 deleted\n") }
#else
  atomic { if :: g == ep -> cur[0] = 0; DIRTY; printf("cursor of 0 deleted\n") :: else fi }
#endif
out: skip
}
#endif

#if CRASH > 0
inline take() { Sex = ex; Shead[0] = head[0]; Shead[1] = head[1]; Str = tr; Sa2 = a2; Sa3 = a3; Sera = era; Srec = rec; snp = 1;
  Scur[0] = cur[0]; Scur[1] = cur[1]; Scnt = cnt; Sh = h; Sst = st; Srk = rk;
#ifdef CLOSE
  Shead[2] = head[2]; Scur[2] = cur[2];
#endif
#ifdef OVER
  Sover = over; Soid = oid
#endif
}
inline drop() { Sex = 0; Shead[0] = 0; Shead[1] = 0; Str = 0; Sa2 = 0; Sa3 = 0; Sera = 0; Srec = 0; snp = 0;
  Scur[0] = 0; Scur[1] = 0; Scnt = 0; Sh = 0; Sst = 0; Srk = 0;
#ifdef CLOSE
  Shead[2] = 0; Scur[2] = 0;
#endif
#ifdef OVER
  Sover = 0; Soid = 0
#endif
}
inline back() { ep++; ex = Sex; head[0] = Shead[0]; head[1] = Shead[1]; tr = Str; a2 = Sa2; a3 = Sa3; era = Sera; rec = Srec;
  cur[0] = Scur[0]; cur[1] = Scur[1]; cnt = Scnt; h = Sh; st = Sst; rk = Srk; DIRTY;
#ifdef CLOSE
  head[2] = Shead[2]; cur[2] = Scur[2];
#endif
#ifdef OVER
  over = Sover; oid = Soid;
#endif
  printf("Redis goes back: heads %d %d cursors %d %d cnt %d\n", head[0], head[1], cur[0], cur[1], cnt) }
active proctype Crash() {
  byte n = 0;
  do
  :: n < CRASH ->
     atomic { n++; take() }
     atomic { if :: snp -> back(); lost = lost | (acked & ~INLOGS & ~cnt); need = need & ~lost :: true fi; drop() }
  :: break
  od
}
#endif

init {
  atomic {
    run Folder(0);
#ifndef ALONE
    run Folder(1)
#endif
  }
}

active proctype Stuck() {
  timeout ->
  atomic {
#ifdef GOAL
    assert(goal);
#endif
#if defined(ADIES) && CRASH > 0
    MUST((acked & ~lost & ~cnt) == 0, unseen)      /* what was not safe died with A */
#else
    MUST((acked & ~cnt & ~(weak -> lost : 0)) == 0, unseen)
#endif
  }
}
