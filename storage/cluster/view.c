#include "storage/cluster/view.h"

#include "storage/base/buffer.h"

/* ---- a node of a cluster ---- */

bool cluster_view_take_id(struct cluster_view *view, const struct reply *reply)
{
    return reply->type == REPLY_TEXT && redis_word_copy(reply->text, view->id, sizeof(view->id));
}

bool cluster_view_take_info(struct cluster_view *view, const struct reply *reply)
{
    struct slice state = reply_field(reply, "cluster_state:");
    view->ok = slice_equal(state, SLICE("ok"));
    view->current_epoch = decimal_parse(reply_field(reply, "cluster_current_epoch:"), -1);
    view->my_epoch = decimal_parse(reply_field(reply, "cluster_my_epoch:"), -1);
    return state.p != NULL && view->current_epoch >= 0 && view->my_epoch >= 0;
}

/* ---- a server that may be the master ---- */

bool role_view_take_role(struct role_view *view, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n < 3 || reply->items[0].type != REPLY_TEXT) {
        return false;
    }
    view->is_master = slice_equal(reply->items[0].text, SLICE("master"));
    return true;
}

bool role_view_take_info(struct role_view *view, const struct reply *reply)
{
    return redis_word_copy(reply_field(reply, "run_id:"), view->run_id, sizeof(view->run_id));
}

/* ---- a Sentinel ---- */

/* The value of a field in a flat list of fields and values; NULL if it is not there. */
static const struct reply *field_find(const struct reply *list, const char *name)
{
    for (size_t i = 0; list->type == REPLY_ARRAY && i + 1 < list->n; i += 2) {
        if (list->items[i].type == REPLY_TEXT && slice_equal(list->items[i].text, slice_of(name))) {
            return &list->items[i + 1];
        }
    }
    return NULL;
}

/* Read the fields "ip", which may be a host's name, and "port".  False: there is no address. */
static bool address_take(const struct reply *list, struct redis_address *ret)
{
    const struct reply *host = field_find(list, "ip");
    const struct reply *port = field_find(list, "port");
    int64_t number = port == NULL ? -1 : reply_integer(port, -1);
    if (host == NULL || host->type != REPLY_TEXT || number <= 0 || number > 65535 ||
        !redis_address_set_host(ret, host->text)) {
        return false;
    }
    ret->port = (int)number;
    return true;
}

bool sentinel_view_take_master(struct sentinel_view *view, const struct reply *reply)
{
    const struct reply *epoch = field_find(reply, "config-epoch");
    const struct reply *replicas = field_find(reply, "num-slaves");
    view->known = false;
    if (reply_is_error(reply, "ERR")) {
        return true;
    }
    view->config_epoch = epoch == NULL ? -1 : reply_integer(epoch, -1);
    int64_t n = replicas == NULL ? 0 : reply_integer(replicas, 0);
    view->n_replicas = n > 0 && n <= INT32_MAX ? (unsigned)n : 0;
    view->known = view->config_epoch >= 0 && address_take(reply, &view->master);
    return view->known;
}

void sentinel_view_take_others(struct sentinel_view *view, const struct reply *reply)
{
    view->n_others = 0;
    for (size_t i = 0; reply->type == REPLY_ARRAY && i < reply->n; i++) {
        if (view->n_others < REDIS_SEEDS_MAX &&
            address_take(&reply->items[i], &view->others[view->n_others])) {
            view->n_others++;
        }
    }
}
