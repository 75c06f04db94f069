#include "storage/schema/partition.h"

#include <stdio.h>
#include <xxhash.h>

#define SLOTS 16384u

/* CRC16-XMODEM.  Source: Redis Cluster specification. */
static unsigned crc16(const char *p, size_t n)
{
    unsigned crc = 0;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)(unsigned char)p[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) != 0 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
        }
    }
    return crc;
}

void partitions_make(unsigned n, struct partitions *ret)
{
    ret->n = n;
    for (unsigned p = 0; p < n; p++) {
        unsigned low = p * SLOTS / n;
        unsigned high = (p + 1) * SLOTS / n;
        for (unsigned candidate = 0;; candidate++) {
            int length = snprintf(ret->tag[p], sizeof(ret->tag[p]), "%u", candidate);
            unsigned slot = crc16(ret->tag[p], (size_t)length) % SLOTS;
            if (slot >= low && slot < high) {
                break;
            }
        }
    }
}

unsigned partition_slot(const struct partitions *parts, unsigned p)
{
    return crc16(parts->tag[p], strlen(parts->tag[p])) % SLOTS;
}

uint64_t page_hash(struct slice site, struct slice page)
{
    /* A site has no NUL in it, so no two pairs make the same text. */
    char text[64 + 1 + 2048];
    memcpy(text, site.p, site.n);
    text[site.n] = '\0';
    if (page.n > 0) {
        memcpy(text + site.n + 1, page.p, page.n);
    }
    return XXH3_64bits(text, site.n + 1 + page.n);
}
