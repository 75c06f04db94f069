/* users_job.h - questions about days of users: part of storage.h.
 *
 * Layer: storage.  A day is a number, counted from 1970-01-01, of the site's own calendar; days lie
 * in [0, ACTIVITY_DAYS_END).  Who was active is known exactly, for users with a `user`.
 *
 * Where a day asked for is not kept any more the error is STORAGE_NOT_KEPT and oldest_day the first
 * one that is.
 */
#ifndef STORAGE_JOB_USERS_JOB_H
#define STORAGE_JOB_USERS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/arena.h"
#include "storage/base/slice.h"

#define ACTIVITY_DAYS_END  2932897 /* 10000-01-01 */
#define ACTIVITY_PAIRS_MAX 11000   /* bitmaps in one question: days by actions; and counts */
#define ACTIVITY_USERS_MAX 1000    /* users in one answer */

/* Whose bits: on any, or on all, of these days and in any, or all, of these actions. */
struct activity_who {
    struct slice site;
    const struct slice *actions; /* n_actions of them, at least one */
    size_t n_actions;
    bool all;
};

/* Days [first, first + n); none: nobody for any, everybody.. does not happen: at least one. */
struct activity_days {
    int64_t first;
    size_t n;
};

/* How many users are in set a and in set b, by number; a == b: how many in it. */
struct activity_count {
    uint32_t a, b;
    uint64_t users; /* written by storage */
};

/* Input and result of STORAGE_ACTIVITY: sets of users, and counts of their intersections.  Sets are
 * ordered by their first day and do not overlap. */
struct activity_job {
    struct activity_who who;
    const struct activity_days *sets;
    size_t n_sets;
    struct activity_count *counts;
    size_t n_counts;
    int64_t oldest_day;
};

/* Input and result of STORAGE_ACTIVE_USERS: the users of one set, from a place on.  Places are
 * ordered, a user keeps its own for ever, and new ones come behind in their partition: pages are
 * stable while events come in. */
struct active_users_job {
    struct activity_who who;
    struct activity_days days;
    unsigned partition; /* the place; in and out */
    uint64_t index;
    size_t limit;        /* 1..ACTIVITY_USERS_MAX */
    bool more;           /* there are users at the place or behind */
    struct slice *users; /* n_users of them, in the arena */
    size_t n_users;
    struct arena arena; /* storage_job_release */
    int64_t oldest_day;
};

/* Input and result of STORAGE_USER_DAYS: on which days one user did @action. */
struct user_days_job {
    struct slice site, user, action;
    struct activity_days days;
    bool only_kept;  /* days that are not kept any more are passed over, not an error */
    uint8_t *active; /* the caller's, days.n of them: 1 or 0 */
    int64_t oldest_day;
};

/* Input and result of STORAGE_FORGET_USER: the user's name and index are forgotten, its bits are
 * cleared.  Once the answer is there no question finds them; if it has come half way, the rollup's
 * leader or the next such job does the rest. */
struct forget_user_job {
    struct slice site, user;
    bool known;    /* there was an index */
    bool sent;     /* whatever the error, it may be done, at least the half of it */
    uint64_t bits; /* cleared */
};

#endif
