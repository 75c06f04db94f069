/* failover.pml - entries of one log on a master with a replica (storage/log/append.c, acknowledge.c, append.lua): a failover that takes what the replica had
 * not received, an old master that was deposed and still executes and answers what lies in its sockets, lost connections with late copies, a process
 * B that uses the same key, and WAIT before an entry is acknowledged.
 *
 * Two nodes; m is the master by the newest epoch, rep: the other one follows it.  A node that was deposed and has not heard of it is stale: it executes, and
 * has no replica.  A replica has a prefix of its master's history, and a full copy when it begins to follow.
 * Requests are bits: U0 and K0 (with the key) in entry 0, U1, U2; KB is B's with the same key, and with another body.
 * st: 0 not begun, 1 to be sent, 2 sent, 3 answered.  acked: its clients were told 202; mine: of K0 that it counts.  An entry that is not let go is sent
 * again over each new connection, in order.  wo: how far the writes of a connection go; 0: it has written nothing.
 * NOWAIT: acknowledged by the answer alone; then what was acknowledged is there when all is at rest, but not before (checked at the end).
 * DIES: the writer may end at any time.  OTHER: the replica that acknowledges is not the one that takes over.  TAKEOVER: a deposed node with its own data is
 * made the master again.
 */
bit twice, lost, wrong, stuck, goal; /* never set: name what is broken, or reached */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi
#ifndef F
#define F 2
#endif
#ifndef FO
#define FO 1
#endif
#ifndef LOSS
#define LOSS 1
#endif
#define U0 1
#define K0 2
#define U1 4
#define KB 8
#define U2 16
#define CONTENT(i) ((i) == 0 -> U0 | K0 : ((i) == 1 -> U1 : U2))
#define APPEND 0
#define WAIT 1
#define OK 1
#define GAP 2
#define READONLY 3
#define ENOUGH 4
#define FEW 5

typedef node { byte head; byte has };
node n[2];
bit m, rep = 1, stale[2], dead[2];
byte nfo, nl;
chan q[4] = [3] of { bit, byte, bit };   /* two connections a node: command, entry, leave to jump */
chan ans = [4] of { byte, byte, bit };   /* entry, answer, the record is K0's */
byte wo[4];                              /* of a connection: the head when it wrote last */
byte cn; bit cut, waiting, over;         /* over: the writer has ended */
byte st[F]; bit acked[F], free[F], jump[F], mine, told;
byte nf, b;                              /* b: 1 B has appended, 2 it was told 202 */

#define CLAIMS(x) (!dead[x] && (m == (x) || stale[x]))
#define HAS(bits) ((n[m].has & (bits)) == (bits))
#define HELD(i) (st[i] > 0 && !free[i])
#define FIRST(i) ((i) == 0 || free[0] && ((i) == 1 || free[1]))
#if F == 2
#define BEFORE(i) ((i) == 0 || free[0] || st[0] > 1)
#define ANY(x) (x(0) || x(1))
#else
#define BEFORE(i) ((i) == 0 || (free[0] || st[0] > 1) && ((i) == 1 || free[1] || st[1] > 1))
#define ANY(x) (x(0) || x(1) || x(2))
#endif
#define TO_ACK(i) (st[i] == 3 && !acked[i])
#define OPEN(i) HELD(i) && (st[i] < 3 || !acked[i])

inline check() {                         /* what was acknowledged is in the data of the master */
#ifndef NOWAIT
  MUST(!acked[0] || HAS(U0), lost);
  MUST(!acked[1] || HAS(U1), lost);
#if F > 2
  MUST(!acked[2] || HAS(U2), lost);
#endif
  MUST(b != 2 || HAS(KB), lost);
  MUST(!mine || HAS(K0), wrong);
#endif
  MUST(!HAS(K0 | KB), twice)
}
inline copy(x, y) { n[y].head = n[x].head; n[y].has = n[x].has }
inline empty_sockets(x) {                /* with the node they die */
  i = 2 * x;
  do :: i < 2 * x + 2 -> do :: nempty(q[i]) -> q[i]?_,_,_ :: empty(q[i]) -> break od; i++ :: else -> break od;
  i = 0; if :: cn / 2 == x -> cut = 1 :: else fi
}
inline leave(c) {                        /* a new connection: all that is held goes again */
  do :: nempty(ans) -> ans?_,_,_ :: empty(ans) -> break od;
  i = 0;
  do :: i < F ->
#ifdef M_KEEP                            /* what was answered over the old connection need not go again */
        if :: HELD(i) && st[i] != 3 -> st[i] = 1 :: else fi;
#else
        if :: HELD(i) -> st[i] = 1 :: else fi;
#endif
        i++
     :: else -> break od;
  i = 0; cn = c; wo[c] = 0; cut = 0; waiting = 0
}

active proctype Writer() {
  byte i = 0, k = 0, c = 0; bit r = 0;
  do
  :: d_step { !over && nf < F -> st[nf] = 1; nf++ }
  :: d_step { !over && nfull(q[cn]) && ((HELD(0) && st[0] == 1) || (HELD(1) && st[1] == 1 && BEFORE(1))
#if F > 2
       || (HELD(2) && st[2] == 1 && BEFORE(2))
#endif
       ) ->
       i = 0; do :: i < F && HELD(i) && st[i] == 1 -> break :: else -> i++ od;
       if :: cut || dead[cn / 2] -> cut = 1 :: else -> q[cn]!APPEND, i, jump[i] fi;
       st[i] = 2; i = 0 }
#ifndef NOWAIT
  :: d_step { !over && !waiting && nfull(q[cn]) && ANY(TO_ACK) ->
       if :: cut || dead[cn / 2] -> cut = 1 :: else -> q[cn]!WAIT, 0, 0 fi; waiting = 1 }
#endif
  :: d_step { !over && nempty(ans) -> ans?i,k,r;
       if
       :: k == OK -> st[i] = 3; jump[i] = 0;
#ifdef M_FIRSTANSWER
          if :: i == 0 && !told -> told = r :: else fi;               /* kept, whatever a later answer says */
#else
          if :: i == 0 && !acked[0] -> told = r :: else fi;
#endif
#ifdef NOWAIT
          acked[i] = 1; if :: i == 0 && told -> mine = 1 :: else fi
#endif
       :: k == GAP -> st[i] = 1; if :: FIRST(i) -> jump[i] = 1 :: else fi
       :: k == READONLY -> cut = 1
       :: k == ENOUGH -> waiting = 0; i = 0;
          do :: i < F -> if :: TO_ACK(i) -> acked[i] = 1; if :: i == 0 && told -> mine = 1 :: else fi :: else fi; i++ :: else -> break od;
       :: k == FEW -> waiting = 0
       fi;
       check(); i = 0; k = 0; r = 0 }
#ifndef NOWAIT
  :: d_step { !over && acked[0] && st[0] == 3 && !free[0] -> free[0] = 1 }        /* --log-hold is over */
  :: d_step { !over && acked[1] && st[1] == 3 && !free[1] && free[0] -> free[1] = 1 }
#endif
  :: d_step { !over && (cut || !CLAIMS(cn / 2) || (nl < LOSS && (ANY(OPEN)))) &&
       ((CLAIMS(0) && (empty(q[0]) || empty(q[1]))) || (CLAIMS(1) && (empty(q[2]) || empty(q[3])))) ->
       if :: cut || !CLAIMS(cn / 2) -> skip :: else -> nl++ fi;
       if
       :: CLAIMS(0) && len(q[0]) == 0 && cn != 0 -> c = 0
       :: CLAIMS(0) && len(q[1]) == 0 && cn != 1 -> c = 1
       :: CLAIMS(1) && len(q[2]) == 0 && cn != 2 -> c = 2
       :: CLAIMS(1) && len(q[3]) == 0 && cn != 3 -> c = 3
       :: else -> c = cn                                               /* its own queue is the empty one */
       fi;
       leave(c); c = 0 }
#ifdef DIES
  :: d_step { !over -> over = 1 }
#endif
  od
}

inline answer(c, i, k, r) { if :: c == cn && !cut -> ans!i,k,r :: else fi }
active proctype World() {
  byte c = 0, i = 0, x = 0, k = 0; bit w = 0, j = 0, r = 0;
  do
  :: d_step {                                                          /* a node takes what it was sent */
       if :: nempty(q[0]) && !dead[0] && nfull(ans) -> c = 0 :: nempty(q[1]) && !dead[0] && nfull(ans) -> c = 1
          :: nempty(q[2]) && !dead[1] && nfull(ans) -> c = 2 :: nempty(q[3]) && !dead[1] && nfull(ans) -> c = 3 fi;
       q[c]?w,x,j;
       if
       :: !CLAIMS(c / 2) -> k = READONLY
       :: CLAIMS(c / 2) && w == WAIT ->
#ifdef OTHER
          k = ENOUGH
#else
          if
          :: wo[c] == 0 -> k = ENOUGH                                  /* it has written nothing: there is nothing to wait for */
          :: wo[c] > 0 && c / 2 == m && rep && n[1 - m].head >= wo[c] -> k = ENOUGH
          :: else -> k = FEW
          fi
#endif
       :: CLAIMS(c / 2) && w == APPEND ->
          if
          :: x + 1 <= n[c / 2].head -> k = OK;                         /* DUP */
#ifndef M_FIRST
             wo[c] = n[c / 2].head
#endif
          :: x + 1 > n[c / 2].head + 1 && !j -> k = GAP
          :: x + 1 > n[c / 2].head && (x + 1 == n[c / 2].head + 1 || j) -> k = OK;
             MUST((n[c / 2].has & CONTENT(x) & ~K0) == 0, twice);
             n[c / 2].has = n[c / 2].has | (CONTENT(x) & (x == 0 && (n[c / 2].has & (K0 | KB)) -> U0 : 255));
             n[c / 2].head = x + 1; wo[c] = x + 1
          fi;
          r = (x == 0 && (n[c / 2].has & K0) != 0)
       fi;
       answer(c, x, k, r);
       check(); c = 0; x = 0; k = 0; w = 0; j = 0; r = 0 }
  :: d_step { nempty(q[0]) && (cn != 0 || over) -> q[0]?_,_,_ }        /* or never takes it */
  :: d_step { nempty(q[1]) && (cn != 1 || over) -> q[1]?_,_,_ }
  :: d_step { nempty(q[2]) && (cn != 2 || over) -> q[2]?_,_,_ }
  :: d_step { nempty(q[3]) && (cn != 3 || over) -> q[3]?_,_,_ }
  :: d_step { rep && !dead[1 - m] && (n[0].head != n[1].head || n[0].has != n[1].has) -> copy(m, 1 - m) }                  /* the replica has received all */
  :: d_step { b == 0 && !HAS(K0) -> b = 1; n[m].has = n[m].has | KB }  /* B uses the key */
#ifndef NOWAIT
  :: d_step { b == 1 && !HAS(KB) -> b = 3 }                            /* a failover took it, and B was told nothing */
  :: d_step { b == 1 && HAS(KB) && rep && (n[1 - m].has & KB) -> b = 2 }
#endif
  :: d_step { nfo < FO && rep && !dead[1 - m] -> nfo++; rep = 0; m = 1 - m;
       if :: true -> stale[1 - m] = 1 :: true -> dead[1 - m] = 1; empty_sockets(1 - m) fi;
       check() }
  :: d_step { !rep && (stale[1 - m] || dead[1 - m]) -> empty_sockets(1 - m);     /* it hears of it, or comes back: a full copy */
       stale[1 - m] = 0; dead[1 - m] = 0; copy(m, 1 - m); rep = 1 }
#ifdef TAKEOVER
  :: d_step { nfo <= FO && !rep && stale[1 - m] -> nfo = FO + 1; m = 1 - m; stale[m] = 0; stale[1 - m] = 1; check() }
#endif
  od
}

active proctype Rest() {
  timeout ->
  atomic {
    MUST(over || (!(ANY(OPEN)) && nf == F), stuck);
#ifdef NOWAIT
    MUST(!acked[0] || HAS(U0), lost);
    MUST(!acked[1] || HAS(U1), lost);
#endif
#ifdef GOAL
    if :: acked[0] && acked[F - 1] && nfo == FO && nl == LOSS && b == 2 -> assert(goal) :: else fi
#endif
  }
}
