/* question.h - the question about counts at hand: which partition is asked for what.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; memory is kept between questions.
 *
 * A question's life, file by file:
 *
 *     count.c     plans and reads until an attempt holds, and makes the answer
 *     question.c  decides which partition is asked for which pages: the portions
 *     plan.c      decides which buckets of each portion, for the window or each point of a series
 *     recall.c    takes the runs of buckets that are remembered
 *     whole.c     takes remembered buckets of visits, of all partitions together
 *     series.c    takes the points of a series that are remembered
 *     figures.c   keeps the figures for both, many in one value
 *     pieces.c    cuts what is left into pieces
 *     read.c      asks Redis for each piece, and takes the replies
 *     tally.c     adds up
 */
#ifndef STORAGE_COUNT_QUESTION_H
#define STORAGE_COUNT_QUESTION_H

#include "storage/count/tally.h"
#include "storage/read/kept_parts.h"

/* Sets of metrics: bits 1 << enum metric.  Visits lie with the visitors, in each partition that has
 * visitors; all other metrics lie in the partition of their page. */
#define METRICS_ALL            ((1u << METRICS) - 1)
#define METRICS_OF_VISIT       (1u << METRIC_VISITS | METRICS_SUMS | 1u << METRIC_OTHER_VISITS)
#define METRICS_OF_PAGE        (METRICS_ALL & ~METRICS_OF_VISIT)
#define METRICS_SUMS           (1u << METRIC_ENGAGED | 1u << METRIC_SECONDS)
#define METRICS_OTHER          (METRICS_OTHER_SUMS | METRICS_OTHER_SKETCHES)
#define METRICS_OTHER_SUMS     (1u << METRIC_OTHER_PV | 1u << METRIC_OTHER_VISITS)
#define METRICS_OTHER_SKETCHES (1u << METRIC_OTHER_UV | 1u << METRIC_OTHER_IPS)
#define METRICS_SKETCHES       (1u << METRIC_UV | 1u << METRIC_IPS | METRICS_OTHER_SKETCHES)
#define METRICS_BESIDE         (METRICS_SUMS | METRICS_OTHER) /* lie under a name that is no page */

/* Portions with sketches have so many pages at most.  With 1,000 pages the sketches of one bucket
 * would be 12 MB, which must not be one turn of Redis's thread. */
#define PORTION_PAGES 32

/* What one partition is asked for: some metrics of some pages. */
struct portion {
    unsigned partition;
    unsigned metrics;           /* a set */
    const struct slice **pages; /* array of pointers to pages of the question; see pages_lent */
    bool pages_lent;            /* an earlier portion owns the array; else this portion does */
    size_t n_pages, pages_capacity;
    /* The plan.  Portions that are planned alike share a plan, which the first of them owns. */
    struct cover cover; /* the covers of all points, one behind the other */
    size_t *ends;       /* for each point the first bucket behind it; NULL in a `rest` */
    size_t ends_capacity;
    bool plan_lent; /* an earlier portion owns the plan */
    bool rest;      /* the portion has no points: it is for the total alone (count/series.h) */

    /* What may be remembered: runs of buckets, and points of a series whose figures are known.
     * What is recalled of them is not read. */
    struct remembered_runs runs;
    struct cache_id names[METRICS]; /* if named: the names of what is remembered of the portion */
    bool named;
};

/* The runs that were found last: those of buckets [first, end) of a plan.  They are the same for
 * all portions that have the plan, over_s and has_open. */
struct found_runs {
    const struct bucket *plan; /* the buckets of the cover; NULL: nothing was found */
    size_t first, end;
    int64_t over_s; /* as in struct partition_view */
    bool has_open;  /* minutes of open hours are in runs, too */
    struct remembered_runs runs;
};

/* A run that all portions of visits have: its buckets are added up one by one.  See whole.h. */
#define WHOLE_BUCKETS_MAX 128 /* enough for the minutes of two hours; longer runs are not added */
struct whole_run {
    size_t first, n; /* buckets of the portions' cover */
    size_t kept;     /* how many portions were read so that they may be remembered */
    uint64_t sums[METRICS][WHOLE_BUCKETS_MAX];
};

/* A piece of the reading (read/proved_read.h): buckets [first, first + n) of a portion's cover. */
struct count_piece {
    struct portion *portion;
    size_t first, n;
    size_t reads;    /* how many of these buckets are not recalled */
    size_t point;    /* the point of the first bucket */
    bool ends_group; /* the piece is the last one of its group of points: see tally.h */
};

/* Zeroed: it is empty. */
struct count_question {
    struct proved_read read;
    struct count_job *job;
    struct tally tally;
    struct hll run[METRICS];   /* the union of what was read of the run at hand */
    uint64_t run_sum[METRICS]; /* the sum of what was read of it */
    struct portion *portions;  /* owned: those for pages, and those for visits */
    size_t n_portions, portions_capacity;
    size_t n_runs_kept;   /* so many elements of portions, in use or not, own memory for runs */
    struct portion *rest; /* owned: portions whose `rest` is true */
    size_t n_rest, rest_capacity;
    struct found_runs found;
    struct kept_parts parts;  /* what each portion of visits has of its runs: see recall.h */
    struct whole_run *wholes; /* owned: the runs whose buckets are added up */
    size_t n_wholes, wholes_capacity;
    struct buffer scratch;
    bool *known; /* owned, an element for each point of the plan: its figures are recalled */
    size_t known_capacity;
    struct count_piece *pieces; /* owned */
    size_t n_pieces, pieces_capacity;
    size_t reads; /* how many keys Redis is asked for */
};

/* Free a struct count_question, with what it owns; NULL is harmless. */
void count_question_free(void *question);

/* The page that stands for the whole site. */
extern const struct slice count_whole_site;

/* The kind of the keys that hold @metric. */
enum key_kind metric_kind(enum metric metric);

/* The name under which such a key holds @metric of @page.  A metric of METRICS_BESIDE has one name
 * for all pages like @page. */
struct slice metric_name(enum metric metric, struct slice page);

/* Under how many names does a bucket hold @metric of the portion? */
size_t portion_names(const struct portion *portion, enum metric metric);

/* The set of metrics that the job needs, with those that bound them. */
unsigned count_metrics(const struct count_job *job);
static inline bool metrics_have(unsigned metrics, enum metric metric)
{
    return (metrics >> metric & 1) != 0;
}

/* The first portion of visits: all others are like it, but for the partition.  NULL: there is none.
 */
const struct portion *count_visits(const struct count_question *q);

/* The name of what @number has of @metric in a run of a portion with these pages.  @number is the
 * portion's partition, or stands for several partitions together (read/run.h). */
struct cache_id portion_run_name(
    struct count_question *q, const struct portion *portion, enum metric metric, unsigned number);

/* One id for the `ver` of all partitions whose portions have any of @metrics.  n is 0 if one of the
 * partitions has no `ver`, or had different ones in different replies, or without memory. */
struct ver portions_proof(struct count_question *q, unsigned metrics);

/* Make the portions of q->job.  For metrics that lie with the page the page's own partition is
 * asked; for visits, which lie with the visitors, all partitions that have visitors.  False: no
 * memory. */
bool count_make_portions(struct count_question *q);

/* Forget a portion's plan. */
void portion_drop_plan(struct portion *portion);

/* Forget the portions in q->rest. */
void count_drop_rest(struct count_question *q);

/* How many keys or fields hold @metrics of the portion in @n buckets.  What caps put together is
 * not counted, because that is at most one field or key a bucket. */
size_t portion_reads(const struct portion *portion, unsigned metrics, size_t n);

/* How many of the keys that an answer lists hold @metric in one bucket: for a sketch one a page,
 * for a sum one.  Metrics of METRICS_BESIDE lie in the same keys, or in keys that are not
 * listed. */
size_t portion_keys(const struct portion *portion, enum metric metric);

/* The first bucket of @point in the portion's cover. */
static inline size_t portion_first(const struct portion *portion, size_t point)
{
    return point == 0 ? 0 : portion->ends[point - 1];
}

/* Is the portion about visits?  Then all partitions of visitors have one like it. */
static inline bool portion_is_spread(const struct portion *portion)
{
    return (portion->metrics & METRICS_OF_VISIT) != 0;
}

/* The state of the portion's partition: first what it was planned by, then the newest reply's. */
static inline const struct partition_view *portion_view(
    const struct count_question *q, const struct portion *portion)
{
    return &q->read.known[portion->partition].view;
}

#endif
