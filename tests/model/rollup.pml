/* rollup.pml - one partition: writers, rollup passes (minute -> hour -> day -> month), expiry, readers, crashes.
 *
 * Follows: storage/lua/{mark,skip,takeover,merge,advance,expire}.lua, rollup/pass.c, rollup/skip.c, rollup/list_make.c, rollup/expire.c, fold/share_decide.c,
 * fold/share_write.c (announcements), time/write_plan.c, storage/read/proved_read.c, cover.c.
 *
 * Redis is the global state; a `d_step` is one script or MULTI.  A leader may leave after any step, the step done or not (reply or
 * request lost), and comes back as whoever reads `state` next.  A process may stop for ever anywhere.
 *
 * Content is kept per event: m[e], h[e], d[e], y[e] say how often event e is in the sums of its minute, hour, day and month; um..uy
 * whether it is in their sketches.  They differ in what is merged (sums from all parts, sketches from the parts that were listed),
 * and in their keys: one key of sums a bucket, a key of sketches a bucket and page.  Two pages, so two chunks a list.
 *
 * Flags.  E=n events.  HOURS2: the two minutes lie in two hours of one day; DAYS2: of two days.  TOP=n: levels above the minute.
 * INSCRIPT: a fold chooses buckets in the step that writes (same effect as watching st, fewer states).  DUP: event 0 is folded by
 * two.  RESEND: an answer is lost, the fold done again.  TWO: two leaders.  ZOMBIE: a step of a leader arrives when nobody waits for it.
 * CRASH: Redis goes back to any earlier moment, once; RECONN: a pass ends with its leader's connection.  READER.  VACANT: buckets
 * without data are closed at once.  M_*: a wrong rule.
 */
#ifndef E
#define E 2
#endif
#ifndef TOP
#define TOP 3
#endif
#ifndef TMAX
#if TOP == 1
#define TMAX 2
#elif TOP == 2
#define TMAX 3
#else
#define TMAX 5
#endif
#endif

byte mi[E], pg[E];                       /* constants: minute and page of an event */
#if defined(HOURS2) || defined(DAYS2)
#define NH 2
#define HO(e) mi[e]
#define HOM(x) (x)                       /* hour of a minute */
#else
#define NH 1
#define HO(e) 0
#define HOM(x) 0
#endif
#ifdef DAYS2
#define ND 2
#define DA(e) mi[e]
#define DAH(x) (x)                       /* day of an hour */
#define DAYOVER(t) (HW(s) > t)           /* its hours are complete */
#else
#define ND 1
#define DA(e) 0
#define DAH(x) 0
#define DAYOVER(t) (HW(s) == NH)
#endif

/* ------------------------------------------------------------------ Redis */
byte m[E], h[E], d[E], y[E];             /* sums */
bit um[E], uh[E], ud[E], uy[E];          /* sketches */
bit once[E];                             /* counted: the cursor */
bit pm[2], ph[2], pd[2], py;             /* keys of sums that have an expiry */
bit xm[4], xh[4], xd[4], xy[2];          /* keys of sketches (bucket * 2 + page) that have one */
byte open;                               /* t:{p}:open: hours 1 2, days 4 8, month 16 */
/* state: st = hours complete (2 bits), the next is closing (1), days (2+1), month (1+1) */
byte st, pass, cur;                      /* pass: id * 4 + level; cur: chunks done, 8 + chunks past the advance */
#define HW(s) ((s) & 3)
#define HC(s) (((s) & 3) + (((s) >> 2) & 1))
#define DW(s) (((s) >> 3) & 3)
#define DC(s) ((((s) >> 3) & 3) + (((s) >> 5) & 1))
#define MW(s) (((s) >> 6) & 1)
#define MC(s) ((((s) >> 6) & 1) + (((s) >> 7) & 1))
#define CLOSING(s, v)  (((s) >> ((v) == 1 -> 2 : ((v) == 2 -> 5 : 7))) & 1)
#define WSTAMP(s, v)   ((v) == 1 -> HW(s) : ((v) == 2 -> DW(s) : MW(s)))
#define MARKED(s, v)   (s + ((v) == 1 -> 4 : ((v) == 2 -> 32 : 128)))
#define ADVANCED(s, v) (s - ((v) == 1 -> 3 : ((v) == 2 -> 24 : 64)))
#define HBIT(x) (1 << (x))
#define DBIT(x) (4 << (x))
#define TBIT(v, t) ((v) == 1 -> (1 << t) : ((v) == 2 -> (4 << t) : 16))
#if TOP == 1
#define BITS 3
#elif TOP == 2
#define BITS 15
#else
#define BITS 31
#endif

#ifdef VACANT
byte fold, folds;                        /* field `fold`: the id of the last fold; how many ids there were, which never repeat */
#define NEWFOLD folds++; fold = folds
#else
#define NEWFOLD skip
#endif

byte clk;                                /* 1, 2: the minutes' expiry time is over, 3: the hours', 4: the days', 5: the month's */
#define MGONE(e) (clk > mi[e])
#define HGONE (clk > 2)
#define DGONE (clk > 3)
#define YGONE (clk > 4)

/* ------------------------------------------------------------------ beside it */
bit acked[E];
byte known;                              /* the writers' memory of what is in `open` */
byte lmy[2], lsee[2];                    /* a leader's pass; the pass it is about to take over */
#ifdef ZOMBIE
byte zk, zmy, zs, zp, zcur, zlst, zt;    /* a step of a leader that is still under way somewhere */
#define ZMY zmy
#define ZP zp
#else
#define ZMY 0
#define ZP 0
#endif
#ifdef CRASH
byte epoch;
bit lost[E];
byte Sm[E], Sh[E], Sd[E], Sy[E]; bit Sum[E], Suh[E], Sud[E], Suy[E], Sonce[E];
bit Spm[2], Sph[2], Spd[2], Spy, Sxm[4], Sxh[4], Sxd[4], Sxy[2]; byte Sopen, Sst, Spass, Scur;
#define LOST(e) lost[e]
#define SPASS Spass
#define NOTLOST(e) lost[e] = 0
#else
#define LOST(e) 0
#define SPASS 0
#define NOTLOST(e) skip
#endif
bit stalled;                             /* a month's own time was over while its pass was in the last phase: see LEAKED */
bit twice, unequal, unseen, leaked, goal;    /* never set: an assertion names the property that is broken */

/* Pass ids are random and never repeat: any id that nobody remembers stands for a new one. */
#define USED(x) ((pass >> 2) == x || (SPASS >> 2) == x || (lmy[0] >> 2) == x || (lmy[1] >> 2) == x || (lsee[0] >> 2) == x || (lsee[1] >> 2) == x || (ZMY >> 2) == x || (ZP >> 2) == x)
inline new_id(v) {
  i = 1;
  do :: USED(i) -> i++ :: else -> break od;
  lmy[me] = i * 4 + v; i = 0
}

#define INDEXGONE (pass != 0 && cur >= 8 && (pass & 3) == 3 && YGONE && py)
inline redis_expires() {                 /* what Redis does by itself, at any time */
#ifndef STALL
  if :: INDEXGONE -> stalled = 1 :: else fi;
#endif
  i = 0;
  do
  :: i < E ->
     if :: pm[mi[i]] && MGONE(i) -> m[i] = 0 :: else fi;
     if :: xm[mi[i]*2+pg[i]] && MGONE(i) -> um[i] = 0 :: else fi;
     if :: ph[HO(i)] && HGONE -> h[i] = 0 :: else fi;
     if :: xh[HO(i)*2+pg[i]] && HGONE -> uh[i] = 0 :: else fi;
     if :: pd[DA(i)] && DGONE -> d[i] = 0 :: else fi;
     if :: xd[DA(i)*2+pg[i]] && DGONE -> ud[i] = 0 :: else fi;
     if :: py && YGONE -> y[i] = 0 :: else fi;
     if :: xy[pg[i]] && YGONE -> uy[i] = 0 :: else fi;
     i++
  :: else -> break
  od;
  i = 0;                                 /* a key that is gone has no expiry */
  if :: clk > 0 -> pm[0] = 0; xm[0] = 0; xm[1] = 0 :: else fi;
  if :: clk > 1 -> pm[1] = 0; xm[2] = 0; xm[3] = 0 :: else fi;
  if :: HGONE -> ph[0] = 0; ph[1] = 0; xh[0] = 0; xh[1] = 0; xh[2] = 0; xh[3] = 0 :: else fi;
  if :: DGONE -> pd[0] = 0; pd[1] = 0; xd[0] = 0; xd[1] = 0; xd[2] = 0; xd[3] = 0 :: else fi;
  if :: YGONE -> py = 0; xy[0] = 0; xy[1] = 0 :: else fi
}

/* ------------------------------------------------------------------ writers */
#ifdef M_NOWTTL                           /* late writes set no expiry */
#define EXPIRY(x) skip
#define SKIP(x) (0)
#else
#define EXPIRY(x) x = 1
#define SKIP(x) (x)                       /* a bucket whose time is over is passed over */
#endif
inline apply(e, s) {                      /* as planned by write_plan_at for state s; s is st, or nothing is done */
  if
  :: HW(s) > HO(e) && SKIP(MGONE(e)) -> skip
  :: else -> m[e]++; um[e] = 1;
     if :: HW(s) > HO(e) -> EXPIRY(pm[mi[e]]); EXPIRY(xm[mi[e]*2+pg[e]]) :: else fi
  fi;
  if
  :: !(HC(s) > HO(e)) || (DW(s) > DA(e) && SKIP(HGONE)) -> skip
  :: else -> h[e]++; uh[e] = 1;
     if :: DW(s) > DA(e) -> EXPIRY(ph[HO(e)]); EXPIRY(xh[HO(e)*2+pg[e]]) :: else fi
  fi;
  if
  :: !(DC(s) > DA(e)) || (MW(s) && SKIP(DGONE)) -> skip
  :: else -> d[e]++; ud[e] = 1;
     if :: MW(s) -> EXPIRY(pd[DA(e)]); EXPIRY(xd[DA(e)*2+pg[e]]) :: else fi
  fi;
  if
  :: !MC(s) || (MW(s) && SKIP(YGONE)) -> skip
  :: else -> y[e]++; uy[e] = 1;
     if :: MW(s) -> EXPIRY(py); EXPIRY(xy[pg[e]]) :: else fi
  fi;
  NOTLOST(e);
  NEWFOLD;
  redis_expires()
}
/* Members for `open`: the parents, not closed for readers, of the buckets written; a month is its own parent. */
#define ANNOUNCE(e, s) (BITS & ((HW(s) <= HO(e) -> HBIT(HO(e)) : 0) | (HC(s) > HO(e) && DW(s) <= DA(e) -> DBIT(DA(e)) : 0) | ((DC(s) > DA(e) && !MW(s)) -> 16 : 0) | ((MC(s) && !MW(s)) -> 16 : 0)))

proctype Writer(byte e) {
  byte c = 0, r = 0, i = 0, ann = 0;
#ifdef CRASH
  byte ep = 0;
#endif
again:
  atomic { ann = ANNOUNCE(e, c) & (31 - known);            /* encode */
#ifdef CRASH
    ep = epoch
#endif
  };
  d_step {                                                 /* a fold's EXEC */
    if
#ifdef CRASH
    :: ep != epoch -> r = 0                                /* sent on a connection that died with the data */
#endif
#ifndef M_NOONCE
    :: once[e] -> r = 1; known = known | ann               /* applied before; the memory takes it for announced */
#endif
#ifdef INSCRIPT
    :: else -> ann = ANNOUNCE(e, st) & (31 - known);
       apply(e, st); open = open | ann; known = known | ann; r = 1;
#else
#ifndef M_WNOCHK
    :: c != st -> c = st; r = 0                            /* the EXEC is void */
#endif
    :: else -> apply(e, c); open = open | ann; known = known | ann; r = 1;
#endif
#ifndef M_ONCESEP
       once[e] = 1
#endif
    fi };
  if :: r == 0 -> goto again :: r == 1 fi;
#ifdef M_ONCESEP
  once[e] = 1;                                             /* the cursor in a command of its own */
#endif
#ifdef RESEND
  if :: atomic { r == 1 -> r = 0; known = 0 } goto again :: r == 1 fi;
#endif
  acked[e] = 1
}

/* ------------------------------------------------------------------ the steps of a pass */
#if defined(CRASH) && defined(RECONN)
#define SAMECONN (myep == epoch)
#else
#define SAMECONN 1
#endif
#ifdef M_NOPASS                           /* level, state and cursor compared, no unique id */
#define MINE(my) (pass > 0 && (pass & 3) == (my & 3))
#else
#define MINE(my) (pass == my && SAMECONN)
#endif
#ifdef M_CHUNKNOCAS
#define MERGEGUARD(my, k) (1)
#else
#define MERGEGUARD(my, k) (MINE(my) && cur == k)
#endif
#ifdef M_ADVNOCAS
#define ADVGUARD(my, k, s) (st == s)
#else
#define ADVGUARD(my, k, s) (MINE(my) && cur == k && st == s)
#endif
#ifdef M_EXPNOCAS
#define EXPGUARD(my, k) (1)
#else
#define EXPGUARD(my, k) (MINE(my) && cur == k)
#endif
#ifdef M_LISTBLIND
#define LISTGUARD(my, k) (1)
#else
#define LISTGUARD(my, k) (MINE(my) && cur == k)
#endif
#ifdef M_INCR
#define PUT(x, v) x = x + v
#else
#define PUT(x, v) x = v
#endif

inline do_mark(my, s, v) {               /* mark.lua; that the bucket is over is efficiency only, so left out */
#ifdef M_NOCLOSING                        /* writers learn of it only with the advance */
#define MARKST(s, v) s
#define ADVST(s, v) (s + ((v) == 1 -> 1 : ((v) == 2 -> 8 : 64)))
#else
#define MARKST(s, v) MARKED(s, v)
#define ADVST(s, v) ADVANCED(s, v)
#endif
  if :: st == s && pass == 0 -> st = MARKST(s, v); pass = my; cur = 0; ok = 1 :: else -> ok = 0 fi
}
#ifdef M_TAKEX                            /* a pass that is taken over goes on behind the advance */
#define TAKECLOSING(s, v) 0
#else
#ifdef M_NOCLOSING
#define TAKECLOSING(s, v) (cur < 8)
#else
#define TAKECLOSING(s, v) CLOSING(s, v)
#endif
#endif
inline do_takeover(my, s, p) {           /* takeover.lua */
  if
  :: st == s && pass == p -> pass = my; cur = (TAKECLOSING(s, (p & 3)) -> 0 : 8); ok = 1
  :: else -> ok = 0
  fi
}
#ifdef M_SKIPBLIND                        /* folds are not looked at */
#define SAMEFOLD(f) 1
#else
#define SAMEFOLD(f) (fold == f)
#endif
inline do_skip(s, f, v) {                /* skip.lua */
  if :: st == s && pass == 0 && SAMEFOLD(f) && SAMECONN -> st = s + ((v) == 1 -> 1 : ((v) == 2 -> 8 : 64)); ok = 1 :: else -> ok = 0 fi
}
#define PARENTBIT(v, t) ((v) == 1 -> DBIT(DAH(t)) : 16)
#define INT(e, v, t) ((v) == 1 -> HO(e) == t : ((v) == 2 -> DA(e) == t : 1))           /* is e in the target? */
#define PART(e, v) ((v) == 1 -> mi[e] : ((v) == 2 -> HO(e) : DA(e)))                   /* number of its part */
/* Which pages: one bit for each part (bits part * 2 + page), for who is in `open`. */
inline do_list(v, t) {
  lst = 0; i = 0;
  do
  :: i < E && (open & TBIT(v, t)) && INT(i, v, t) && ((v == 1 && m[i]) || (v == 2 && h[i]) || (v == 3 && d[i])) ->
     lst = lst | (1 << (PART(i, v) * 2 + pg[i])); i++
  :: i < E && !((open & TBIT(v, t)) && INT(i, v, t) && ((v == 1 && m[i]) || (v == 2 && h[i]) || (v == 3 && d[i]))) -> i++
  :: i == E -> break
  od;
  i = 0;
  n = ((lst & 5) != 0) + ((lst & 10) != 0)
}
/* The parts (bits) whose time is over, and was not yet when the bucket was closed (`since`, 0: not known): their sums may be gone. */
#define GONEPARTS(v) ((v) == 1 -> (clk > 0 && since <= 0) + 4 * (clk > 1 && since <= 1) : ((v) == 2 -> 5 * (HGONE && since <= 2) : 5 * (DGONE && since <= 3)))
/* The second list: those parts have each page that the bucket itself has. */
inline do_list2(v, t) {
  do_list(v, t);
#ifndef M_PARTLIST                        /* from the parts' sums alone */
  do
  :: i < E && (open & TBIT(v, t)) && INT(i, v, t) && ((v == 1 && h[i]) || (v == 2 && d[i]) || (v == 3 && y[i])) -> lst = lst | (GONEPARTS(v) << pg[i]); i++
  :: i < E && !((open & TBIT(v, t)) && INT(i, v, t) && ((v == 1 && h[i]) || (v == 2 && d[i]) || (v == 3 && y[i]))) -> i++
  :: i == E -> break
  od;
  i = 0;
  n = ((lst & 5) != 0) + ((lst & 10) != 0)
#endif
}
#define PAGE(k, lst) ((k) == 0 && (lst & 5) != 0 -> 0 : 1)                         /* the page of chunk k */

/* merge.lua: sums of one page set from all parts, sketches united from those listed. */
inline do_merge(my, k, lst, v, t) {
  if
  :: !MERGEGUARD(my, k) -> ok = 0
  :: else -> ok = 1; tot = 0; i = 0;
     do :: i < E -> if :: pg[i] == PAGE(k, lst) && INT(i, v, t) -> tot = tot + (v == 1 -> m[i] : (v == 2 -> h[i] : d[i])) :: else fi; i++ :: else -> break od;
     i = 0;
     do
     :: i < E ->
        if
        :: pg[i] == PAGE(k, lst) && INT(i, v, t) ->
           if
           :: v == 1 -> if :: tot -> PUT(h[i], m[i]) :: else fi;
              if :: (lst >> (PART(i, v) * 2 + pg[i])) & 1 -> uh[i] = uh[i] | um[i] :: else fi;
#ifdef M_EXPEARLY
              if :: m[i] -> pm[mi[i]] = 1 :: else fi;
              if :: um[i] -> xm[mi[i]*2+pg[i]] = 1 :: else fi
#endif
           :: v == 2 -> if :: tot -> PUT(d[i], h[i]) :: else fi;
              if :: (lst >> (PART(i, v) * 2 + pg[i])) & 1 -> ud[i] = ud[i] | uh[i] :: else fi
           :: else -> if :: tot -> PUT(y[i], d[i]) :: else fi;
              if :: (lst >> (PART(i, v) * 2 + pg[i])) & 1 -> uy[i] = uy[i] | ud[i] :: else fi
           fi
        :: else
        fi;
        i++
     :: else -> break
     od;
     i = 0; tot = 0; cur = k + 1;
#ifndef M_NOSADD
     if :: v < 3 -> open = open | (PARENTBIT(v, t) & BITS) :: else fi;
#endif
     redis_expires()
  fi
}
inline do_advance(my, k, s, v, t) {      /* advance.lua */
  if
  :: ADVGUARD(my, k, s) -> st = ADVST(s, v); cur = 8; ok = 1;
#ifdef M_SREMEARLY                        /* out of `open` before the parts have their expiry */
     open = open & (31 - TBIT(v, t))
#endif
  :: else -> ok = 0
  fi
}
/* expire.lua: chunk k sketches of one page; the last one the sums, and the end of the pass. */
inline do_expire(my, k, lst, n, v, t) {
  if
  :: !EXPGUARD(my, 8 + k) -> ok = 0
  :: else -> ok = 1; i = 0;
     do
     :: i < E && INT(i, v, t) ->
        if
        :: k < n && pg[i] == PAGE(k, lst) ->
           if
           :: (lst >> (PART(i, v) * 2 + pg[i])) & 1 ->
              if
              :: v == 1 && um[i] -> xm[mi[i]*2+pg[i]] = 1
              :: v == 2 && uh[i] -> xh[HO(i)*2+pg[i]] = 1
              :: v == 3 && ud[i] -> xd[DA(i)*2+pg[i]] = 1
              :: else
              fi
           :: else
           fi;
           if :: v == 3 && uy[i] -> xy[pg[i]] = 1 :: else fi
        :: k == n && (open & TBIT(v, t)) ->
           if
           :: v == 1 && m[i] -> pm[mi[i]] = 1
           :: v == 2 && h[i] -> ph[HO(i)] = 1
           :: v == 3 && d[i] -> pd[DA(i)] = 1
           :: else
           fi;
           if :: v == 3 && y[i] -> py = 1 :: else fi
        :: else
        fi;
        i++
     :: i < E && !INT(i, v, t) -> i++
     :: i == E -> break
     od;
     i = 0;
     if :: k < n -> cur = 9 + k :: else -> cur = 0; pass = 0; open = open & (31 - TBIT(v, t)) fi;
     redis_expires()
  fi
}

/* ------------------------------------------------------------------ leaders */
#ifdef ZOMBIE
#define LEAVE(kind, c, tt) d_step { if :: zk == 0 -> zk = kind; zmy = lmy[me]; zs = s; zp = lsee[me]; zcur = c; zlst = lst; zt = tt :: else fi }; goto again
#else
#ifdef STAY                               /* a leader leaves only when a step is refused, or stops for ever */
#define LEAVE(kind, c, tt) false
#else
#define LEAVE(kind, c, tt) goto again
#endif
#endif

proctype Leader(byte me) {
  byte s = 0, lst = 0, n = 0, at = 0, v = 0, t = 0, i = 0, tot = 0, since = 0; bit ok = 0;
#ifdef VACANT
  byte f = 0; bit vacant = 0;
#endif
#if defined(CRASH) && defined(RECONN)
  byte myep = 0;
#endif
#ifdef M_NOATOM
  byte sum[E];
#endif
again:
  atomic { lmy[me] = 0; lst = 0; n = 0; at = 0; v = 0; t = 0; ok = 0; since = 0;
#ifdef M_NOATOM
    i = 0; do :: i < E -> sum[i] = 0; i++ :: else -> i = 0; break od;
#endif
#if defined(CRASH) && defined(RECONN)
    myep = epoch;
#endif
#ifdef VACANT
    f = fold; vacant = 0;
#endif
    s = st; lsee[me] = pass };           /* read_state */
  if
  :: lsee[me] != 0 ->                    /* take over: find_open */
     d_step {
#ifdef M_LETTER                           /* the level of an open pass is not known: the finest one that may be open */
       v = (CLOSING(s, 3) -> 3 : (CLOSING(s, 2) -> 2 : 1));
#else
       v = lsee[me] & 3;
#endif
       t = WSTAMP(s, v);
       if :: !CLOSING(s, v) && t > 0 -> t = t - 1 :: else fi;
#ifdef M_NOCLOSING
       t = (cur < 8 -> WSTAMP(s, v) : WSTAMP(s, v) - 1);
#endif
       new_id(v) };
     if :: d_step { do_takeover(lmy[me], s, lsee[me]); at = (cur >= 8); lsee[me] = 0 } :: LEAVE(1, 0, 0) fi;
#ifdef M_SINCE                            /* who takes over thinks that the bucket was closed only now */
     since = clk
#endif
  :: lsee[me] == 0 ->
     if
     :: HW(s) < NH -> v = 1; t = HW(s)
     :: TOP > 1 && DW(s) < ND && DAYOVER(DW(s)) -> v = 2; t = DW(s)
     :: TOP > 2 && !MW(s) && DW(s) == ND -> v = 3; t = 0
     :: HW(s) == NH && (TOP < 2 || DW(s) == ND) && (TOP < 3 || MW(s)) -> goto stop
     fi;
#ifdef VACANT
     vacant = !(open & TBIT(v, t));      /* read_first_end */
#ifdef M_SKIPLATE                         /* the last fold is asked for behind that */
     f = fold;
#endif
     if
     :: vacant -> lst = v;
        if :: d_step { do_skip(s, f, v); vacant = 0; lst = 0; f = 0 } :: LEAVE(6, f, 0) fi;
        if :: ok -> goto again :: else fi
     :: else
     fi;
     f = 0;
#endif
     d_step { new_id(v) };
#ifdef M_LISTEARLY                        /* the pages are listed before the mark */
     d_step { do_list(v, t) };
#endif
     if :: d_step { do_mark(lmy[me], s, v); s = MARKST(s, v) } :: LEAVE(2, 0, 0) fi
  fi;
  if :: !ok -> goto again :: ok fi;
  if
  :: at == 0 ->                          /* merge */
#ifndef M_LISTEARLY
     d_step { if :: LISTGUARD(lmy[me], 0) -> do_list(v, t) :: else -> ok = 0 fi };
     if :: !ok -> goto again :: ok fi;
#endif
     do
     :: at < n ->
#ifdef M_NOATOM                           /* totals read, then written by compare-and-set on the pass alone */
        d_step { i = 0; do :: i < E -> sum[i] = (v == 1 -> m[i] : (v == 2 -> h[i] : d[i])); i++ :: else -> break od; i = 0 };
        d_step {
          if
          :: MERGEGUARD(lmy[me], at) -> i = 0;
             do :: i < E -> if :: pg[i] == PAGE(at, lst) && INT(i, v, t) -> if :: v == 1 -> h[i] = sum[i]; uh[i] = uh[i] | um[i] :: v == 2 -> d[i] = sum[i]; ud[i] = ud[i] | uh[i] :: else -> y[i] = sum[i]; uy[i] = uy[i] | ud[i] fi :: else fi; i++
                :: else -> break od;
             i = 0; cur = at + 1; open = open | (v < 3 -> (PARENTBIT(v, t) & BITS) : 0)
          :: else -> ok = 0
          fi };
#else
        if :: d_step { do_merge(lmy[me], at, lst, v, t) } :: LEAVE(3, at, t) fi;
#endif
        if :: !ok -> goto again :: ok -> at++ fi
     :: at == n -> break
     od;
     since = clk;                        /* what the leader knows of Redis's clock is never ahead */
     if :: d_step { do_advance(lmy[me], n, s, v, t); lst = 0; n = 0 } :: LEAVE(4, n, t) fi;
     if :: !ok -> goto again :: ok fi
  :: at == 1 -> skip
  fi;
  at = 0;
#ifndef M_LISTONCE
  d_step { if :: LISTGUARD(lmy[me], 8) -> do_list2(v, t) :: else -> ok = 0 fi };
#endif
  do
  :: ok && at <= n ->
     if :: d_step { do_expire(lmy[me], at, lst, n, v, t); at++ } :: LEAVE(5, at, t) fi
  :: else -> break
  od;
  goto again;
stop: skip
}

#ifdef ZOMBIE
active proctype Zombie() {
  bit ok; byte i, n, tot;
#if defined(CRASH) && defined(RECONN)
  byte myep = 0;
#endif
end:
  d_step { zk != 0 ->
    n = ((zlst & 5) != 0) + ((zlst & 10) != 0);
    if
    :: zk == 1 -> do_takeover(zmy, zs, zp)
    :: zk == 2 -> do_mark(zmy, zs, (zmy & 3))
    :: zk == 3 -> do_merge(zmy, zcur, zlst, (zmy & 3), zt)
    :: zk == 4 -> do_advance(zmy, zcur, zs, (zmy & 3), zt)
    :: zk == 5 -> do_expire(zmy, zcur, zlst, n, (zmy & 3), zt)
#ifdef VACANT
    :: zk == 6 -> do_skip(zs, zcur, zlst)
#endif
    fi;
    zs = 0; zp = 0; zcur = 0; zlst = 0; zt = 0; zmy = 0; zk = 7 }
}
#endif

/* ------------------------------------------------------------------ reader */
#ifdef READER
/* A window of one or both minutes, tiled by a plan of any age, each bucket read in a MULTI of its own (count/pieces.c cuts long covers
 * into several) that says the state and the time: legal by these, or the whole question again. */
proctype Reader() {
  byte win = 3, lev = 0, k = 0, i = 0; bit need[E]; byte got[E]; bit bad = 0, uneq = 0;
  d_step { i = 0; do :: i < E -> need[i] = acked[i] && !LOST(i); i++ :: else -> break od; i = 0 };
  if :: win = 1 :: win = 2 :: win = 3 fi;
  do
  :: k < 2 && !((win >> k) & 1) -> k++
  :: k < 2 && ((win >> k) & 1) && !bad ->
     if :: lev = 0 :: NH == 2 || (win == 3 && k == 0) -> lev = 1 :: ND == 2 || (win == 3 && k == 0) -> lev = 2 :: win == 3 && k == 0 -> lev = 3 fi;
     d_step {
#ifndef M_UNCHECKED
       bad = (lev == 0 && HW(st) > HOM(k) && clk > k) ||
             (lev == 1 && (HW(st) <= HOM(k) || (DW(st) > DAH(HOM(k)) && HGONE))) ||
             (lev == 2 && (DW(st) <= DAH(HOM(k)) || (MW(st) && DGONE))) ||
             (lev == 3 && (!MW(st) || YGONE));
#endif
       i = 0;
       do
       :: i < E ->
          if
          :: lev == 0 && mi[i] == k -> got[i] = got[i] + m[i]; uneq = uneq | (um[i] != m[i])
          :: lev == 1 && HO(i) == HOM(k) -> got[i] = got[i] + h[i]; uneq = uneq | (uh[i] != h[i])
          :: lev == 2 && DA(i) == DAH(HOM(k)) -> got[i] = got[i] + d[i]; uneq = uneq | (ud[i] != d[i])
          :: lev == 3 -> got[i] = got[i] + y[i]; uneq = uneq | (uy[i] != y[i])
          :: else
          fi; i++
       :: else -> break
       od; i = 0;
       if :: lev == 3 || (lev == 2 && ND == 1) || (lev == 1 && NH == 1) -> k = 2 :: else -> k++ fi;
       lev = 0 }
  :: k == 2 || bad -> break
  od;
  if
  :: bad -> skip                         /* plan again, or 422 */
  :: else ->
     d_step { i = 0;
       do
       :: i < E && ((win >> mi[i]) & 1) ->
          if :: got[i] > 1 -> assert(twice) :: else fi;
          if :: need[i] && !LOST(i) && got[i] == 0 -> assert(unseen) :: else fi;
          i++
       :: i < E && !((win >> mi[i]) & 1) -> i++
       :: i == E -> break
       od;
       if :: uneq -> assert(unequal) :: else fi }
  fi
}
#endif

/* ------------------------------------------------------------------ time, loss, invariants */
active proctype Clock() {
  byte i = 0;
  do
  :: d_step { clk < TMAX -> clk++;
       redis_expires() }
  :: clk == TMAX -> break
  od
}

#ifdef CRASH
inline pair(a, Sa) { if :: back -> a = Sa; Sa = 0 :: else -> Sa = a fi }
#ifdef VACANT
byte Sfold;
#define PAIRFOLD pair(fold, Sfold)
#else
#define PAIRFOLD skip
#endif
inline all() {
  i = 0;
  do :: i < E -> pair(m[i], Sm[i]); pair(h[i], Sh[i]); pair(d[i], Sd[i]); pair(y[i], Sy[i]);
        pair(um[i], Sum[i]); pair(uh[i], Suh[i]); pair(ud[i], Sud[i]); pair(uy[i], Suy[i]); pair(once[i], Sonce[i]); i++
     :: else -> break od;
  i = 0;
  do :: i < 4 -> pair(xm[i], Sxm[i]); pair(xh[i], Sxh[i]); pair(xd[i], Sxd[i]); i++ :: else -> break od;
  i = 0;
  do :: i < 2 -> pair(pm[i], Spm[i]); pair(ph[i], Sph[i]); pair(pd[i], Spd[i]); pair(xy[i], Sxy[i]); i++ :: else -> break od;
  i = 0;
  pair(py, Spy); pair(open, Sopen); PAIRFOLD; pair(st, Sst); pair(pass, Spass); pair(cur, Scur)
}
active proctype Crash() {
  byte i = 0; bit back = 0;
  d_step { all(); back = 1 };
  d_step {
    i = 0;
    do :: i < E -> if :: once[i] && !Sonce[i] -> lost[i] = 1 :: else fi; i++ :: else -> break od;
    all();
#ifndef M_REMEMBER                        /* what is remembered of `open` outlives the connection */
    known = 0;
#endif
    epoch = 1; back = 0; redis_expires() }
}
#endif

/* The expiry phase of a bucket is over. */
#define PHASE(v, t)  (pass != 0 && (pass & 3) == v && !CLOSING(st, v) && WSTAMP(st, v) == t + 1)
#define TWICE(e)     (m[e] > 1 || h[e] > 1 || d[e] > 1 || y[e] > 1)
#define UNEQUAL(e)   ((HW(st) > HO(e) && !MGONE(e) && (h[e] != m[e] || uh[e] != um[e])) || (DW(st) > DA(e) && !HGONE && (d[e] != h[e] || ud[e] != uh[e])) || (MW(st) && !DGONE && (y[e] != d[e] || uy[e] != ud[e])))
#define THERE(a, ua) ((a) == 1 && (ua))
#define UNSEEN(e)    (acked[e] && !LOST(e) && (((HW(st) <= HO(e) || !MGONE(e)) && !THERE(m[e], um[e])) || (HW(st) > HO(e) && (DW(st) <= DA(e) || !HGONE) && !THERE(h[e], uh[e])) || (DW(st) > DA(e) && (!MW(st) || !DGONE) && !THERE(d[e], ud[e])) || (MW(st) && !YGONE && !THERE(y[e], uy[e]))))
#if defined(CRASH) && !defined(RECONN)
#define LEAKED(e)    0                    /* a leak, never a loss, unless a pass ends with its connection */
#else
#define LEAKED(e)    (!stalled && ((HW(st) > HO(e) && !PHASE(1, HO(e)) && ((m[e] && !pm[mi[e]]) || (um[e] && !xm[mi[e]*2+pg[e]]))) || (DW(st) > DA(e) && !PHASE(2, DA(e)) && ((h[e] && !ph[HO(e)]) || (uh[e] && !xh[HO(e)*2+pg[e]]))) || (MW(st) && !PHASE(3, 0) && ((d[e] && !pd[DA(e)]) || (ud[e] && !xd[DA(e)*2+pg[e]]) || (y[e] && !py) || (uy[e] && !xy[pg[e]])))))
#endif
#define CHECK(e)     :: d_step { TWICE(e) -> assert(twice) } :: d_step { UNEQUAL(e) -> assert(unequal) } :: d_step { UNSEEN(e) -> assert(unseen) } :: d_step { LEAKED(e) -> assert(leaked) }
#ifdef M_NOCLOSING
#undef LEAKED
#define LEAKED(e) 0
#endif

active proctype Monitor() {
end:
  do
  CHECK(0)
  CHECK(1)
#if E > 2
  CHECK(2)
#endif
#ifdef GOAL                               /* not vacuous: everything gets done, and this is found */
  :: d_step { HW(st) == NH && (TOP < 2 || DW(st) == ND) && (TOP < 3 || MW(st)) && pass == 0 && acked[0] && acked[1] && (TOP < 3 || (y[0] == 1 && y[1] == 1 && py && xy[pg[0]])) -> assert(goal) }
#endif
  od
}

init {
  atomic {
    mi[0] = 0; pg[0] = 0;
#ifdef SWAP
    pg[0] = 1;
#endif
    if :: mi[1] = 0 :: mi[1] = 1 fi;
    if :: pg[1] = 0 :: pg[1] = 1 fi;
#if E > 2
    if :: mi[2] = 0 :: mi[2] = 1 fi;
    if :: pg[2] = 0 :: pg[2] = 1 fi;
#endif
    run Writer(0);
#ifdef DUP
    run Writer(0);
#endif
    run Writer(1);
#if E > 2
    run Writer(2);
#endif
    run Leader(0);
#ifdef TWO
    run Leader(1);
#endif
#ifdef READER
    run Reader();
#endif
  }
}
