#include "storage/base/random_id.h"

#include <sodium.h>

void random_id(char *text, size_t size)
{
    unsigned char bytes[16];
    randombytes_buf(bytes, size / 2);
    sodium_bin2hex(text, size, bytes, size / 2);
}
