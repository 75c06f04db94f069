/* window_job.h - questions about a window that are more than one number.
 *
 * Layer: storage, public: plain values.
 *
 * A window is an interval of time (time/bucket.h).  The questions are: the top pages, what two
 * pages have in common, the sets of pages, the sites.  Slices and arrays that the caller passes in
 * live until the job is done.  storage_job_release() frees what storage has written.
 */
#ifndef STORAGE_JOB_WINDOW_JOB_H
#define STORAGE_JOB_WINDOW_JOB_H

#include "storage/base/arena.h"
#include "storage/base/slice.h"
#include "storage/sketch/hll_joint.h"
#include "storage/time/bucket.h"

/* A key of Redis that was read for an answer. */
struct counted_key {
    struct bucket bucket;
    char *key; /* n bytes without a NUL; owned by the job */
    size_t n;
};

/* The window of a question, and what was read for it. */
struct window_question {
    struct slice site;
    struct window window;
    bool to_is_now;   /* window.to_s is this minute's end: moved on if Redis's clock is ahead */
    bool round_outer; /* take the nearest window that works instead of STORAGE_NOT_KEPT */
    bool explain;     /* list the keys */

    /* Written by storage.  On STORAGE_NOT_KEPT only `answered` is written: the nearest window that
     * could be answered.  from_s == to_s: there is none. */
    struct window answered;
    uint32_t per_level[LEVELS]; /* keys read of each level, over all partitions */
    struct counted_key *keys;   /* with explain: in time order; owned by the job */
    size_t n_keys;
};

/* Is the answer to @a also the answer to @b?  Never with explain, as lists of keys are owned. */
bool window_question_same(const struct window_question *a, const struct window_question *b);

/* Are these the same pages in the same order? */
bool same_pages(const struct slice *a, size_t n_a, const struct slice *b, size_t n_b);

/* A page set of a question.  Storage adds the pages of the set to those that the question names.
 * If there is no such set, the error is STORAGE_NO_SET. */
struct page_set_ref {
    struct slice name; /* empty: no set */
    void *resolved;    /* private to storage: owns the pages that the question then points to */
};

#define PAGES_LIMIT_MAX 1000

struct page_row {
    struct slice page;
    uint64_t pv, uv;  /* uv: an estimate, at most pv.  With pages_job.entries pv counts visits */
    uint64_t at_most; /* pv, plus what a cap may have counted of the page under another name */
};

/* Input and result of STORAGE_PAGES: the first `limit` names of a class by page views, or by
 * visitors.  Names that tie are in order. */
struct pages_job {
    struct window_question asked;
    const struct slice *pages; /* only these pages; n_pages 0 and no set: all pages of the site */
    size_t n_pages;
    struct page_set_ref set;
    struct slice class;  /* pages, named events, or values: see counted_name.h */
    struct slice prefix; /* only names that begin so; the class itself, or the class and more */
    bool without_uv;     /* the visitors are not asked for; not with by_uv */
    size_t limit;        /* 1..PAGES_LIMIT_MAX */
    bool by_uv;          /* by visitors */
    bool entries;        /* count visits that began with a page, not page views; needs without_uv */

    /* Written by storage. */
    struct page_row *rows; /* n_rows of them, in the arena */
    size_t n_rows;
    uint64_t total;    /* how many of the pages asked for have page views in the window */
    uint64_t total_pv; /* how many page views these pages have */
    uint64_t other_pv; /* how many page views the names have that a cap of the class put together */
    bool clamped;      /* an estimate of visitors was above the page views, and was cut */
    struct arena arena; /* storage_job_release() frees it */
};

/* A page, a set of pages, or the whole site. */
struct overlap_side {
    struct slice page;         /* empty: the set is asked for; without one, the whole site */
    const struct slice *pages; /* written by storage: the pages of the set */
    size_t n_pages;
    struct page_set_ref set;
};

/* The most that the figures of an overlap can be: where caps put names together (places/places.h),
 * any visitor of these names may be a side's.  These are estimates, too.  0: no cap has to do with
 * the figure. */
struct overlap_most {
    double sides[2], either, both, only_a, jaccard;
};

/* Input and result of STORAGE_OVERLAP: the visitors that two sides have in common.  Both sides are
 * asked over one window, or each over a window of its own: then they may be the same pages. */
struct overlap_job {
    struct window_question asked;
    struct overlap_side sides[2];
    bool two_windows;
    struct window_question asked_second; /* with two_windows: for side 1; of the same site */

    /* Written by storage. */
    struct hll_joint joint;
    struct overlap_most most; /* of pages and named events; values have none */
    size_t unknown;           /* on an error: the side at fault, 0 or 1 */
};

#define PAGE_SET_MAX 1000 /* pages in a set */

/* Input and result of STORAGE_PAGE_SET_PUT, _GET and _DELETE.  If there is no such set, get and
 * delete end with STORAGE_NO_SET. */
struct page_set_job {
    struct slice site, name;
    /* put: the pages to write; storage drops those that stand there twice.  get: written by
     * storage. */
    const struct slice *pages;
    size_t n_pages;
    bool created;   /* put: there was no set of that name */
    bool sent;      /* put, delete: whatever the error, the set may have been changed */
    void *resolved; /* private to storage: owns the pages of get */
};

/* Result of STORAGE_SITES: the sites that have had events, in order of their names. */
struct sites_job {
    struct slice *sites; /* n_sites of them, in the arena */
    size_t n_sites;
    struct arena arena; /* storage_job_release() frees it */
};

#endif
