/* kept.pml - the word of a round of folds that questions wait for holds until the round's end, where nothing was acknowledged meanwhile (fold.c).
 *
 * Follows: run_kept() in storage/fold/fold.c, round_run() and round_others_are_folded() in round.c, unfolded_keep(), _end_keep(), _may_tell(), _shows() and
 * _await_shown() in storage/log/unfolded.c, take_append() in append.c, acknowledge.c.  One Redis that does not go back: its connections would end.
 *
 * Four requests, one an entry: 1 can wait, 2 can not, 4 has a key (whoever repeats it is told by its record, as soon as Redis has it), 8 is of another process.
 * Redis has entries in a log, and counts; the process has in memory what was answered.  The fold makes rounds; two questions wait for the word of one.
 * LOOK: a reader looks for a job that came before (settled_await() in storage/read/settled.c).  Where all is counted that the look sees, the reader gives its
 * word for the instant of the look.  Else the reader waits until a round's word holds for its job.
 *
 * Checked: what a question is told has what was acknowledged before the question came (`unseen`).
 */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef ASKERS
#define ASKERS 2
#endif
bit unseen, goal;                         /* never set: assertions by name */
byte log, memory, counted, acked;         /* sets of requests */
byte before;                              /* in memory when the round began */
bit keeps, told, shown;
byte asker;                               /* number of the next question */
bit jobcame, jobin, jobserved;            /* the same of the reader's job */
bit came[2], in0[2], in1[2], served[2];   /* of each question: it came; before the round began, before it ended; a word holds for it */

#ifdef M_NOKEEP                           /* the word is taken to hold, and nothing is kept */
#define MUSTKEEP false
#else
#define MUSTKEEP keeps
#endif

active proctype Waits() {
  atomic { log = log | 1; memory = memory | 1 };
  if
  :: atomic { !MUSTKEEP -> skip }
#ifdef M_BEHIND
  :: atomic { keeps -> skip }
#else
  :: atomic { keeps && (before & 1) -> skip }   /* the round counts it */
#endif
  :: atomic { keeps -> told = 1 }         /* the round takes too long */
  fi;
  acked = acked | 1
}

#ifndef FEW                              /* requests */
active proctype Small() {
#ifdef M_PUTLATE
  atomic { log = log | 2; told = 1 }; acked = acked | 2; memory = memory | 2
#else
  atomic { log = log | 2; memory = memory | 2 };
#ifndef M_NOTOLD
  told = 1;
#endif
  acked = acked | 2
#endif
}

active proctype Keyed() {
  atomic { shown = 1;
#ifndef M_NOSHOW
    told = 1
#endif
  };
  log = log | 4;
  atomic { memory = memory | 4; shown = 0 }
}
active proctype Repeat() { atomic { (log & 4) != 0 -> acked = acked | 4 } }
#endif

active proctype Other() { log = log | 8; acked = acked | 8 }

active proctype Fold() {
  byte n, batch; bit all, others, quiet;
  do
  :: n < ROUNDS -> n++;
     atomic { in0[0] = came[0]; in0[1] = came[1]; jobin = jobcame };        /* begun_us */
     atomic { keeps = 1; told = 0; before = memory };
     atomic { all = !shown };                              /* the answers on their way are awaited: else the word holds for none */
     batch = memory;
     batch = batch | (log & 8);
     counted = counted | batch;
#ifndef M_MARKLATE
     atomic { in1[0] = came[0]; in1[1] = came[1] };        /* now_us */
#endif
#ifdef M_NOHEADS
     others = 1;
#else
     atomic { others = ((log & 8 & (255 - counted)) == 0) };
#endif
     atomic { quiet = !told; keeps = 0 };
#ifdef M_MARKLATE
     atomic { in1[0] = came[0]; in1[1] = came[1] };
#endif
#ifdef M_ANY
     quiet = 1;
#endif
     atomic {
       if
       :: !all -> skip
       :: all && quiet && others ->
#ifdef GOAL
          if :: in1[0] && !in0[0] && acked != 0 -> assert(goal) :: else fi;
#endif
          served[0] = served[0] || in1[0]; served[1] = served[1] || in1[1]
       :: all && !(quiet && others) -> served[0] = served[0] || in0[0]; served[1] = served[1] || in0[1]
       fi;
       jobserved = jobserved || (all && jobin);
       batch = 0; all = 0; others = 0; quiet = 0 }
  :: n == ROUNDS -> break
  od
}

#ifdef LOOK
active proctype Reader() {
  bit in[2]; byte l;
  jobcame = 1;
  atomic { in[0] = came[0]; in[1] = came[1] };             /* now_us */
  l = log;
  if
  :: atomic { (l & (255 - counted)) == 0 -> served[0] = served[0] || in[0]; served[1] = served[1] || in[1] }
  :: atomic { (l & (255 - counted)) != 0 -> skip };
end: jobserved
#ifdef M_LOOKWORD
     ; served[0] = served[0] || in[0]; served[1] = served[1] || in[1]
#endif
  fi
}
#endif

active [ASKERS] proctype Question() {
  byte need, v, q;
  atomic { q = asker; asker++; need = acked; came[q] = 1 };
end:
  served[q];
  v = counted;
  if :: (need & (255 - v)) != 0 -> assert(unseen) :: else fi
}
