#include "storage/read/page_sets.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/users/bitmaps.h"

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
    for (size_t at = 0; ok && at < value.n && n < room;) {
        const char *end = memchr(text + at, '\n', value.n - at);
        size_t length = end == NULL ? value.n - at : (size_t)(end - (text + at));
        if (length > 0 && length <= EVENT_PAGE_MAX) {
            ok = add_page(&index, pages, &n, (struct slice){text + at, length});
        }
        at += length + 1;
    }
    index_release(&index);
    if (!ok) {
        free(pages);
        return NULL;
    }
    *ret_n = n;
    return pages;
}

/* Begin a command of @n words about the site's sets. */
static void put_head(
    struct talk *talk, const char *command, size_t n, struct slice site, struct slice name)
{
    struct key key;
    key_page_sets(&key, talk->reader->core->partitions.tag[0], site);
    resp_head(&talk->out, n);
    resp_text(&talk->out, command);
    resp_word(&talk->out, key.p, key.n);
    resp_word(&talk->out, name.p, name.n);
}

/* The reply to the one command that was sent.  One that is an error leaves nothing on the
 * connection: it stays, and nothing is tried again. */
static enum storage_err take_reply(struct talk *talk, const struct reply **ret)
{
    bool lost = *talk->ret_lost;
    enum storage_err err = talk_next(talk, ret);
    if (err == STORAGE_OOM || err == STORAGE_REFUSED) {
        *talk->ret_lost = lost;
    }
    return err;
}

/* STORAGE_NO_SET, or *ret_value, which lives until the next reply. */
static enum storage_err read_set(
    struct talk *talk, struct slice site, struct slice name, struct slice *ret_value)
{
    const struct reply *reply = NULL;
    put_head(talk, "HGET", 3, site, name);
    enum storage_err err = talk_send(talk) ? take_reply(talk, &reply) : STORAGE_NOMEM;
    if (err == STORAGE_OK && reply->type == REPLY_NIL) {
        return STORAGE_NO_SET;
    }
    if (err == STORAGE_OK) {
        *ret_value = reply->text;
    }
    return err;
}

static enum storage_err take_set(struct talk *talk, struct slice site, struct slice name,
    void **resolved, const struct slice **pages, size_t *n_pages)
{
    struct slice value;
    enum storage_err err = read_set(talk, site, name, &value);
    if (err != STORAGE_OK) {
        return err;
    }
    struct slice *all = page_set_decode(*pages, *n_pages, value, n_pages);
    if (all == NULL) {
        return STORAGE_NOMEM;
    }
    *resolved = all;
    *pages = all;
    return *n_pages > 0 ? STORAGE_OK : STORAGE_NO_SET; /* no pages would mean the whole site */
}

enum storage_err page_set_resolve(struct reader *reader, struct storage_job *job,
    struct page_set_ref *set, struct slice site, const struct slice **pages, size_t *n_pages,
    bool *ret_lost)
{
    struct talk talk;
    if (set->name.n == 0 || set->resolved != NULL) {
        return STORAGE_OK;
    }
    talk_begin(&talk, reader, job, ret_lost);
    enum storage_err err = take_set(&talk, site, set->name, &set->resolved, pages, n_pages);
    talk_end(&talk);
    return err;
}

enum storage_err page_set_get_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    struct talk talk;
    talk_begin(&talk, reader, job, ret_lost);
    set->n_pages = 0;
    enum storage_err err =
        take_set(&talk, set->site, set->name, &set->resolved, &set->pages, &set->n_pages);
    talk_end(&talk);
    return err;
}

/* Send a change and take its number. */
static enum storage_err change(struct talk *talk, struct page_set_job *set, uint64_t *ret)
{
    if (!talk_send(talk)) {
        return STORAGE_NOMEM;
    }
    const struct reply *reply = NULL;
    bool before = set->sent; /* and lost: what this one is told says nothing of it */
    set->sent = true;
    enum storage_err err = take_reply(talk, &reply);
    if (reply != NULL && reply->type == REPLY_ERROR) {
        set->sent = before;
    }
    if (err == STORAGE_OK) {
        *ret = (uint64_t)reply_integer(reply, 0);
    }
    return err;
}

enum storage_err page_set_put_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    struct buffer value;
    struct talk talk;
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
    talk_begin(&talk, reader, job, ret_lost);
    put_head(&talk, "HSET", 4, set->site, set->name);
    resp_word(&talk.out, value.p, value.n);
    talk.out.failed = talk.out.failed || value.failed;
    enum storage_err err = change(&talk, set, &added);
    set->created = added > 0;
    buffer_release(&value);
    talk_end(&talk);
    return err;
}

enum storage_err page_set_delete_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct page_set_job *set = &job->u.page_set;
    bool again = set->sent; /* a lost one may have done it */
    struct talk talk;
    uint64_t removed = 0;
    talk_begin(&talk, reader, job, ret_lost);
    put_head(&talk, "HDEL", 3, set->site, set->name);
    enum storage_err err = change(&talk, set, &removed);
    talk_end(&talk);
    return err == STORAGE_OK && removed == 0 && !again ? STORAGE_NO_SET : err;
}
