/* redirect.h - the errors by which a node of a cluster names another one: MOVED and ASK.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 *     MOVED 3999 10.0.0.7:6381     the slot belongs to that node from now on
 *     ASK 3999 10.0.0.7:6381       that node has this key: ask it behind ASKING, this once
 *
 * Both say that nothing was done.
 */
#ifndef STORAGE_CLUSTER_REDIRECT_H
#define STORAGE_CLUSTER_REDIRECT_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/redis/address.h"
#include "storage/redis/reply.h"

enum redirect_kind { REDIRECT_NONE, REDIRECT_MOVED, REDIRECT_ASK };

/* Read the text of an error reply from the node at @asked_host.  An endpoint without a host is at
 * @asked_host, with the port that the error names; an IPv6 address stands without brackets.  *ret:
 * the node; its host is "" if it is not known how to reach the node.  REDIRECT_NONE, with @ret
 * untouched: @error is another error, or malformed. */
enum redirect_kind redirect_parse(
    struct slice error, const char *asked_host, struct redis_address *ret) MUST_CHECK;

/* Does @reply say that the node carries no command out now, and that nothing was done? */
bool redirect_is_later(const struct reply *reply) MUST_CHECK;

#endif
