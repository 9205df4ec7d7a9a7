#include <ctype.h>
#include <string.h>

#include "tests/tidy/tidy.h"

/* Words with which no phrase ends or begins, but the middle of one. */
static const char *const joints[] = {"and", "or", "but"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '*';
}

/* Whether a word of a comment is a joint, of any case: "And" begins the middle of a phrase, too. */
static bool is_joint(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof joints / sizeof *joints; i++)
        if (strlen(joints[i]) == length && tolower((unsigned char)*word) == *joints[i] &&
            memcmp(word + 1, joints[i] + 1, length - 1) == 0)
            return true;
    return false;
}

/* Whether what stands between the ends of a comment is a part of a sentence. */
static bool is_torn(const char *begin, const char *end)
{
    while (begin < end && is_blank(*begin)) begin++;
    while (end > begin && is_blank(end[-1])) end--;
    if (begin == end) return false;
    const char *after = begin, *last = end;
    while (after < end && tidy_is_word(*after)) after++;
    while (last > begin && tidy_is_word(last[-1])) last--;
    return end[-1] == ',' || end[-1] == ';' || is_joint(begin, (size_t)(after - begin)) ||
           is_joint(last, (size_t)(end - last));
}

void tidy_check_comments(struct tidy *tidy, const struct tidy_file *file)
{
    if (!tidy_ends_with(file->path, ".h") || strncmp(file->path, "tests/", 6) == 0) return;
    for (const char *at = file->text; (at = strstr(at, "/*")) != NULL;) {
        const char *const end = strstr(at + 2, "*/");
        if (end == NULL) return;
        if (is_torn(at + 2, end))
            tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                          "a comment of a header begins or ends in the middle of a sentence");
        at = end + 2;
    }
}
