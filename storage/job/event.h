/* event.h - what a visitor did, validated and normalised: a page view, or something else.
 *
 * Layer: storage, public: plain values.
 *
 * The decoders of handlers/ fill an event, and storage reads it.  The slices and the array of
 * actions point into memory of the request, or to static memory.  That memory must live until the
 * job that carries the event is done.
 *
 * An event's `page` tells what kind of event it is:
 *
 *     a page               a page view
 *     a name with a mark   a named event (counted_name.h); no page view
 *     empty                only days of a user's activity; no page view
 *
 * Values of dimensions belong to page views only.
 *
 * An event is small, about 130 bytes, because storage walks through ten thousand at a time.
 * So actions and values lie elsewhere, and the event points to them. */
#ifndef STORAGE_JOB_EVENT_H
#define STORAGE_JOB_EVENT_H

#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/dimension.h"

/* Limits that are part of the API; all but one count bytes. */
#define EVENT_SITE_MAX    64
#define EVENT_PAGE_MAX    2048
#define EVENT_USER_MAX    256
#define EVENT_VISITOR_MAX 256   /* anonymous id */
#define EVENT_TEXT_MAX    16384 /* user agent, referrer */
#define EVENT_ACTIONS_MAX 8     /* actions of an event */
#define EVENT_ACTION_MAX  64

/* The site of an event that names none. */
#define EVENT_SITE_DEFAULT SLICE("default")

/* An address in network byte order.  An IPv4-mapped IPv6 address is written as the IPv4 one. */
struct event_address {
    uint8_t len; /* 0: no address; 4 or 16 */
    uint8_t bytes[16];
};

struct event {
    int64_t at_s;                /* UTC, epoch seconds */
    struct slice site;           /* [a-z0-9][a-z0-9._-]{0,63} */
    struct slice page;           /* 1..2048 bytes of UTF-8 without C0 controls and DEL; see above */
    struct slice user;           /* empty: none; an integer is its canonical decimal text */
    struct slice visitor;        /* an anonymous id; empty: none */
    struct slice agent;          /* user agent; empty: none */
    const struct slice *actions; /* n_actions of them; NULL if none */
    const struct event_value *values; /* n_values of them, no two alike */
    uint8_t n_actions;                /* 0..EVENT_ACTIONS_MAX */
    uint8_t n_values;                 /* 0..EVENT_VALUES_MAX */
    struct event_address address;
    uint32_t index; /* among all events of its request, acceptable or not, from 0 */
};

#endif
