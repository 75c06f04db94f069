/* streaks.h - days in a row on which a user was active.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_USERS_STREAKS_H
#define HANDLERS_USERS_STREAKS_H

#include <stddef.h>
#include <stdint.h>

/* Find the streaks in @days, @n successive days, each not 0 if the user was active.  *ret_longest
 * is the length of the longest streak, in days.  *ret_current is the length of the streak that ends
 * on the last day, or on the day before it; 0 if there is none. */
void streaks_find(const uint8_t *days, size_t n, size_t *ret_longest, size_t *ret_current);

#endif
