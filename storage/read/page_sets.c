#include "storage/read/page_sets.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"

/* A page that is looked up among the pages that the list has already. */
struct known {
    const struct slice *pages;
    struct slice page;
};

static bool same_page(const void *context, uint32_t number)
{
    const struct known *known = context;
    return slice_equal(known->pages[number], known->page);
}

/* Add @page unless it is there.  False: no memory. */
static bool add_page(struct index *index, struct slice *pages, size_t *n, struct slice page)
{
    struct known known = {pages, page};
    uint64_t hash = page_hash(SLICE(""), page);
    if (!index_reserve(index)) {
        return false;
    }
    struct index_slot *slot = index_find(index, hash, same_page, &known);
    if (slot->item == INDEX_NONE) {
        index_set(index, slot, hash, (uint32_t)*n);
        pages[(*n)++] = page;
    }
    return true;
}

struct slice *page_set_decode(
    const struct slice *first, size_t n_first, struct slice value, size_t *ret_n)
{
    size_t room = n_first + PAGE_SET_MAX;
    struct slice *pages = malloc(room * sizeof(*pages) + value.n + 1);
    struct index index = {0};
    size_t n = 0;
    bool ok = pages != NULL;
    for (size_t i = 0; ok && i < n_first; i++) {
        ok = add_page(&index, pages, &n, first[i]);
    }
    char *text = ok ? (char *)(pages + room) : NULL;
    if (ok && value.n > 0) {
        memcpy(text, value.p, value.n);
    }
    struct slice rest = {text, value.n};
    while (ok && rest.n > 0 && n < room) {
        struct slice page = slice_until(&rest, '\n');
        if (page.n > 0 && page.n <= EVENT_PAGE_MAX) {
            ok = add_page(&index, pages, &n, page);
        }
    }
    index_release(&index);
    if (!ok) {
        free(pages);
        return NULL;
    }
    *ret_n = n;
    return pages;
}

/* Begin a command about the set @name of @site; @n words follow. */
static struct buffer *put_head(struct pipeline *p, const struct core *core, const char *command,
    struct slice site, struct slice name, size_t n)
{
    struct key key;
    struct buffer *out = pipeline_command(p, 0, command, 2 + n);
    resp_slice(out, key_page_sets(&key, core->partitions.tag[0], site));
    resp_slice(out, name);
    return out;
}

/* Read the set @name, and replace *pages by those pages together with the set's.  *resolved is the
 * new list, which the caller frees.  False: see the pipeline's err. */
static bool take_set(struct pipeline *p, const struct core *core, struct slice site,
    struct slice name, void **resolved, const struct slice **pages, size_t *n_pages)
{
    (void)put_head(p, core, "HGET", site, name, 0);
    const struct reply *reply = pipeline_ask(p, false);
    if (reply == NULL) {
        return false;
    }
    if (reply->type == REPLY_NIL) {
        return pipeline_fail(p, STORAGE_NO_SET);
    }
    if (reply->type != REPLY_TEXT) {
        return pipeline_foreign(p, "a page set");
    }
    struct slice *all = page_set_decode(*pages, *n_pages, reply->text, n_pages);
    if (all == NULL) {
        return pipeline_fail(p, STORAGE_NOMEM);
    }
    *resolved = all;
    *pages = all;
    /* A question without pages would be about the whole site. */
    return *n_pages > 0 || pipeline_fail(p, STORAGE_NO_SET);
}

enum storage_err page_set_resolve(struct reader *reader, struct storage_job *job,
    struct page_set_ref *set, struct slice site, const struct slice **pages, size_t *n_pages,
    bool *ret_lost)
{
    struct pipeline p;
    if (set->name.n == 0 || set->resolved != NULL) {
        return STORAGE_OK;
    }
    pipeline_init(&p, &reader->session, job->deadline_ms);
    (void)take_set(&p, reader->core, site, set->name, &set->resolved, pages, n_pages);
    return pipeline_answer(&p, job, ret_lost);
}

enum storage_err page_set_get_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    struct pipeline p;
    pipeline_init(&p, &reader->session, job->deadline_ms);
    set->n_pages = 0;
    (void)take_set(
        &p, reader->core, set->site, set->name, &set->resolved, &set->pages, &set->n_pages);
    return pipeline_answer(&p, job, ret_lost);
}

/* Send a change, and take the number that Redis answers: of fields added or removed.  The request
 * is over then. */
static enum storage_err page_set_change(
    struct pipeline *p, struct storage_job *job, uint64_t *ret, bool *ret_lost)
{
    const struct reply *reply = pipeline_ask(p, true);
    if (reply != NULL) {
        *ret = (uint64_t)reply_integer(reply, 0);
    }
    enum storage_err err = pipeline_answer(p, job, ret_lost);
    /* The reply to a later try does not tell whether a try that was lost has changed the set. */
    job->u.page_set.sent = job->u.page_set.sent || err == STORAGE_UNKNOWN;
    return err;
}

enum storage_err page_set_put_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    struct buffer value;
    struct pipeline p;
    uint64_t added = 0;
    struct slice *distinct =
        set->resolved != NULL ? set->resolved
                              : page_set_decode(set->pages, set->n_pages, SLICE(""), &set->n_pages);
    if (distinct == NULL) {
        return STORAGE_NOMEM;
    }
    set->resolved = distinct;
    set->pages = distinct;
    buffer_init(&value);
    for (size_t i = 0; i < set->n_pages; i++) {
        buffer_append(&value, set->pages[i].p, set->pages[i].n);
        buffer_append(&value, "\n", 1);
    }
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = put_head(&p, reader->core, "HSET", set->site, set->name, 1);
    resp_word(out, value.p, value.n);
    out->failed = out->failed || value.failed;
    buffer_release(&value);
    enum storage_err err = page_set_change(&p, job, &added, ret_lost);
    set->created = added > 0;
    return err;
}

enum storage_err page_set_delete_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    bool again = set->sent; /* an earlier try that was lost may have deleted the set */
    struct pipeline p;
    uint64_t removed = 0;
    pipeline_init(&p, &reader->session, job->deadline_ms);
    (void)put_head(&p, reader->core, "HDEL", set->site, set->name, 0);
    enum storage_err err = page_set_change(&p, job, &removed, ret_lost);
    return err == STORAGE_OK && removed == 0 && !again ? STORAGE_NO_SET : err;
}
