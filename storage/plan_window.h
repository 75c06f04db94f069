/* plan_window.h - planning one window in several partitions: what all questions have in common.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_PLAN_WINDOW_H
#define STORAGE_PLAN_WINDOW_H

#include "storage/cover.h"
#include "storage/storage.h"

/* What to answer where a cover could not be planned. */
enum storage_err plan_error(enum cover_result result);

/* Widen @window until by all @n bases it can be tiled.  False: nothing of it is kept. */
bool plan_widen(const struct cover_basis *bases, size_t n, struct window *window);

#endif
