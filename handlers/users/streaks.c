#include "handlers/users/streaks.h"

void streaks_find(const uint8_t *days, size_t n, size_t *ret_longest, size_t *ret_current)
{
    size_t longest = 0;
    size_t before = 0; /* length of the streak that ends on the day before */
    size_t streak = 0;
    for (size_t i = 0; i < n; i++) {
        before = streak;
        streak = days[i] != 0 ? streak + 1 : 0;
        longest = streak > longest ? streak : longest;
    }
    *ret_longest = longest;
    *ret_current = streak > 0 ? streak : before;
}
