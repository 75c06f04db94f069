/* replay.c - runs a fuzz target over inputs that are kept, without libFuzzer: for `make coverage`.
 *
 *     build/coverage/replay/params tests/fuzz/corpus/params ..     directories; those that are not
 *                                                                  there are passed over
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size + 1); /* an empty file, too */
    if (data == NULL || fread(data, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    (void)fclose(file);
}

int main(int argc, char **argv)
{
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        const struct dirent *entry;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            char path[4096];
            if (entry->d_type == DT_REG &&
                snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name) < (int)sizeof(path)) {
                run_file(path);
                n++;
            }
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
    }
    printf("%zu inputs\n", n);
    return n == 0;
}
