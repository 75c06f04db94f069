#include "handlers/limit/limit_json.h"

#include <math.h>
#include <stdlib.h>

#include "handlers/text/check.h"
#include "handlers/text/json_scan.h"

_Static_assert(NAME_MAX_BYTES <= LIMIT_POLICY_MAX, "the name of a policy is a name");

#define DEPTH_MAX   4
#define NUMBER_TEXT 64
#define WHOLE       "must be a whole number"

enum member {
    MEMBER_KEY,
    MEMBER_POLICY,
    MEMBER_ALGORITHM,
    MEMBER_LIMIT,
    MEMBER_PERIOD,
    MEMBER_BURST,
    MEMBER_COST,
    MEMBERS,
};

static const struct {
    const char *name, *pointer;
} members[MEMBERS] = {
    [MEMBER_KEY] = {"key", "/key"},
    [MEMBER_POLICY] = {"policy", "/policy"},
    [MEMBER_ALGORITHM] = {"algorithm", "/algorithm"},
    [MEMBER_LIMIT] = {"limit", "/limit"},
    [MEMBER_PERIOD] = {"period_s", "/period_s"},
    [MEMBER_BURST] = {"burst", "/burst"},
    [MEMBER_COST] = {"cost", "/cost"},
};

struct limit_reader {
    struct json_scan scan;
    struct limit_question *question;
    struct limit_json_fault *fault; /* the first fault; others are forgotten */
    unsigned seen;                  /* bits 1 << enum member */
};

static void refuse(struct limit_reader *r, const char *pointer, const char *detail)
{
    if (r->fault->detail == NULL) {
        r->fault->pointer = pointer;
        r->fault->detail = detail;
    }
}

/* ---- values; false: the body is no JSON ---- */

static bool read_text(struct limit_reader *r, enum member member, struct slice *ret)
{
    if (json_scan_peek(&r->scan) != SCAN_STRING) {
        refuse(r, members[member].pointer, "must be a string");
        return json_scan_skip(&r->scan);
    }
    r->scan.fault = NULL;
    bool ok = json_scan_string(&r->scan, ret);
    if (r->scan.fault != NULL) {
        refuse(r, members[member].pointer, r->scan.fault);
    }
    return ok;
}

static bool read_algorithm(struct limit_reader *r)
{
    struct slice text = {NULL, 0};
    bool ok = read_text(r, MEMBER_ALGORITHM, &text);
    if (slice_equal(text, SLICE("sliding"))) {
        r->question->limit.algorithm = LIMIT_SLIDING;
    } else if (!slice_equal(text, SLICE("funnel"))) {
        refuse(r, members[MEMBER_ALGORITHM].pointer, "must be funnel or sliding");
    }
    return ok;
}

static bool read_number(struct limit_reader *r, enum member member, struct json_number *ret)
{
    *ret = (struct json_number){.text = {NULL, 0}};
    if (json_scan_peek(&r->scan) != SCAN_NUMBER) {
        refuse(r, members[member].pointer, "must be a number");
        return json_scan_skip(&r->scan);
    }
    return json_scan_number(&r->scan, ret);
}

/* Read a whole number.  A negative number becomes -1, and one that is too large becomes INT64_MAX:
 * both are refused later, for their size. */
static bool read_whole(struct limit_reader *r, enum member member, int64_t *ret)
{
    struct json_number number;
    bool ok = read_number(r, member, &number);
    if (!ok || number.text.n == 0) {
        return ok;
    }
    if (!number.integer) {
        refuse(r, members[member].pointer, WHOLE);
        return true;
    }
    *ret = number.negative ? -1 : json_number_cut(&number);
    return true;
}

static bool read_period(struct limit_reader *r)
{
    struct json_number number;
    char text[NUMBER_TEXT];
    bool ok = read_number(r, MEMBER_PERIOD, &number);
    if (!ok || number.text.n == 0) {
        return ok;
    }
    if (number.text.n >= sizeof(text)) {
        refuse(r, members[MEMBER_PERIOD].pointer, "has too many digits");
        return true;
    }
    memcpy(text, number.text.p, number.text.n);
    text[number.text.n] = '\0';
    double us = strtod(text, NULL) * 1e6;
    r->question->limit.period_us = us > (double)LIMIT_PERIOD_MAX_US ? INT64_MAX
                                   : us < 0                         ? -1
                                                                    : (int64_t)llround(us);
    return true;
}

static bool read_value(struct limit_reader *r, enum member member)
{
    struct limit_question *q = r->question;
    switch (member) {
    case MEMBER_KEY:
        return read_text(r, member, &q->key);
    case MEMBER_POLICY:
        return read_text(r, member, &q->policy);
    case MEMBER_ALGORITHM:
        return read_algorithm(r);
    case MEMBER_LIMIT:
        return read_whole(r, member, &q->limit.count);
    case MEMBER_PERIOD:
        return read_period(r);
    case MEMBER_BURST:
        return read_whole(r, member, &q->limit.burst);
    case MEMBER_COST:
        return read_whole(r, member, &q->cost);
    case MEMBERS:
        break;
    }
    return false;
}

static bool read_member(struct limit_reader *r)
{
    struct slice name;
    if (!json_scan_name(&r->scan, &name)) {
        return false;
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (!slice_equal(name, slice_of(members[i].name))) {
            continue;
        }
        if ((r->seen >> i & 1) != 0) {
            refuse(r, members[i].pointer, "is given twice");
        }
        r->seen |= 1u << i;
        return read_value(r, (enum member)i);
    }
    refuse(r, "",
        "has a member that is not known: there are key, policy, algorithm, limit, "
        "period_s, burst and cost");
    return json_scan_skip(&r->scan);
}

/* ---- what the object says as a whole ---- */

static void check_limit(struct limit_reader *r)
{
    static const enum member needed[] = {MEMBER_ALGORITHM, MEMBER_LIMIT, MEMBER_PERIOD};
    static const enum member of_part[] = {[LIMIT_PART_COUNT] = MEMBER_LIMIT,
        [LIMIT_PART_PERIOD] = MEMBER_PERIOD,
        [LIMIT_PART_BURST] = MEMBER_BURST};
    enum limit_part part;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if ((r->seen >> needed[i] & 1) == 0) {
            refuse(r, members[needed[i]].pointer, "is required, unless a policy is named");
        }
    }
    if (r->fault->detail == NULL) {
        const char *fault = limit_check(&r->question->limit, &part);
        if (fault != NULL) {
            refuse(r, members[of_part[part]].pointer, fault);
        }
    }
}

static void check(struct limit_reader *r)
{
    const struct limit_question *q = r->question;
    if (q->key.n == 0) {
        refuse(r, members[MEMBER_KEY].pointer, "is required: 1 to 256 bytes");
    } else if (q->key.n > LIMIT_KEY_MAX) {
        refuse(r, members[MEMBER_KEY].pointer, "must be of 1 to 256 bytes");
    }
    if (q->cost < 0 || q->cost > LIMIT_COST_MAX) {
        refuse(r, members[MEMBER_COST].pointer, "must be from 0 to 1000000000000");
    }
    if ((r->seen >> MEMBER_POLICY & 1) == 0) {
        check_limit(r);
        return;
    }
    if (!name_valid(q->policy)) {
        refuse(r, members[MEMBER_POLICY].pointer, "is no name of a policy");
    }
    for (unsigned i = MEMBER_ALGORITHM; i <= MEMBER_BURST; i++) {
        if ((r->seen >> i & 1) != 0) {
            refuse(r, members[i].pointer, "must not stand beside a policy, which says it");
        }
    }
}

enum limit_json_result limit_json_decode(
    char *body, size_t n, struct limit_question *ret, struct limit_json_fault *ret_fault)
{
    struct limit_reader r = {.question = ret, .fault = ret_fault};
    enum scan_step step = SCAN_FAILED;
    *ret = (struct limit_question){.cost = 1};
    *ret_fault = (struct limit_json_fault){.pointer = ""};
    json_scan_init(&r.scan, body, n, DEPTH_MAX);
    if (json_scan_peek(&r.scan) == SCAN_OBJECT) {
        step = json_scan_open(&r.scan, '}');
    } else if (json_scan_skip(&r.scan)) { /* the body is JSON, but no object */
        refuse(&r, "", "must be a JSON object");
        step = SCAN_CLOSED;
    }
    while (step == SCAN_ITEM && read_member(&r)) {
        step = json_scan_next(&r.scan, '}');
    }
    if (step != SCAN_CLOSED || !json_scan_finish(&r.scan)) {
        json_scan_position(&r.scan, &ret_fault->line, &ret_fault->column);
        ret_fault->detail = r.scan.error;
        return LIMIT_JSON_MALFORMED;
    }
    check(&r);
    return ret_fault->detail == NULL ? LIMIT_JSON_OK : LIMIT_JSON_UNACCEPTABLE;
}
