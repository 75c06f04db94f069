/* random_id.h - a random id, so long that no two are ever equal in practice.
 *
 * Layer: storage, at the bottom.  Thread-safe, after sodium_init().
 */
#ifndef STORAGE_BASE_RANDOM_ID_H
#define STORAGE_BASE_RANDOM_ID_H

#include <stddef.h>

/* Fill @text, of @size bytes, 17 or 33, with random hexadecimal digits and a NUL. */
void random_id(char *text, size_t size);

#endif
