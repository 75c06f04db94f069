/* name.h - names that users give to what they keep: filters, page sets, policies.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_NAME_H
#define HANDLERS_TEXT_NAME_H

#include <stdbool.h>

#include "storage/base/slice.h"

#define NAME_DETAIL "must be [A-Za-z0-9._-]{1,64}"

bool name_valid(struct slice name);

#endif
