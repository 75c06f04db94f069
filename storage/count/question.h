/* question.h - a question about counts at hand: which partition is asked for what.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; memory is kept between questions.
 *
 * A question's life, file by file:
 *
 *     count.c     until an attempt holds: plan, read; then the answer
 *     question.c  which partition is asked for which pages: the portions
 *     plan.c      which buckets of each portion, for the window or for each point of a series
 *     recall.c    what of them is remembered: runs of buckets
 *     whole.c     buckets of visits in all partitions together,
 *     series.c    and points of a series;
 *     figures.c   both many to a value
 *     pieces.c    the rest, cut into what is asked at once
 *     read.c      asked, and taken from the replies
 *     tally.c     added up
 */
#ifndef STORAGE_COUNT_QUESTION_H
#define STORAGE_COUNT_QUESTION_H

#include "storage/count/tally.h"
#include "storage/read/kept_parts.h"

/* Sets of metrics: bits 1 << enum metric.  Visits lie with the visitors, in each
 * partition that has visitors; the rest with their page. */
#define METRICS_ALL            ((1u << METRICS) - 1)
#define METRICS_OF_VISIT       (1u << METRIC_VISITS | METRICS_SUMS | 1u << METRIC_OTHER_VISITS)
#define METRICS_OF_PAGE        (METRICS_ALL & ~METRICS_OF_VISIT)
#define METRICS_SUMS           (1u << METRIC_ENGAGED | 1u << METRIC_SECONDS)
#define METRICS_OTHER          (METRICS_OTHER_SUMS | METRICS_OTHER_SKETCHES)
#define METRICS_OTHER_SUMS     (1u << METRIC_OTHER_PV | 1u << METRIC_OTHER_VISITS)
#define METRICS_OTHER_SKETCHES (1u << METRIC_OTHER_UV | 1u << METRIC_OTHER_IPS)
#define METRICS_SKETCHES       (1u << METRIC_UV | 1u << METRIC_IPS | METRICS_OTHER_SKETCHES)
#define METRICS_BESIDE         (METRICS_SUMS | METRICS_OTHER) /* of a name that is no page's */

/* More pages are several portions: of 1,000, the sketches of one bucket are 12 MB, which must not
 * be one turn of Redis's thread. */
#define PORTION_PAGES 32

/* What one partition is asked. */
struct portion {
    unsigned partition;
    unsigned metrics;           /* a set */
    const struct slice **pages; /* array of the question's pages; without `rest` */
    bool pages_lent;            /* an earlier portion owns the array; else this one does */
    size_t n_pages, pages_capacity;
    /* The plan.  Portions that are planned alike have one, which the first of them owns. */
    struct cover cover; /* of all points, one behind the other */
    size_t *ends;       /* the first bucket behind each point; not if `rest` */
    size_t ends_capacity;
    bool plan_lent; /* by an earlier portion */
    bool rest;      /* of no point: the total of points that are recalled (count/series.h) */

    /* What need not be read: runs that are remembered, and points of a series whose figures are. */
    struct remembered_runs runs;
    struct cache_id names[METRICS]; /* of what is remembered of the portion, if it is named */
    bool named;
};

/* The runs of buckets [first, end) of a plan, found last.  They are the same for all portions that
 * have the plan and the same instant in `over`.  has_open: minutes of open hours are in runs. */
struct found_runs {
    const struct bucket *plan; /* a cover's buckets; NULL: nothing was found */
    size_t first, end;
    int64_t over_s;
    bool has_open;
    struct remembered_runs runs;
};

/* A run that all portions of visits have, bucket by bucket: see whole.h. */
#define WHOLE_BUCKETS_MAX 128 /* minutes to the end of an hour, and those of the next */
struct whole_run {
    size_t first, n; /* buckets of the portions' cover */
    size_t kept;     /* portions that were read, and may be kept */
    uint64_t sums[METRICS][WHOLE_BUCKETS_MAX];
};

/* A piece of the reading (read/proved_read.h): buckets [first, first + n) of a portion's cover. */
struct count_piece {
    struct portion *portion;
    size_t first, n;
    size_t reads;    /* buckets of them that are not recalled */
    size_t point;    /* that of the first bucket */
    bool ends_group; /* nothing more comes for this group of points: see tally.h */
};

struct count_question {
    struct proved_read read;
    struct count_job *job;
    struct tally tally;
    struct hll run[METRICS]; /* the run that is being read */
    uint64_t run_sum[METRICS];
    struct portion *portions; /* owned: for pages, and for visits */
    size_t n_portions, portions_capacity;
    size_t n_runs_kept;   /* portions, used or not, whose memory for runs is kept */
    struct portion *rest; /* owned: see there */
    size_t n_rest, rest_capacity;
    struct found_runs found;
    struct kept_parts parts;  /* what each portion of visits has of its runs: see recall.h */
    struct whole_run *wholes; /* owned: runs that are added up */
    size_t n_wholes, wholes_capacity;
    struct buffer scratch;
    bool *known; /* owned, per point of the plan: its figures are recalled */
    size_t known_capacity;
    struct count_piece *pieces; /* owned */
    size_t n_pieces, pieces_capacity;
    size_t reads; /* keys that are asked for */
};

/* NULL: no memory. */
struct count_question *count_question_new(void);
void count_question_free(struct count_question *q);

/* The page that stands for the whole site. */
extern const struct slice count_whole_site;

/* Which keys hold it? */
enum key_kind metric_kind(enum metric metric);

/* Under which name does @metric of @page lie there?  Of METRICS_BESIDE: of pages like @page. */
struct slice metric_name(enum metric metric, struct slice page);

/* Under how many names does @metric of the portion lie in a bucket? */
size_t portion_names(const struct portion *portion, enum metric metric);

/* The metrics that are asked for: a set. */
unsigned count_metrics(const struct count_job *job);
static inline bool metrics_have(unsigned metrics, enum metric metric)
{
    return (metrics >> metric & 1) != 0;
}

/* The first portion of visits, which all others are like.  NULL: there is none. */
const struct portion *count_visits(const struct count_question *q);

/* A name for what @number has of @metric in any run of such a portion: its partition, or several
 * together (read/run.h). */
struct cache_id portion_run_name(
    struct count_question *q, const struct portion *portion, enum metric metric, unsigned number);

/* The `ver` of the partitions of all portions that are asked for any of @metrics, as one id.  n 0:
 * in one of them there is none, or it was another one in another reply. */
struct ver portions_proof(struct count_question *q, unsigned metrics);

/* Which partition is asked for which pages of q->job: a page's own one; for visits, which lie with
 * the visitors, all that have visitors.  False: no memory. */
bool count_make_portions(struct count_question *q);

/* Forget a portion's plan. */
void portion_drop_plan(struct portion *portion);

/* Forget what was planned as the rest of a series. */
void count_drop_rest(struct count_question *q);

/* How many keys, or fields, @n buckets of a portion are for @metrics of its own.  What caps put
 * together is not counted: one field, or key, where there was a cap. */
size_t portion_reads(const struct portion *portion, unsigned metrics, size_t n);

/* How many keys hold @metric of one bucket, of those that an answer lists: one a page for sketches,
 * one for sums.  What lies beside is in the same keys, or is not listed. */
size_t portion_keys(const struct portion *portion, enum metric metric);

/* The first bucket of @point in the portion's cover. */
static inline size_t portion_first(const struct portion *portion, size_t point)
{
    return point == 0 ? 0 : portion->ends[point - 1];
}

/* Is it about visits, as the like portions of all partitions of visitors are? */
static inline bool portion_is_spread(const struct portion *portion)
{
    return (portion->metrics & METRICS_OF_VISIT) != 0;
}

/* The state of the portion's partition: by what it was planned, then by the newest reply. */
static inline const struct partition_view *portion_view(
    const struct count_question *q, const struct portion *portion)
{
    return &q->read.known[portion->partition].view;
}

#endif
