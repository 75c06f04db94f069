/* fold_ages.pml - a fold in a cluster: heads of a bounded age, and closing a log whose server and whose partition's server go back
 * one without the other.
 *
 * Follows: storage/fold/{lanes,transaction}.c (the age of the heads when the WATCH is answered), storage/log/close.c (a log is
 * counted twice, as far apart as a server can go back; a cursor goes when it was seen without a head for long).
 *
 * One log of one entry, which folds have in memory, and one partition.  A fold reads the head, WATCHes, and its EXEC comes at any
 * time.  The closer is one; it begins a step anew when a connection was lost.  Each server goes back once, by less than H.
 * Checked at every moment: the entry counts at most once (`twice`); a log without a head is counted (`unseen`).
 */
#ifndef TMAX
#define TMAX 6
#endif
#define H 1
#ifdef M_NOAGE
#define AGE TMAX
#else
#define AGE 1
#endif
#ifdef M_CURNOW
#define KEPT 0
#else
#define KEPT 2
#endif
#ifdef M_CLOSENOW
#define APART 0
#else
#define APART H
#endif
byte clk;
bit head = 1;                             /* the log's server; 0: closed, or not back yet */
bit counted;                              /* the cursor */
byte n;                                   /* how often the entry is in the counts.. */
byte ver;                                 /* ..and what a WATCH compares */
byte tfold, tdel;                         /* when the EXEC was, and the last deletion of the head */
bit lost;                                 /* a connection of the closer */
bit twice, unseen;                        /* never set: assertions by name */
#define MUST(x, name) if :: !(x) -> assert(name) :: else fi

proctype Clock() { do :: clk < TMAX -> clk++ :: else -> break od }

proctype Fold() {
  byte at = 0, v = 0, k = 0; bit c = 0;
  do
  :: k < 1 ->
     k++;
     if
     :: atomic { head -> at = clk };
        atomic { v = ver; c = counted };  /* WATCH, and the cursor */
        if
        :: clk - at > AGE || c -> skip    /* when it is answered; or it is counted */
        :: else ->
           atomic {
             if
             :: ver == v -> n++; counted = 1; ver++; tfold = clk; MUST(n <= 1, twice)
             :: else                      /* void */
             fi
           }
        fi
     :: !head -> skip
     fi
  :: else -> break
  od
}

proctype Close() {
  byte seen = 0;
again:
  atomic { head && counted || clk == TMAX -> seen = clk; lost = 0 };
  if :: clk == TMAX -> goto over :: else fi;
  if
  :: lost -> goto again
  :: !lost && clk - seen >= APART -> skip
  :: clk == TMAX -> goto over
  fi;
  if :: counted && !lost -> skip :: else -> goto again fi;
  atomic {                                /* another server: whatever happened in between */
    if :: head -> head = 0; tdel = clk; MUST(n > 0, unseen) :: else fi
  };
wait:
  seen = clk;
  lost = 0;
  if
#ifndef M_BLIND
  :: lost -> if :: head -> goto again :: else -> goto wait fi
#endif
#ifdef M_BLIND
  :: clk - seen >= KEPT -> skip
#else
  :: !lost && !head && clk - seen >= KEPT -> skip
#endif
  :: clk == TMAX -> goto over
  fi;
  atomic {
#ifndef M_BLIND
    if :: head || lost -> goto wait2 :: else fi;
#endif
    counted = 0; ver++
  };
  goto over;
wait2:
  if :: head -> goto again :: else -> goto wait fi;
over:
  skip
}

proctype LogBack() {                      /* the deletion of the head is undone */
  if
  :: atomic { !head && clk - tdel < H -> head = 1; lost = 1 }
  :: clk == TMAX -> skip
  fi
}

proctype PartitionBack() {                /* counts and cursor are as before the fold */
  if
  :: atomic { counted && clk - tfold < H -> counted = 0; n = 0; ver++; lost = 1; MUST(head, unseen) }
  :: clk == TMAX -> skip
  fi
}

init { atomic { run Clock(); run Fold(); run Fold(); run Close(); run LogBack(); run PartitionBack() } }
