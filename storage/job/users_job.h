/* users_job.h - questions about single users: who did what on which days.
 *
 * Layer: storage, public: plain values.
 *
 * Storage remembers for each user of a site on which days the user was active, and by which
 * actions.  An action is a name that an event carries; every event with a user also counts for the
 * action "active".  This is exact.  Events without a user leave no trace here.  A day is a number:
 * days since 1970-01-01 in the site's own time zone, from 0 to 9999-12-31.  One day and one action
 * have a bitmap with a bit for each user.
 *
 * If a day that is asked for is not kept any more, the error is STORAGE_NOT_KEPT, and oldest_day is
 * the first day that is kept.  Slices and arrays that the caller passes in live until the job is
 * done.
 */
#ifndef STORAGE_JOB_USERS_JOB_H
#define STORAGE_JOB_USERS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/arena.h"
#include "storage/base/slice.h"

#define ACTIVITY_PAIRS_MAX 11000 /* bitmaps of one question: days * actions; also its counts */
#define ACTIVITY_USERS_MAX 1000  /* users in one answer */

/* The days [first, first + n); n is at least 1. */
struct activity_days {
    int64_t first;
    size_t n;
};

/* A set of users: everyone who did certain actions on certain days.
 *
 *     all, min_days          who is in the set: users who did
 *     -------------          --------------------------------
 *     false, 0               any of the actions on any of the days
 *     true, 0                each of the actions on each of the days
 *     false, n               any of the actions, on at least n of the days
 *     true, n                each of the actions, on at least n of the days
 *
 * Zeros are the commonest set.  `only_new` leaves out the users who did the action on any of the
 * activity_question.new_days days before days.first; such a set has one action.  `narrows` leaves
 * out the users who are not in the set that stands before this one. */
struct activity_set {
    size_t action,
        n_actions; /* positions in the question's actions: [action, action + n_actions) */
    struct activity_days days;
    size_t min_days;
    bool all, only_new, narrows;
};

/* Sets of users of one site.  Either one of them has min_days, or several may be only_new, with the
 * same action. */
struct activity_question {
    struct slice site;
    const struct slice *actions; /* n_actions of them */
    size_t n_actions;
    const struct activity_set *sets; /* n_sets of them, at least one */
    size_t n_sets;
    size_t new_days; /* for sets that are only_new */
};

/* How many users are both in set a and in set b.  a and b are positions in the question's sets; if
 * they are equal, this is the size of the set. */
struct activity_count {
    uint32_t a, b;
    uint64_t users; /* written by storage */
};

/* Input and result of STORAGE_ACTIVITY: the sizes of sets of users and of their intersections. */
struct activity_job {
    struct activity_question asked;
    struct activity_count *counts; /* n_counts of them, the caller's */
    size_t n_counts;
    int64_t oldest_day; /* written by storage */
};

/* Input and result of STORAGE_FREQUENCY: how many users are in a set because of exactly n days, for
 * each n.  The question has one set, with a min_days of 1. */
struct frequency_job {
    struct activity_question asked;
    uint64_t *users;    /* the caller's, 1 + days.n of them; storage writes users[n], n from 1 on */
    int64_t oldest_day; /* written by storage */
};

/* Input and result of STORAGE_ACTIVE_USERS: the users of a set, a page of them at a time.
 *
 * A place says where a page begins: a partition, and an index in it.  A user keeps its place for
 * ever, and new users come behind all others of their partition.  So pages are stable while events
 * come in. */
struct active_users_job {
    struct activity_question asked; /* of one set */
    unsigned partition;             /* the page begins in this partition */
    uint64_t index;                 /* the page begins with this index of the partition */
    unsigned next_partition;        /* written by storage: the place behind this page */
    uint64_t next_index;
    size_t limit;        /* users of a page: 1..ACTIVITY_USERS_MAX */
    bool more;           /* written by storage: there are users at that place or behind it */
    struct slice *users; /* written by storage: n_users of them, in the arena */
    size_t n_users;
    struct arena arena; /* storage_job_release() frees it */
    int64_t oldest_day; /* written by storage */
};

/* Input and result of STORAGE_USER_DAYS: on which days one user did one action. */
struct user_days_job {
    struct slice site, user, action;
    struct activity_days days;
    bool only_kept;     /* pass over days that are not kept any more: no error */
    uint8_t *active;    /* the caller's, days.n of them; storage writes 1 or 0 */
    int64_t oldest_day; /* written by storage */
};

/* Input and result of STORAGE_FORGET_USER: forget the user's name and index, and clear its bits.
 * After STORAGE_OK no question finds the user.  If a job gets only half way, the leader of the
 * rollups or the next such job does the rest. */
struct forget_user_job {
    struct slice site, user;

    /* Written by storage. */
    bool known;    /* the user had an index */
    bool sent;     /* whatever the error: the work may be done, or half of it */
    uint64_t bits; /* how many bits were cleared */
};

/* Input of STORAGE_TAKE_BACK: one user did not do one action on one day after all.  If no such
 * action is remembered, that is no error. */
struct take_back_job {
    struct slice site, user, action;
    int64_t day;

    /* Written by storage. */
    int64_t oldest_day;
    bool sent; /* whatever the error: the bit may be cleared */
};

#endif
