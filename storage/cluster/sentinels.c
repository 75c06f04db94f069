#include "storage/cluster/sentinels.h"

#define ASKED 2 /* so many Sentinels are asked at once when all is well */

void sentinels_init(struct sentinels *s, const struct redis_url *url)
{
    *s = (struct sentinels){.n = url->n_seeds, .n_seeds = url->n_seeds};
    for (size_t i = 0; i < url->n_seeds; i++) {
        s->addresses[i] = url->seeds[i];
    }
}

size_t sentinels_ask(struct sentinels *s, struct question *ret)
{
    size_t n = !s->known || s->ask_all || s->n < ASKED ? s->n : ASKED;
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct question){
            .kind = QUESTION_SENTINEL, .address = s->addresses[(s->turn + i) % s->n]};
    }
    s->turn += (unsigned)n;
    s->ask_all = false;
    return n;
}

static void add_address(struct sentinels *s, const struct redis_address *address)
{
    for (size_t i = 0; i < s->n; i++) {
        if (redis_address_equal(&s->addresses[i], address)) {
            return;
        }
    }
    if (s->n < REDIS_SEEDS_MAX) {
        s->addresses[s->n++] = *address;
    }
}

/* Take the Sentinels that the view names.  @asked itself stays, too: the URL or another Sentinel
 * has named it. */
static void take_others(
    struct sentinels *s, const struct redis_address *asked, const struct sentinel_view *view)
{
    s->n = s->n_seeds;
    add_address(s, asked);
    for (size_t i = 0; i < view->n_others; i++) {
        add_address(s, &view->others[i]);
    }
}

static bool names(const struct question *q, const struct sentinel_view *wanted)
{
    return q->answered && q->sentinel.known && q->sentinel.config_epoch == wanted->config_epoch &&
           redis_address_equal(&q->sentinel.master, &wanted->master);
}

/* Does a majority of the Sentinels, as the answer @wanted counts them, name the same master? */
static bool is_majority(
    const struct sentinel_view *wanted, const struct question *questions, size_t n)
{
    size_t agree = 0;
    for (size_t i = 0; i < n; i++) {
        agree += names(&questions[i], wanted);
    }
    return 2 * agree > wanted->n_others + 1;
}

size_t sentinels_take(struct sentinels *s, const struct question *questions, size_t n)
{
    const struct question *best = NULL;
    size_t answered = 0;
    s->listen.host[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const struct question *q = &questions[i];
        if (q->answered && q->sentinel.known) {
            s->listen = answered == 0 ? q->address : s->listen;
            answered++;
            if (best == NULL || q->sentinel.config_epoch > best->sentinel.config_epoch) {
                best = q;
            }
        }
    }
    if (best == NULL) {
        return 0;
    }
    const struct sentinel_view *view = &best->sentinel;
    bool same = s->known && view->config_epoch == s->epoch &&
                redis_address_equal(&view->master, &s->master);
    if (!s->known || view->config_epoch > s->epoch || same || is_majority(view, questions, n)) {
        s->known = true;
        s->epoch = view->config_epoch;
        s->master = view->master;
        s->n_replicas = view->n_replicas;
        take_others(s, &best->address, view);
    } else {
        s->ask_all = true;
    }
    return answered;
}

const struct redis_address *sentinels_listen(const struct sentinels *s)
{
    return s->listen.host[0] != '\0' ? &s->listen : NULL;
}
