/* fold_end.h - how an attempt to count a batch has ended.
 *
 * Layer: storage, pure.
 */
#ifndef STORAGE_FOLD_FOLD_END_H
#define STORAGE_FOLD_FOLD_END_H

enum fold_end {
    FOLD_DONE,
    FOLD_STALE, /* nothing was done: read the entries of a log from the stream */
    FOLD_LOST,  /* the connection must be given up: done or not */
    FOLD_ERR,   /* nothing was done: see *ret_err */
};

#endif
