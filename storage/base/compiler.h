/* compiler.h - what a declaration tells the compiler beside its type.
 *
 * Layer: storage, at the bottom: every layer may use it.
 */
#ifndef STORAGE_BASE_COMPILER_H
#define STORAGE_BASE_COMPILER_H

/* Stands behind a prototype: to ignore the result is a mistake, which does not compile.
 * A cast to (void) does not silence gcc, so a function whose result may be ignored goes without. */
#define MUST_CHECK __attribute__((warn_unused_result))

#endif
