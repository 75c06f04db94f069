/* home.pml - the log of requests without a key, whose home moves to another place while the home's server is away (storage/log/writers.c, append.c,
 * append.lua), folds and trims in a cluster (storage/fold/, trim.c), a question (storage/read/settled.c): the servers of two places and of one partition go
 * back independently.
 *
 * One process with a writer for each of two places, F requests, each an entry of its own.  st: 0 not begun, 1 at a writer and not sent, 2 sent, 3 answered
 * (202) and held, 4 answered and let go, 5 refused (503).  at, no: its place, and its number in the log of that place.  mem: the fold has it in memory.  Two connections a place, so that copies on a lost one may come late.
 * Each server may be asked for a snapshot at any time, and may come back with it; that kills its connections.  What a snapshot that may still come back lacks is
 * not safe: that stands for --log-hold, and for the two readings of the cursors before a trim.
 * A fold reads the heads of all places, and counts an entry and its cursor in one step (log_fold.pml, fold_ages.pml: why that may be one).
 * DIES: the process may end at any time, and another one folds what is in the logs.  Then what the log's server took with it is gone (`lost`).
 */
bit twice, lost, unseen, dishonest, goal; /* never set: name what is broken, or reached */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi
#ifndef F
#define F 2
#endif
#ifndef LOSS
#define LOSS 1                            /* connections that are lost by themselves */
#endif
#ifndef AWAY
#define AWAY 1                            /* times that a server is away */
#endif
#ifndef BACKS
#define BACKS 1                           /* snapshots that servers are asked for */
#endif
#define OK 1
#define GAP 2

/* The places' servers, and the partition's. */
byte head[2], trim[2], ent[2 * F];        /* ent: the request of entry n of place l, from 1 */
byte cur[2]; bit data[F];
byte Shead[2], Strim[2], Sent[2 * F], Scur[2]; bit Sdata[F];
byte snap[3];                             /* 0 none yet, 1 may come back, 2 over */
bit away[2]; byte naway, nsnap;
chan q[4] = [F] of { byte, byte };        /* request, number */
chan ans[2] = [F] of { byte, byte };

/* The process. */
byte st[F], at[F], no[F], next[2], nf, home, nl;
bit cn[2], mem[F], cut[2], over;
byte resend[F];                           /* 0, 1 it goes again, 2 it has gone and is not answered */
byte pback, lback;                        /* how often the partition, and a log, went back */

#define ENT(l, n) ent[(l) * F + (n) - 1]
#define HELD(i) (st[i] == 2 || st[i] == 3)
#define TO_SEND(i) (st[i] == 1 || HELD(i) && resend[i] == 1)
#define LOWER(i, j) (j != i && HELD(j) && resend[j] == 1 && at[j] == at[i] && (no[i] == 0 || no[j] < no[i]))
#if F == 2
#define FIRST(i) (!LOWER(i, 0) && !LOWER(i, 1))
#else
#define FIRST(i) (!LOWER(i, 0) && !LOWER(i, 1) && !LOWER(i, 2))
#endif
#define ROOM(l) nfull(q[2 * (l) + cn[l]])
#define SENDS(i) (i < nf && TO_SEND(i) && FIRST(i) && !cut[at[i]] && ROOM(at[i]))
#ifdef M_NOHOLD
#define SAFE(i) 1
#else
#define SAFE(i) (resend[i] == 0 && !cut[at[i]] && (snap[at[i]] != 1 || Shead[at[i]] >= no[i]))
#endif
#ifdef M_TRIMNOW
#define PSAFE(l) 1
#else
#define PSAFE(l) (snap[2] != 1 || Scur[l] >= cur[l])
#endif

inline lose(l) {                          /* all that the place's writer holds goes again over a new connection */
  do :: nempty(ans[l]) -> ans[l]?_,_ :: empty(ans[l]) -> break od;
  i = 0;
  do :: i < F -> if :: HELD(i) && at[i] == (l) -> resend[i] = 1 :: else fi; i++ :: else -> break od;
  cn[l] = 1 - cn[l]; cut[l] = 0; i = 0
}
inline elsewhere(i) { at[i] = home; no[i] = 0; resend[i] = 0; st[i] = 1 }
inline move() {                           /* the home's server is away; what was not sent goes along */
  home = 1 - home; i = 0;
  do
  :: i < F ->
     if
     :: st[i] == 1 && at[i] != home -> elsewhere(i)
#ifdef M_MOVESENT
     :: st[i] == 2 && resend[i] == 1 && at[i] != home -> elsewhere(i)
#endif
#ifdef M_MOVEHELD
     :: st[i] == 3 && resend[i] == 1 && at[i] != home -> elsewhere(i)
#endif
#ifdef M_FORGET
     :: st[i] == 3 && at[i] != home -> st[i] = 4
#endif
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

active proctype Writers() {
  byte i = 0, k = 0, l = 0;
  do
  :: d_step { !over && nf < F -> st[nf] = 1; at[nf] = home; nf++ }
  :: d_step {
       if
       :: !over && SENDS(0) -> i = 0
       :: !over && SENDS(1) -> i = 1
#if F > 2
       :: !over && SENDS(2) -> i = 2
#endif
       fi;
       l = at[i];
       if :: no[i] == 0 -> next[l]++; no[i] = next[l] :: else fi;
       q[2 * l + cn[l]]!i, no[i];
       if :: st[i] == 1 -> st[i] = 2 :: else -> resend[i] = 2 fi;
       i = 0; l = 0 }
  :: d_step { !over && (nempty(ans[0]) || nempty(ans[1])) ->
       if :: nempty(ans[0]) -> l = 0 :: nempty(ans[1]) -> l = 1 fi;
       ans[l]?i,k;
       if
       :: at[i] != l -> skip              /* M_MOVE..: it is another writer's now */
       :: at[i] == l && k == OK -> resend[i] = 0; if :: st[i] == 2 -> st[i] = 3; mem[i] = 1 :: else fi
       :: at[i] == l && k == GAP -> resend[i] = 1
       fi;
       i = 0; k = 0; l = 0 }
  :: d_step { !over && st[0] == 3 && SAFE(0) -> st[0] = 4 }
  :: d_step { !over && st[1] == 3 && SAFE(1) -> st[1] = 4 }
#if F > 2
  :: d_step { !over && st[2] == 3 && SAFE(2) -> st[2] = 4 }
#endif
  :: d_step { !over && away[home] && !away[1 - home] -> move() }
  :: d_step { !over && st[0] == 1 && away[0] && away[1] -> st[0] = 5 }
  :: d_step { !over && (cut[0] || nl < LOSS) && !away[0] && empty(q[1 - cn[0]]) -> if :: cut[0] -> skip :: else -> nl++ fi; lose(0) }
  :: d_step { !over && (cut[1] || nl < LOSS) && !away[1] && empty(q[3 - cn[1]]) -> if :: cut[1] -> skip :: else -> nl++ fi; lose(1) }
  :: d_step { trim[0] < cur[0] && cur[0] <= head[0] && !away[0] && PSAFE(0) -> trim[0] = cur[0] }
  :: d_step { trim[1] < cur[1] && cur[1] <= head[1] && !away[1] && PSAFE(1) -> trim[1] = cur[1] }
#ifdef DIES
  :: d_step { !over -> over = 1 }
#endif
  od
}

inline take(c) {                          /* a server carries out append.lua */
  q[c]?i,n; l = c / 2;
  if
  :: n <= head[l] -> k = OK               /* DUP */
  :: n == head[l] + 1 -> k = OK; head[l] = n; ENT(l, n) = i
  :: n > head[l] + 1 -> k = GAP
  fi;
  MUST(st[i] != 5, dishonest);
  if :: cn[l] == c % 2 && !cut[l] && !over -> ans[l]!i,k :: else fi;
  i = 0; n = 0; k = 0; l = 0
}
inline back(l) {                          /* the server of place l comes back with its snapshot */
  head[l] = Shead[l]; trim[l] = Strim[l]; i = 0;
  do :: i < F -> ent[l * F + i] = Sent[l * F + i]; i++ :: else -> break od;
  do :: nempty(q[2 * l]) -> q[2 * l]?_,_ :: empty(q[2 * l]) -> break od;
  do :: nempty(q[2 * l + 1]) -> q[2 * l + 1]?_,_ :: empty(q[2 * l + 1]) -> break od;
  cut[l] = 1; snap[l] = 2; lback++; i = 0
}
inline keep(l) {
  Shead[l] = head[l]; Strim[l] = trim[l]; i = 0; snap[l] = 1; nsnap++;
  do :: i < F -> Sent[l * F + i] = ent[l * F + i]; i++ :: else -> break od; i = 0
}
active proctype Servers() {
  byte i = 0, n = 0, k = 0, l = 0;
  do
  :: d_step { nempty(q[0]) && !away[0] && nfull(ans[0]) -> take(0) }
  :: d_step { nempty(q[1]) && !away[0] && nfull(ans[0]) -> take(1) }
  :: d_step { nempty(q[2]) && !away[1] && nfull(ans[1]) -> take(2) }
  :: d_step { nempty(q[3]) && !away[1] && nfull(ans[1]) -> take(3) }
  :: d_step { nempty(q[0]) && (cn[0] || over) -> q[0]?_,_ }            /* or never takes it */
  :: d_step { nempty(q[1]) && (!cn[0] || over) -> q[1]?_,_ }
  :: d_step { nempty(q[2]) && (cn[1] || over) -> q[2]?_,_ }
  :: d_step { nempty(q[3]) && (!cn[1] || over) -> q[3]?_,_ }
  :: d_step { naway < AWAY && !away[0] -> away[0] = 1; cut[0] = 1; naway++ }
  :: d_step { naway < AWAY && !away[1] -> away[1] = 1; cut[1] = 1; naway++ }
  :: d_step { away[0] -> away[0] = 0 }
  :: d_step { away[1] -> away[1] = 0 }
  :: d_step { snap[0] == 0 && nsnap < BACKS -> keep(0) }
  :: d_step { snap[1] == 0 && nsnap < BACKS -> keep(1) }
  :: d_step { snap[2] == 0 && nsnap < BACKS -> nsnap++; Scur[0] = cur[0]; Scur[1] = cur[1]; i = 0; snap[2] = 1;
       do :: i < F -> Sdata[i] = data[i]; i++ :: else -> break od; i = 0 }
  :: d_step { snap[0] == 1 -> snap[0] = 2 }                            /* so old that it cannot come back any more */
  :: d_step { snap[1] == 1 -> snap[1] = 2 }
  :: d_step { snap[2] == 1 -> snap[2] = 2 }
  :: d_step { snap[0] == 1 -> back(0) }
  :: d_step { snap[1] == 1 -> back(1) }
  :: d_step { snap[2] == 1 -> cur[0] = Scur[0]; cur[1] = Scur[1]; i = 0; snap[2] = 2; pback++;
       do :: i < F -> data[i] = Sdata[i]; i++ :: else -> break od; i = 0 }
  od
}

#define READABLE(l) (head[l] >= cur[l] + 1)
inline request(l) {                       /* of the entry behind the cursor: from memory, else from the stream */
  i = 0; known = 0;
  do
  :: i < F -> if :: mem[i] && !over && at[i] == (l) && no[i] == cur[l] + 1 -> known = 1; break :: else -> i++ fi
  :: else -> break
  od;
  if
  :: !known && READABLE(l) -> MUST(trim[l] < cur[l] + 1, lost); i = ENT(l, cur[l] + 1);
     known = over || st[i] > 2            /* of its own log no more than was answered */
  :: else
  fi
}
inline count(l) {
  if
  :: cur[l] < h[l] ->
     request(l);
     if
     :: known -> MUST(!data[i], twice); MUST(st[i] != 5, dishonest);
        data[i] = 1; cur[l]++; mem[i] = 0
     :: else
     fi
  :: else
  fi;
  i = 0; known = 0
}
#define DUE(l) (cur[l] < head[l] && (over || st[ENT(l, cur[l] + 1)] > 2))
active proctype Fold() {
  byte h[2]; byte i = 0; bit known = 0;
  do
  :: d_step { !away[0] && !away[1] && (DUE(0) || DUE(1)) -> h[0] = head[0]; h[1] = head[1] };
     d_step { count(0); count(1); h[0] = 0; h[1] = 0 }
  od
}

#define ACKED(i) (st[i] == 3 || st[i] == 4)
#define THERE(i) (ACKED(i) && head[at[i]] >= no[i])
#define NEEDS(i) if :: i < F && (need >> i) & 1 -> MUST(data[i], unseen) :: else fi
#ifdef QUEST
active proctype Question() {
  byte need = 0, h0 = 0, h1 = 0, then = 0, logs = 0; bit done = 0;
  d_step { need = THERE(0) | (THERE(1) << 1); logs = lback };
  do
  :: !done ->
#ifdef M_HOMEONLY
     d_step { h0 = (home == 0 -> head[0] : 0); h1 = (home == 1 -> head[1] : 0) };
#else
#ifdef M_SKIPAWAY
     h0 = (away[0] -> 0 : head[0]);
     h1 = (away[1] -> 0 : head[1]);
#else
     d_step { !away[0] -> h0 = head[0] };  /* a server that is away holds every question up */
     d_step { !away[1] -> h1 = head[1] };
#endif
#endif
     if                                    /* all is counted, or it begins anew: a log may have lost what was its head */
     :: d_step { cur[0] >= h0 && cur[1] >= h1 -> then = pback };
        d_step {
          done = 1;
          if
          :: logs != lback -> skip         /* a log went back: the answer may lack what is not appended again yet */
#ifndef M_QCONN
          :: logs == lback && then != pback -> done = 0
#endif
          :: else -> NEEDS(0); NEEDS(1)
          fi
        }
     :: d_step { !away[0] && !away[1] && (h0 > head[0] || h1 > head[1]) -> h0 = 0; h1 = 0 }
     fi
  :: done -> break
  od
}

#endif
active proctype Rest() {
  byte i = 0;
  timeout ->
  atomic {
    do
    :: i < F -> MUST(over || st[i] > 2, lost);
       MUST(!ACKED(i) || data[i], lost); i++
    :: else -> break
    od;
#ifdef GOAL
    if :: ACKED(0) && ACKED(1) && at[0] != at[1] && lback > 0 && pback > 0 -> assert(goal) :: else fi
#endif
  }
}
