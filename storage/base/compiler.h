/* compiler.h - what declarations tell the compiler.
 *
 * Layer: storage, at the bottom: every layer may use it.
 */
#ifndef STORAGE_BASE_COMPILER_H
#define STORAGE_BASE_COMPILER_H

/* Behind a prototype: a caller that ignores the result is a mistake, and does not compile. */
#define MUST_CHECK __attribute__((warn_unused_result))

#endif
