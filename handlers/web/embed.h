/* embed.h - files that are built into the program.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * EMBED(name, "file") makes the file a constant of the object that EMBED stands in: its bytes lie
 * from text_of_name up to end_of_name, with a NUL behind.  The assembler looks for the file in the
 * top of the tree, where the build runs, and in the folders that -Wa,-I names.  The Makefile says
 * on which files the object depends.
 */
#ifndef HANDLERS_WEB_EMBED_H
#define HANDLERS_WEB_EMBED_H

#define EMBED(name, file)                                                                          \
    extern const char text_of_##name[], end_of_##name[];                                           \
    __asm__(".section .rodata\n"                                                                   \
            ".global text_of_" #name "\n"                                                          \
            "text_of_" #name ":\n"                                                                 \
            ".incbin \"" file "\"\n"                                                               \
            ".global end_of_" #name "\n"                                                           \
            "end_of_" #name ":\n"                                                                  \
            ".byte 0\n"                                                                            \
            ".previous\n")

#endif
