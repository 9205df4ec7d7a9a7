/*
 * tidy ROOT: reads every text file of the tree and prints what breaks the rules of the house.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/tidy/tidy.h"

enum { PATH_BYTES = 1024 };

struct tree {
    struct tidy tidy;
    const char *root;
    char *layers;
    char *doubles;
    char *names;
    char *foreign;
    struct tidy_headers headers;
    struct tidy_tree words;
    unsigned file_count;
};

/* The text of a file, or NULL; the caller frees it. */
static char *file_read(const char *root, const char *path)
{
    char whole[PATH_BYTES];
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    FILE *file = fopen(whole, "rb");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t size = 0;
    for (size_t got = 1; got > 0; size += got) {
        char *more = realloc(text, size + 65537);
        if (more == NULL) abort();
        text = more;
        got = fread(text + size, 1, 65536, file);
    }
    text[size] = '\0';
    (void)fclose(file);
    return text;
}

static bool is_catalogue_entry(const char *path)
{
    static const char *const folders[] = {"topology/chips/", "workloads/blocks/",
                                          "workloads/collectives/", "workloads/ops/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 &&
            (tidy_ends_with(path, ".c") || tidy_ends_with(path, ".json")))
            return true;
    return false;
}

/* What entries share has a header of its name. */
static bool is_shared(const char *folder, const char *name)
{
    char path[3 * PATH_BYTES];
    struct stat ignored;
    (void)snprintf(path, sizeof path, "%s/%.*s.h", folder, (int)strcspn(name, "."), name);
    return stat(path, &ignored) == 0;
}

/* Each file beside a .def, in the folder of its name, has a line in it or is shared. (That each
 * line has its file is proved by the build.) */
static void check_strays(struct tree *tree, const char *def_path, const char *def)
{
    char folder[PATH_BYTES], whole[2 * PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strlen(def_path) - strlen(".def")),
                   def_path);
    (void)snprintf(whole, sizeof whole, "%s/%s", tree->root, folder);
    DIR *directory = opendir(whole);
    if (directory == NULL) return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (!tidy_ends_with(entry->d_name, ".c") && !tidy_ends_with(entry->d_name, ".json"))
            continue;
        if (!tidy_def_has(def, entry->d_name, strcspn(entry->d_name, ".")) &&
            !is_shared(whole, entry->d_name))
            tidy_complain(&tree->tidy, def_path, 1, "%s/%s has no line here", folder,
                          entry->d_name);
    }
    (void)closedir(directory);
}

static void check_file(struct tree *tree, const char *path)
{
    char *text = file_read(tree->root, path);
    if (text == NULL) {
        tidy_complain(&tree->tidy, path, 1, "cannot be read");
        return;
    }
    bool const is_code = tidy_ends_with(path, ".c") || tidy_ends_with(path, ".h");
    char *code = is_code ? tidy_blank(text) : NULL;
    struct tidy_file const file = {path, text, code};
    tree->file_count++;
    tidy_check_layout(&tree->tidy, &file);
    tidy_check_words(&tree->tidy, &file, tree->doubles);
    tidy_check_comments(&tree->tidy, &file);
    tidy_check_draws(&tree->tidy, &file);
    tidy_check_names(&tree->tidy, &file, tree->names);
    tidy_check_families(&tree->tidy, &file);
    tidy_check_entries(&tree->tidy, &file);
    tidy_check_readers(&tree->tidy, &file);
    tidy_check_figures(&tree->tidy, &file);
    tidy_check_products(&tree->tidy, &file);
    tidy_check_excuse(&tree->tidy, &file, tree->doubles);
    tidy_note_tree(&tree->words, &file);
    if (is_code) {
        tidy_check_includes(&tree->tidy, &file, tree->layers);
        tidy_note_header(&tree->headers, &file);
    }
    if (tidy_ends_with(path, ".def")) {
        tidy_check_order(&tree->tidy, &file);
        check_strays(tree, path, text);
    }
    if (is_catalogue_entry(path)) tidy_check_source(&tree->tidy, &file);
    free(code);
    free(text);
}

static bool is_text(const char *name)
{
    static const char *const endings[] = {".c",    ".h",   ".def", ".build",
                                          ".json", ".txt", ".md",  ".sh"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tidy_ends_with(name, endings[i])) return true;
    return strchr(name, '.') == NULL && strcmp(name, "LICENSE") != 0;
}

/* Files of the fuzz corpus are broken on purpose. */
static bool is_skipped(const char *name)
{
    return name[0] == '.' || strncmp(name, "build", 5) == 0 || strcmp(name, "corpus") == 0;
}

static void check_folder(struct tree *tree, const char *folder)
{
    char whole[2 * PATH_BYTES];
    (void)snprintf(whole, sizeof whole, "%s/%s", tree->root, folder);
    struct dirent **entries = NULL;
    int const count = scandir(whole, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        const char *name = entries[i]->d_name;
        (void)snprintf(path, sizeof path, "%.500s%s%.255s", folder, *folder == '\0' ? "" : "/",
                       name);
        (void)snprintf(whole, sizeof whole, "%s/%s", tree->root, path);
        struct stat status;
        if (stat(whole, &status) == 0) {
            if (S_ISDIR(status.st_mode)) {
                if (!is_skipped(name)) check_folder(tree, path);
            } else if (name[0] != '.' && is_text(name)) {
                check_file(tree, path);
            }
        }
        free(entries[i]);
    }
    free(entries);
}

/* An excuse for a file that is gone. */
static void check_excuses_exist(struct tree *tree, const char *list, const char *excuses)
{
    unsigned number = 1;
    for (const char *line = excuses; *line != '\0'; number++) {
        size_t const length = strcspn(line, ":\n");
        if (line[0] != '#' && length > 0) {
            char path[PATH_BYTES], whole[2 * PATH_BYTES];
            (void)snprintf(path, sizeof path, "%.*s", (int)length, line);
            (void)snprintf(whole, sizeof whole, "%s/%s", tree->root, path);
            struct stat status;
            if (stat(whole, &status) != 0)
                tidy_complain(&tree->tidy, list, number, "%s does not exist", path);
        }
        line += tidy_line_length(line);
        if (*line == '\n') line++;
    }
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 2) {
        (void)fprintf(stderr, "tidy ROOT\n");
        return 1;
    }
    struct tree tree = {.root = arguments[1]};
    tree.layers = file_read(tree.root, "tools/layers.txt");
    tree.doubles = file_read(tree.root, "tests/tidy/doubles.txt");
    tree.names = file_read(tree.root, "tests/tidy/names.txt");
    tree.foreign = file_read(tree.root, "tests/tidy/foreign.txt");
    if (tree.layers == NULL || tree.doubles == NULL || tree.names == NULL || tree.foreign == NULL) {
        (void)fprintf(
            stderr,
            "%s: no tools/layers.txt, or not all of doubles.txt, foreign.txt and names.txt in "
            "tests/tidy\n",
            tree.root);
        return 1;
    }
    check_folder(&tree, "");
    check_excuses_exist(&tree, "tests/tidy/doubles.txt", tree.doubles);
    check_excuses_exist(&tree, "tests/tidy/names.txt", tree.names);
    tidy_check_headers(&tree.tidy, &tree.headers);
    tidy_check_tree(&tree.tidy, &tree.words, tree.foreign);
    if (tree.file_count < 50)
        tidy_complain(&tree.tidy, "tests/tidy/main.c", 1, "looked at %u files only",
                      tree.file_count);
    if (tree.tidy.text != NULL) (void)fputs(tree.tidy.text, stderr);
    (void)printf("%u files, %u complaints\n", tree.file_count, tree.tidy.count);
    int const status = tree.tidy.count == 0 ? 0 : 1;
    tidy_free(&tree.tidy);
    free(tree.layers);
    free(tree.doubles);
    free(tree.names);
    free(tree.foreign);
    tidy_tree_free(&tree.words);
    tidy_headers_free(&tree.headers);
    return status;
}
