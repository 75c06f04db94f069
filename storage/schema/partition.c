#include "storage/schema/partition.h"

#include <stdio.h>
#include <xxhash.h>

#include "storage/job/counted_name.h"
#include "storage/job/event.h"

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
    memset(ret->tag, 0, sizeof(ret->tag));
    for (unsigned candidate = 0, left = n; left > 0; candidate++) {
        char text[sizeof(ret->tag[0])];
        int length = snprintf(text, sizeof(text), "%u", candidate);
        unsigned slot = crc16(text, (size_t)length) % CLUSTER_SLOTS;
        /* The last range of slots that begins at or before the slot. */
        unsigned p = ((slot + 1) * n - 1) / CLUSTER_SLOTS;
        if (ret->tag[p][0] == '\0') {
            memcpy(ret->tag[p], text, (size_t)length);
            left--;
        }
    }
}

unsigned partition_slot(const struct partitions *parts, unsigned p)
{
    return crc16(parts->tag[p], strlen(parts->tag[p])) % CLUSTER_SLOTS;
}

/* A partition of visitors lies in the middle of its share of the partitions. */
unsigned visitor_partition_at(const struct partitions *parts, unsigned i)
{
    return (2 * i + 1) * parts->n / (2 * visitor_partitions(parts->n));
}

/* The first partition of visitors that lies at @p or behind it. */
unsigned visitor_partition_number(const struct partitions *parts, unsigned p)
{
    unsigned i = p * visitor_partitions(parts->n) / parts->n; /* that number, or one less */
    return visitor_partition_at(parts, i) < p ? i + 1 : i;
}

bool partition_has_visitors(const struct partitions *parts, unsigned p)
{
    unsigned i = visitor_partition_number(parts, p);
    return i < visitor_partitions(parts->n) && visitor_partition_at(parts, i) == p;
}

unsigned partition_of_visitor(const struct partitions *parts, uint64_t hash)
{
    return visitor_partition_at(
        parts, (unsigned)(((hash >> 32) * visitor_partitions(parts->n)) >> 32));
}

unsigned name_partition(
    const struct partitions *parts, struct slice site, struct slice name, uint64_t hash)
{
    bool at_site = counted_name_at_site(name);
    return partition_of(parts, at_site ? page_hash(site, (struct slice){NULL, 0}) : hash);
}

uint64_t page_hash(struct slice site, struct slice page)
{
    /* A site has no NUL in it, so no two pairs make the same text. */
    char text[EVENT_SITE_MAX + 1 + EVENT_PAGE_MAX];
    if (site.n > EVENT_SITE_MAX || page.n > EVENT_PAGE_MAX) {
        /* No event has such a site or page. */
        return XXH3_64bits_withSeed(page.p, page.n, XXH3_64bits(site.p, site.n));
    }
    memcpy(text, site.p, site.n);
    text[site.n] = '\0';
    if (page.n > 0) {
        memcpy(text + site.n + 1, page.p, page.n);
    }
    return XXH3_64bits(text, site.n + 1 + page.n);
}
