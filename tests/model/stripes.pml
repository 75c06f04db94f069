/* stripes.pml - a partition counts a log by stripes, each of which has a position of its own in the cursor.
 *
 * Follows: storage/fold/{batch,cut,share}.c (a transaction counts some stripes up to its end), storage/schema/log_state.c (the least
 * position is what the partition has counted), storage/read/log_progress.c (a question), storage/fold/trim.c.
 *
 * One log of NE entries, each of which has something in both stripes.  Two folds with batches of any length: each chooses its stripes
 * and its end, WATCHes, and its EXEC comes at any time, or never.  A question, and a trim, at any time.
 * Checked: nothing counts twice in a stripe (`twice`); an answer, and what is trimmed, is counted in all of them (`unseen`).
 */
#ifndef NE
#define NE 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
byte head, cut;                           /* last entry; the last one that is trimmed */
byte pos[2];                              /* the cursor */
byte n[8];                                /* how often entry e is counted in stripe s: n[2 * e + s] */
byte ver;                                 /* what a WATCH compares */
bit twice, unseen;                        /* never set: assertions by name */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi
#define LEAST (pos[0] < pos[1] -> pos[0] : pos[1])
#define MOST  (pos[0] > pos[1] -> pos[0] : pos[1])
#ifdef M_MOST
#define COUNTED MOST
#else
#define COUNTED LEAST
#endif
#ifdef M_TRIMMOST
#define TRIMMED MOST
#else
#define TRIMMED LEAST
#endif

inline count(s) {                         /* stripe s, from the position that was read up to the end of the batch */
  if
#ifdef M_ONE
  :: (with & (1 << s)) != 0 -> e = at0 + 1
#else
  :: (with & (1 << s)) != 0 -> e = (s == 0 -> at0 : at1) + 1
#endif
  :: else -> e = to + 1
  fi;
  do
  :: e <= to -> n[2 * e + s]++; MUST(n[2 * e + s] <= 1, twice); e++
  :: else -> break
  od
}

inline move(s) {
#ifdef M_ALL
  if :: (s == 0 -> at0 : at1) < to -> pos[s] = to :: else fi
#else
#ifdef M_BACK
  if :: (with & (1 << s)) != 0 -> pos[s] = to :: else fi
#else
  if :: (with & (1 << s)) != 0 && (s == 0 -> at0 : at1) < to -> pos[s] = to :: else fi
#endif
#endif
}

proctype Fold() {
  byte tries = 0, with, to, at0, at1, v, e;
  do
  :: tries < TRIES ->
     atomic {                             /* a batch that begins anywhere before the positions, and the WATCH */
       head > 0;
       tries++;
       to = 1;
       do :: to < head -> to++ :: break od;
       if :: with = 1 :: with = 2 :: with = 3 fi;
       v = ver; at0 = pos[0]; at1 = pos[1]
     };
     atomic {                             /* the EXEC, if it comes */
       if
#ifdef M_NOWATCH
       :: true ->
#else
       :: ver == v ->
#endif
          count(0); count(1); move(0); move(1); ver++
       :: true                            /* void, or lost */
       fi;
       with = 0; to = 0; at0 = 0; at1 = 0; v = 0; e = 0
     }
  :: else -> break
  od
}

proctype Append() { do :: head < NE -> head++ :: else -> break od }

proctype Ask() {
  byte need, e;
  need = head;
  atomic {                                /* heads before cursors, and then the reading, over one connection */
    if
    :: COUNTED >= need ->
       e = 1;
       do :: e <= need -> MUST(n[2 * e] == 1 && n[2 * e + 1] == 1, unseen); e++ :: else -> break od
    :: else
    fi
  }
}

proctype Trim() {
  atomic {
    do :: cut < TRIMMED -> cut++; MUST(n[2 * cut] == 1 && n[2 * cut + 1] == 1, unseen) :: else -> break od
  }
}

init { atomic { run Append(); run Fold(); run Fold(); run Ask(); run Trim() } }
