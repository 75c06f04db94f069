/* sliced.h - a small number for each user, kept as bitmaps: one for each binary digit.
 *
 * Layer: storage, pure.  A struct sliced belongs to one thread at a time.
 *
 * A day's bitmap has one bit for each user.  Numbers are kept in the same order: slice j is a
 * bitmap with digit j (of weight 2^j) of each user's number.  An addition then treats 64 users with
 * a few instructions (O'Neil and Quass, "Improved Query Performance with Variant Indexes", SIGMOD
 * 1997: bit-sliced indexes).
 *
 *     how many days was each user active?        sliced_add() for each day
 *     who was active lately?                     sliced_countdown() for each day
 *
 * All bitmaps of a call have @n words, a multiple of SLICED_WORDS.
 */
#ifndef STORAGE_SKETCH_SLICED_H
#define STORAGE_SKETCH_SLICED_H

#include <stddef.h>
#include <stdint.h>

#define SLICED_WORDS      8  /* 64 bytes */
#define SLICED_DIGITS_MAX 16 /* numbers below 2^16 */

/* The slices: slice j is at words + j * stride.  The caller owns the words; all zeros: each number
 * is 0. */
struct sliced {
    uint64_t *words;
    size_t stride;   /* words of a slice, at least the n of each call */
    unsigned digits; /* slices: at most SLICED_DIGITS_MAX */
};

/* How many digits the number @most needs. */
unsigned sliced_digits(size_t most);

/* Add 1 to the numbers of the users in @users.  The caller sees to it that no number becomes
 * 2^digits. */
void sliced_add(struct sliced *s, size_t n, const uint64_t *users);

/* Take 1 from all numbers but 0, then set those of the users in @users to @number. */
void sliced_countdown(struct sliced *s, size_t n, const uint64_t *users, size_t number);

/* The users whose number is at least @number, which is at least 1 and below 2^digits. */
void sliced_at_least(const struct sliced *s, size_t n, size_t number, uint64_t *ret_users);

/* For each number from 1 on: add to counts[number] how many users have it. */
void sliced_histogram(const struct sliced *s, size_t n, uint64_t *counts);

#endif
