/* step.h - what the steps of a pass have in common: the pass's state, and how a script is run.
 *
 * Layer: storage, private to the files of rollup/ that are named below.  Belongs to the thread that
 * does the pass.
 *
 * Every script of a pass has the keys `state` and `pass` of the partition as its first keys, and
 * the settings as its first argument.  Further keys and arguments are put into pass->keys and
 * pass->args, in order; pass_script() sends them.
 */
#ifndef STORAGE_ROLLUP_STEP_H
#define STORAGE_ROLLUP_STEP_H

#include "storage/rollup/leadership.h"
#include "storage/rollup/list.h"
#include "storage/schema/key.h"

#define PASS_ID 34 /* bytes of a pass's id: the level's letter, 32 hex digits, NUL */

struct pass {
    struct core *core;
    struct session *session;
    unsigned partition;
    const char *tag;
    const struct leadership *leadership;

    struct partition_view view;
    char id[PASS_ID];
    char cur[24];     /* the cursor: "m" and how many items are merged, or "x" and a chunk */
    enum level level; /* the level of the buckets to complete */
    int64_t end_s;    /* when these buckets end, UTC */
    bool again;       /* another process began the pass, or this one before a connection was lost */
    int64_t closed_ms; /* a time before the advance, by Redis's clock; 0: not known */
    int64_t redis_ms;  /* Redis's clock at the last step of the list */
    struct rollup_list list;
    struct buffer keys, args, out;
    size_t n_keys; /* how many keys are in `keys` */
};

/* Is the pass in its last phase, behind the advance? */
static inline bool pass_is_closed(const struct pass *pass)
{
    return pass->cur[0] == 'x';
}

/* Send the command in pass->out, and await its reply.  PASS_DONE: *ret is no error. */
enum pass_result pass_ask(struct pass *pass, const struct reply **ret) MUST_CHECK;

/* Run a script with the keys, and the @n_args arguments, that were put.  PASS_DONE: *ret is no
 * error. */
enum pass_result pass_script(
    struct pass *pass, enum script script, size_t n_args, const struct reply **ret) MUST_CHECK;

/* The same for a script that answers a number, *ret: less than 1 is PASS_VOID. */
enum pass_result pass_run(
    struct pass *pass, enum script script, size_t n_args, int64_t *ret) MUST_CHECK;

/* Put a key of the partition; the key of a bucket; a state as an argument.  If memory is out, the
 * next pass_script() fails. */
void pass_put_key(struct pass *pass, const char *name);
void pass_put_bucket_key(
    struct pass *pass, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page);
void pass_put_state(struct pass *pass, const struct rollup_state *state);

/* Is a bucket of @level that ends at @end_s due, by the state in pass->view and Redis's clock
 * @now_s?  (rollup/pass.c, as the next two.) */
bool pass_is_due(const struct pass *pass, enum level level, int64_t end_s, int64_t now_s);

/* Draw pass->id, for a pass of pass->level. */
void pass_new_id(struct pass *pass);

/* Redis has @state now, and the id @ver in the field `ver`: note both in pass->view and the core's
 * view, so that questions are planned by them. */
void pass_closed(struct pass *pass, const struct rollup_state *state, const char *ver);

/* In place of all phases (rollup/skip.c): if no site has data in the bucket that is due, close that
 * bucket, and the due ones behind it up to the first one with data.  PASS_VOID: there is data, or
 * something was counted meanwhile, and nothing was done. */
enum pass_result pass_skip(struct pass *pass, int64_t now_s) MUST_CHECK;

/* A member of the set `open`: a site has data in the bucket. */
struct open_bucket {
    struct slice site; /* a part of the member */
    const struct zone *zone;
    struct bucket bucket;
};

/* Parse such a @member, whose bytes must outlive @ret (rollup/list_make.c).  False: @member is no
 * bucket of a site. */
bool open_bucket_parse(
    const struct core *core, struct slice member, struct open_bucket *ret) MUST_CHECK;

/* The first phase, and once more before the last one (rollup/list_make.c): list the sites, and
 * unless @sites_only the pages, of the parts into pass->list.  Behind the advance the list also has
 * buckets that ended earlier, which are complete but are still announced. */
enum pass_result pass_list(struct pass *pass, bool sites_only) MUST_CHECK;

/* The second phase (rollup/merge.c): merge what was listed. */
enum pass_result pass_merge(struct pass *pass) MUST_CHECK;

/* The last phase (rollup/expire.c): give the parts their expiry, and end the pass. */
enum pass_result pass_expire(struct pass *pass) MUST_CHECK;

#endif
