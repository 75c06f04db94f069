/* window_job.h - questions about a window that are more than one number: top pages, what two pages
 * have in common; and the sets of pages and the sites that can be asked for.
 *
 * Layer: storage, part of storage.h.  Slices live as long as the job.  What storage has written is
 * given back by storage_job_release.
 */
#ifndef STORAGE_JOB_WINDOW_JOB_H
#define STORAGE_JOB_WINDOW_JOB_H

#include "storage/base/arena.h"
#include "storage/base/slice.h"
#include "storage/sketch/hll_joint.h"
#include "storage/time/bucket.h"

/* A key that was read. */
struct counted_key {
    struct bucket bucket;
    char *key; /* n bytes, not NUL-terminated, owned by the job */
    size_t n;
};

/* The window of a question, and what was read for it. */
struct window_question {
    struct slice site;
    struct window window;
    bool to_is_now;   /* window.to_s is the end of the current minute: moved on if Redis's clock is
                         ahead */
    bool round_outer; /* take the nearest answerable window instead of STORAGE_NOT_KEPT */
    bool explain;     /* list the keys */

    /* Written by storage.  On STORAGE_NOT_KEPT only answered is written: the nearest window that
     * could be answered, from_s == to_s if there is none. */
    struct window answered;
    uint32_t per_level[LEVELS]; /* keys per level, over all partitions */
    struct counted_key *keys;   /* with explain, in time order; owned */
    size_t n_keys;
};

/* Would the answer to @a be the answer to @b?  Not with explain: lists of keys are owned. */
bool window_question_same(const struct window_question *a, const struct window_question *b);

/* The same pages in the same order? */
bool same_pages(const struct slice *a, size_t n_a, const struct slice *b, size_t n_b);

/* A page set whose pages are asked for beside those that are named: storage replaces the question's
 * pages by the union.  Unknown: STORAGE_NO_SET. */
struct page_set_ref {
    struct slice name; /* empty: none */
    void *resolved;    /* private to storage: owns what the question's pages point to */
};

#define PAGES_LIMIT_MAX 1000

struct page_row {
    struct slice page;
    uint64_t pv, uv; /* uv: an estimate, at most pv */
};

/* STORAGE_PAGES: the first @limit pages by page views, or by visitors; ties by name. */
struct pages_job {
    struct window_question asked;
    const struct slice *pages; /* these only; n_pages 0: all of the site */
    size_t n_pages;
    struct page_set_ref set;
    struct slice prefix; /* those whose names begin so */
    size_t limit;        /* 1..PAGES_LIMIT_MAX */
    bool by_uv;

    /* Written by storage. */
    struct page_row *rows;
    size_t n_rows;
    uint64_t total; /* pages with page views in the window, of those that were asked for */
    bool clamped;   /* an estimate was above the page views */
    struct arena arena;
};

/* A page, or any page of a set. */
struct overlap_side {
    struct slice page; /* empty: the set */
    const struct slice *pages;
    size_t n_pages; /* written by storage, of the set */
    struct page_set_ref set;
};

/* STORAGE_OVERLAP: visitors of two pages, or sets of pages. */
struct overlap_job {
    struct window_question asked;
    struct overlap_side sides[2];
    struct hll_joint joint; /* written by storage */
    size_t unknown;         /* STORAGE_NO_SET: the side whose set there is none of */
};

#define PAGE_SET_MAX 1000 /* pages in a set */

/* STORAGE_PAGE_SET_PUT, _GET and _DELETE.  Unknown set: STORAGE_NO_SET. */
struct page_set_job {
    struct slice site, name;
    const struct slice
        *pages; /* put: to be written, afterwards each once; get: written by storage */
    size_t n_pages;
    bool created;   /* put: there was none of that name */
    bool sent;      /* put, delete: whatever the error, it may have been done */
    void *resolved; /* private to storage */
};

/* STORAGE_SITES: sites that have had events, in order of their names. */
struct sites_job {
    struct slice *sites; /* written by storage */
    size_t n_sites;
    struct arena arena;
};

#endif
