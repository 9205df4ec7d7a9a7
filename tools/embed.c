/*
 * embed.c: writes a C file that holds other files as bytes. Runs at build time only.
 *
 *     embed OUTPUT SYMBOL FILE...
 *
 * gives `const struct embed_file SYMBOL[]` and `const unsigned SYMBOL_count`, as declared in
 * sim/base/embed.h: name (without folders and `.json`), bytes (ended by a 0), size. Files keep
 * the order of the command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_bytes(FILE *output, const char *path, unsigned index)
{
    FILE *input = fopen(path, "rb");
    if (input == NULL) {
        perror(path);
        exit(1);
    }
    (void)fprintf(output, "static const char bytes_%u[] = {", index);
    unsigned column = 0;
    for (int byte; (byte = getc(input)) != EOF; column++)
        (void)fprintf(output, "%s%d,", column % 20 == 0 ? "\n" : "",
                      byte > 127 ? byte - 256 : byte);
    (void)fprintf(output, "\n0};\n");
    (void)fclose(input);
}

static void write_name(FILE *output, const char *path)
{
    const char *name = strrchr(path, '/');
    name = name == NULL ? path : name + 1;
    const char *suffix = strstr(name, ".json");
    size_t const length = suffix == NULL ? strlen(name) : (size_t)(suffix - name);
    (void)fprintf(output, "\"%.*s\"", (int)length, name);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 3) return 1;
    FILE *output = fopen(arguments[1], "w");
    if (output == NULL) {
        perror(arguments[1]);
        return 1;
    }
    unsigned const file_count = (unsigned)argument_count - 3;
    (void)fprintf(output, "#include \"sim/base/embed.h\"\n\n");
    for (unsigned i = 0; i < file_count; i++) write_bytes(output, arguments[3 + i], i);
    (void)fprintf(output, "extern const struct embed_file %s[];\nextern const unsigned %s_count;\n",
                  arguments[2], arguments[2]);
    (void)fprintf(output, "const struct embed_file %s[] = {\n", arguments[2]);
    for (unsigned i = 0; i < file_count; i++) {
        (void)fprintf(output, "    {");
        write_name(output, arguments[3 + i]);
        (void)fprintf(output, ", bytes_%u, sizeof bytes_%u - 1},\n", i, i);
    }
    (void)fprintf(output, "    {0, 0, 0},\n};\nconst unsigned %s_count = %u;\n", arguments[2],
                  file_count);
    return fclose(output) == 0 ? 0 : 1;
}
