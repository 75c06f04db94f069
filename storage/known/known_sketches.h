/* known_sketches.h - what sketches are known to hold, so that nothing is added twice.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (fold/lanes.h).
 *
 * Most of a site's events go to few sketches: the site's own of this minute, those of its values,
 * and those of the pages that are looked at most.  After some thousand visitors hardly any further
 * one raises a register, but Redis would have to read each of them all the same, and to write it to
 * its file.  So the registers of the sketches that get most are remembered, as far as this thread
 * has written to them.  The register in Redis is as high or higher, so what would not raise a
 * remembered one is left out.
 *
 * The memory is bounded: a sketch that gets more takes the place of one that gets less, or of one
 * that nothing was written to for some seconds.
 */
#ifndef STORAGE_KNOWN_KNOWN_SKETCHES_H
#define STORAGE_KNOWN_KNOWN_SKETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/sketch/hll.h"

#define KNOWN_SKETCHES     16 /* so many are remembered; each gets 16 KB when it is needed */
#define KNOWN_SKETCHES_FEW 64 /* a sketch that gets fewer elements at a time gets no place */

/* Zeroed it is empty. */
struct known_sketches {
    uint64_t hashes[KNOWN_SKETCHES];      /* of the sketches' keys; 0: the place is free */
    size_t elements[KNOWN_SKETCHES];      /* how many elements came the last time */
    int64_t used_ms[KNOWN_SKETCHES];      /* when they came, by Redis's clock */
    struct hll *sketches[KNOWN_SKETCHES]; /* owned */
};

void known_sketches_release(struct known_sketches *known);
void known_sketches_forget(struct known_sketches *known);

/* What is known of the sketch whose key has @hash; NULL: nothing. */
const struct hll *known_sketches_find(const struct known_sketches *known, uint64_t hash);

/* The same sketch, to be written to; it gets a place if it is worth one: @elements came for it at
 * @now_ms (Redis's clock).  NULL: it is not worth a place, or memory is short. */
struct hll *known_sketches_take(
    struct known_sketches *known, uint64_t hash, size_t elements, int64_t now_ms);

#endif
