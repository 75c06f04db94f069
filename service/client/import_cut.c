#include "service/client/import_cut.h"

/* The greatest power of two up to @n; @n > 0. */
static size_t power_of_two(size_t n)
{
    size_t power = 1;
    while (power <= n / 2) {
        power *= 2;
    }
    return power;
}

size_t import_cut(size_t first, size_t count, bool closed)
{
    size_t left = count - first;
    size_t aligned = first & (~first + 1); /* the lowest bit; 0 for 0, where every size fits */
    if (first > 0 && aligned <= left) {
        return aligned;
    }
    return closed ? left : power_of_two(left);
}

size_t import_cut_smaller(size_t n)
{
    return n > 1 ? power_of_two(n - 1) : 0;
}
