#include "tests/lib/gzip.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

char *gzip_member(const char *p, size_t n, size_t *ret_n)
{
    z_stream z = {0};
    cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, n) + 64;
    char *out = malloc(room);
    z.next_in = (z_const Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_n = room - z.avail_out;
    (void)deflateEnd(&z);
    return out;
}
