/* users.pml - the index beside a visit: a fold that finds a user's index there need not look the user up by name.
 *
 * Follows: storage/merge/{merge_visits,merge_activity,merge_activity_write}.c, storage/fold/{share,share_write}.c, storage/known/known_users.c,
 * storage/users/{forget,take_back}.c, forget_user.lua, clear_bits.lua, clear_day.lua; of a site's deletion deletion_mark.lua and storage/deletion/sweep.c.
 *
 * One partition and one site have two users and two days.  Each event is of user 0 on any day, or of user 1 on the first one.  Two folds count one event
 * at a time.  A fold has three steps: WATCH and the state, the index, EXEC.  A fold may be slow, and its EXEC may never come.  So the first fold stands
 * for another process, and for the EXEC of a dead connection that comes late.  The second fold may have a memory (KNOWN).  A fold may expect any user
 * beside a visit, or nobody.  Visits expire at any time.  User 0 is forgotten step by step.  The user's bit of the first day is taken back.
 *
 * Flags: EVENTS, FORGETS, TAKES how many; LEADER another process clears the same bits; CRASH Redis goes back to any earlier moment, and every connection
 * ends; SITE the whole site is deleted; LUA fold.lua in place of WATCH.  What is wrong in an M_ stands where it is tested.
 *
 * Checked after every change.  An event sets no bit but that of its user's index (`stray`).  If an event of a user and a day was counted since the user
 * was forgotten, or the bit was taken back, the user's bit of that day is set (`unset`).  No other bit of a user is set (`left`).  An index that belongs
 * to nobody has no bits, unless it stands in the set `gone` (`left`).
 */
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef FORGETS
#define FORGETS 1
#endif
#ifndef TAKES
#define TAKES 1
#endif
bit stray, unset, left, goal;  /* never set: assertions by name */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi

/* Redis.  An index i is written as i + 1, and a day d as d + 1.  0 is none. */
byte gen, counted, next, uid[2], bits[2], gone;
byte vi[2], vd[2], vg[2];                 /* beside each user's visit: index, newest day whose bit is set, generation */
bit shut;                                 /* the site is being deleted, and its events are not counted */
byte just;                                /* what must be set by what is counted: 1 << (2 * user + day) */
byte ep;                                  /* how often Redis has gone back */
byte ids;                                 /* generations that were drawn: they are random, so Redis never goes back to one that comes again */
bit dirty[2];                             /* the state was changed since the fold's WATCH */

#define SETDIRTY dirty[0] = 1; dirty[1] = 1
#define HASBIT(u, d) (uid[u] != 0 && ((bits[d] >> (uid[u] - 1)) & 1))
#define JUST(u, d) ((just >> (2 * (u) + (d))) & 1)
#define OWNED ((uid[0] -> 1 << (uid[0] - 1) : 0) | (uid[1] -> 1 << (uid[1] - 1) : 0))

#define RIGHT(u, d) MUST(!JUST(u, d) || HASBIT(u, d), unset); MUST(JUST(u, d) || !HASBIT(u, d), left)
inline check() {
  if
  :: shut                                 /* what is there is being swept */
  :: else -> RIGHT(0, 0); RIGHT(0, 1); RIGHT(1, 0); RIGHT(1, 1); MUST(((bits[0] | bits[1]) & ~OWNED & ~gone) == 0, left)
  fi
}

inline newgen() {
#ifdef M_COUNTER
  gen++;
#else
  ids++; gen = ids;
#endif
#ifndef M_NOWATCH                         /* as if the generation were not in what is watched */
  SETDIRTY
#endif
}

/* ---- folds ---- */

#ifdef KNOWN
byte ki[2], kd[2], kgen, kep;             /* what the second fold remembers: index and day; the generation and the connection for which that holds */
inline forget_known() { ki[0] = 0; ki[1] = 0; kd[0] = 0; kd[1] = 0 }
#endif

#ifdef LUA                                /* compares what was read */
#ifdef M_LUAGEN
#define SAME(f) (counted == c)
#else
#define SAME(f) (gen == g && counted == c)
#endif
#else
#define SAME(f) (!dirty[f])
#endif

inline commit() {                         /* EXEC */
  if
  :: shut                                 /* the event is dropped */
  :: else ->
     if
     :: x == 0 -> x = nx + 1; uid[u] = x; next = x      /* an index is given */
     :: else
     fi;
     if
     :: k == d + 1                        /* the bit is known to be set */
     :: else -> MUST(uid[u] == x, stray); bits[d] = bits[d] | (1 << (x - 1))
     fi;
     if :: k < d + 1 -> k = d + 1 :: else fi;
     if
     :: vi[u] = x; vd[u] = k; vg[u] = g
     :: true                              /* no visit is kept, as a named event begins none; or the next fold finds an older slot */
     fi;
     just = just | (1 << (2 * u + d))
  fi;
  counted++;
  SETDIRTY
}

proctype Fold(bit f) {
  byte e = 0, g = 0, c = 0, u = 0, d = 0, x = 0, k = 0, nx = 0;
  do
  :: atomic { counted < EVENTS ->         /* WATCH and the state: what changes between them makes EXEC void */
#ifdef M_AHEAD
       g = gen }                          /* the generation is read before the WATCH */
     atomic {
       if :: counted == EVENTS -> goto again :: else fi;
#else
       g = gen;
#endif
       e = ep; c = counted; dirty[f] = 0;
#ifdef KNOWN
       if
#ifndef M_KEEPKNOWN
       :: f == 1 && kep != e -> forget_known(); kep = e; kgen = g
#endif
#ifndef M_KNOWNGEN
       :: f == 1 && kgen != g -> forget_known(); kgen = g
#endif
       :: else
       fi;
#endif
       if :: d = 1 :: true :: u = 1 fi }  /* the event: user 0 on any day, or user 1 */
     atomic {                             /* the index */
       if
#ifdef M_NOGEN
       :: vi[u] != 0 -> x = vi[u]; k = vd[u]
#else
       :: vi[u] != 0 && vg[u] == g -> x = vi[u]; k = vd[u]
#endif
#ifdef KNOWN
       :: f == 1 && ki[u] != 0 -> x = ki[u]; k = kd[u]
#endif
       :: x = uid[u]; nx = next           /* nobody is expected beside a visit: by name, with the next index */
       fi;
#ifdef M_OLDERDAYS
       if :: k > d + 1 -> k = d + 1 :: else fi
#endif
     }
     atomic {
       if
       :: ep == e && SAME(f) ->
#ifdef GOAL
          if :: k == d + 1 && gen > 0 && x > 1 -> assert(goal) :: else fi;      /* a user who came back is found beside the visit */
#endif
          commit();
#ifdef KNOWN
          if :: f == 1 && !shut -> ki[u] = x; kd[u] = k :: true fi;
#endif
          check()
       :: true                            /* void, or it never comes */
       fi;
again: e = 0; g = 0; c = 0; u = 0; d = 0; x = 0; k = 0; nx = 0 }
  od
}

active proctype Expiry() {
  do
  :: atomic { vi[0] != 0 -> vi[0] = 0; vd[0] = 0; vg[0] = 0 }
  :: atomic { vi[1] != 0 -> vi[1] = 0; vd[1] = 0; vg[1] = 0 }
  od
}

/* ---- DELETE ---- */

inline take_name() {                      /* forget_user.lua, of user 0 */
  if
  :: uid[0] != 0 ->
     gone = gone | (1 << (uid[0] - 1));
#ifdef M_REUSE
     if :: uid[0] == next -> next-- :: else fi;
#endif
     uid[0] = 0; just = just & ~3;
#if !defined(M_FORGETGEN) && !defined(M_GENAFTER) && !defined(M_GENBEFORE)
     newgen();
#endif
     check()
  :: else
  fi
}

/* clear_bits.lua.  An index that does not stand in `gone` any more may be somebody's. */
#ifdef M_CLEARBLIND
#define ISGONE(l) true
#else
#define ISGONE(l) ((gone & l) != 0)
#endif
/* A clearing may go over a new connection, to a server that may have gone back: its answer tells so.  The command that takes
   the index out of `gone` may not (pipeline_stay()). */
#define REACHED (e != LOST)
#ifdef M_STRAY
#define STANDS REACHED
#else
#define STANDS (e == ep)
#endif
#define LOST 255
#define STAYS if :: e != ep -> e = LOST :: else fi
inline clear_gone() {                     /* one of the indices that stand in `gone` now: read, one day cleared, the other day, out of `gone` */
  atomic { e = ep; l = 1; do :: (gone & l) != 0 -> break :: l < 8 -> l = l << 1 :: gone == 0 -> l = 0; break od }
  atomic { if :: REACHED && ISGONE(l) -> bits[0] = bits[0] & ~l; check() :: else fi; STAYS }
  atomic { if :: REACHED && ISGONE(l) -> bits[1] = bits[1] & ~l; check() :: else fi; STAYS }
  atomic { if :: STANDS -> gone = gone & ~l; check() :: else fi; l = 0; e = 0 }
}

active proctype Forget() {
  byte n = 0, l = 0, e = 0;
  do
  :: n < FORGETS ->
     n++;
#ifdef M_GENBEFORE
     atomic { newgen() }
#endif
     atomic { e = ep; take_name() }
#ifdef M_GENAFTER
     atomic { newgen() }
#endif
     do
     :: gone != 0 -> clear_gone()
     :: gone == 0 -> break
     :: break                             /* the process dies */
     od
  :: else -> break
  od
}

#ifdef LEADER
active proctype Leader() {                /* clears what was left; slow, or late */
  byte l = 0, e = 0;
  if :: gone != 0 -> clear_gone() :: true fi
}
#endif

active proctype TakeBack() {              /* clear_day.lua, of user 0 */
  byte n = 0;
  do
  :: atomic { n < TAKES -> n++;
       if
       :: HASBIT(0, 0) -> bits[0] = bits[0] & ~(1 << (uid[0] - 1)); just = just & ~1;
#ifndef M_DAYGEN
          newgen();
#endif
          check()
       :: else
       fi }
  :: else -> break
  od
}

#ifdef SITE
active proctype Site() {                  /* marked, swept, marked again; no event is counted meanwhile */
  if
  :: atomic { shut = 1; just = 0; newgen() }
     atomic { vi[0] = 0; vd[0] = 0; vg[0] = 0; vi[1] = 0; vd[1] = 0; vg[1] = 0 }
     atomic { uid[0] = 0; uid[1] = 0; next = 0 }
     atomic { bits[0] = 0; bits[1] = 0 }
     atomic { gone = 0 }
     atomic { shut = 0; newgen(); check() }
  :: true
  fi
}
#endif

#ifdef CRASH
byte Sgen, Scounted, Snext, Sgone, Sjust, Suid[2], Sbits[2], Svi[2], Svd[2], Svg[2]; bit Sshut;
inline take() { Sgen = gen; Scounted = counted; Snext = next; Sgone = gone; Sjust = just; Sshut = shut; Suid[0] = uid[0]; Suid[1] = uid[1];
  Sbits[0] = bits[0]; Sbits[1] = bits[1]; Svi[0] = vi[0]; Svi[1] = vi[1]; Svd[0] = vd[0]; Svd[1] = vd[1]; Svg[0] = vg[0]; Svg[1] = vg[1] }
inline back() { gen = Sgen; counted = Scounted; next = Snext; gone = Sgone; just = Sjust; shut = Sshut; uid[0] = Suid[0]; uid[1] = Suid[1];
  bits[0] = Sbits[0]; bits[1] = Sbits[1]; vi[0] = Svi[0]; vi[1] = Svi[1]; vd[0] = Svd[0]; vd[1] = Svd[1]; vg[0] = Svg[0]; vg[1] = Svg[1] }
inline drop() { Sgen = 0; Scounted = 0; Snext = 0; Sgone = 0; Sjust = 0; Sshut = 0; Suid[0] = 0; Suid[1] = 0;
  Sbits[0] = 0; Sbits[1] = 0; Svi[0] = 0; Svi[1] = 0; Svd[0] = 0; Svd[1] = 0; Svg[0] = 0; Svg[1] = 0 }
active proctype Crash() {
  if :: d_step { take() } d_step { ep++; back(); drop() } :: true fi
}
#endif

init { atomic { run Fold(0); run Fold(1) } }
