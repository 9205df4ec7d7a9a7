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

/* Words with which a comment leans on the one above, or on a name that stands elsewhere. */
static const char *const leans[] = {"As", "It", "Its", "Same", "The same"};
/* "Of a matmul." and "Of the whole chip." have no subject. */
enum { OF_WORDS_MAX = 4 };

/* Whether the comment stands behind a field or an enumerator on its line. */
static bool is_of_member(const char *text, const char *comment)
{
    const char *end = comment;
    while (end > text && end[-1] == ' ') end--;
    if (end == text || (end[-1] != ';' && end[-1] != ',')) return false;
    for (const char *at = end; at > text && at[-1] != '\n'; at--)
        if (at[-1] == '(') return false;
    return true;
}

/* Words of the first sentence, or of what a ";" ends; many where a ":" says more. */
static unsigned words_of(const char *begin, const char *end)
{
    unsigned count = 0;
    for (const char *at = begin; at < end; at++) {
        bool const stops = at[1] == ' ' || at[1] == '\n';
        if (*at == ':' && stops) return OF_WORDS_MAX + 1;
        if ((*at == '.' || *at == ';') && stops) break;
        count += !is_blank(*at) && (at == begin || is_blank(at[-1]));
    }
    return count;
}

/* Whether a comment has no subject of its own. */
static bool is_leaning(const char *begin, const char *end)
{
    while (begin < end && is_blank(*begin)) begin++;
    for (size_t i = 0; i < sizeof leans / sizeof *leans; i++) {
        size_t const length = strlen(leans[i]);
        if (strncmp(begin, leans[i], length) == 0 && !tidy_is_word(begin[length])) return true;
    }
    return strncmp(begin, "Of ", 3) == 0 && words_of(begin, end) <= OF_WORDS_MAX;
}

/* Whether a comment begins with a likeness to the one above: "The same of ranks". */
static bool is_likeness(const char *begin, const char *end)
{
    static const char *const likeness[] = {"The same", "Same"};
    while (begin < end && is_blank(*begin)) begin++;
    for (size_t i = 0; i < sizeof likeness / sizeof *likeness; i++) {
        size_t const length = strlen(likeness[i]);
        if (strncmp(begin, likeness[i], length) == 0 && !tidy_is_word(begin[length])) return true;
    }
    return false;
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
        if (is_of_member(file->text, at) && is_leaning(at + 2, end))
            tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                          "the comment of a field or enumerator has no subject of its own");
        else if (is_likeness(at + 2, end))
            tidy_complain(tidy, file->path, tidy_line_of(file->text, at),
                          "a comment of a header says what the one above says: it has a subject of "
                          "its own");
        at = end + 2;
    }
}
