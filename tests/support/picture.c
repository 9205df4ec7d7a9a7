#include "tests/support/picture.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"

/* Of the font's size, over and under the line on which letters stand. */
static const double ascent = 0.76, descent = 0.22;

/* Thousandths of the font's size, of the letters from space to tilde: normal and bold. */
static const uint16_t letter_width[2]['~' - ' ' + 1] = {
    {
        318,  401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337,
        637,  637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531,
        1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863, 749, 788,
        604,  788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500,
        500,  613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612,
        635,  635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
    },
    {
        349,  457, 521, 838, 696, 1002, 873, 307,  458, 458, 523, 838, 380, 416,  380, 366,
        696,  696, 696, 696, 696, 696,  696, 696,  696, 696, 400, 400, 838, 838,  838, 581,
        1000, 774, 763, 734, 831, 684,  684, 821,  837, 373, 373, 775, 638, 996,  837, 851,
        733,  851, 771, 721, 683, 813,  774, 1104, 771, 725, 726, 458, 366, 458,  838, 500,
        500,  675, 716, 593, 716, 679,  436, 716,  712, 343, 343, 666, 343, 1042, 712, 688,
        716,  716, 494, 596, 479, 712,  652, 924,  646, 652, 583, 712, 366, 712,  838,
    },
};

static bool has_class(const char *classes, const char *class)
{
    size_t const length = strlen(class);
    for (const char *at = classes; (at = strstr(at, class)) != NULL; at += length)
        if ((at == classes || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

static double words_width(const char *words, double size, bool bold)
{
    uint32_t width = 0;
    for (const char *at = words; *at != '\0'; at++) {
        unsigned char const letter = (unsigned char)*at;
        if (letter >= ' ' && letter <= '~')
            width += letter_width[bold][letter - ' '];
        else if (letter >= 0xc0)
            width += 1000; /* A letter beyond ASCII, by its first byte. */
    }
    return width * size / 1000;
}

/* Words as they are read, up to the end of the element. */
static void unescape(const char *from, char words[PICTURE_WORDS_BYTES])
{
    static const char *const entities[][2] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
    size_t count = 0;
    while (*from != '<') {
        char letter = *from;
        size_t bytes = 1;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            if (strncmp(from, entities[i][0], strlen(entities[i][0])) == 0) {
                letter = *entities[i][1];
                bytes = strlen(entities[i][0]);
            }
        assert_true(count + 1 < PICTURE_WORDS_BYTES);
        words[count++] = letter;
        from += bytes;
    }
    words[count] = '\0';
}

static void add_text(struct picture *picture, const char *element)
{
    double x = 0, y = 0;
    char class[PICTURE_CLASS_BYTES] = "";
    assert_true(picture->text_count < PICTURE_PARTS_MAX);
    struct picture_text *text = &picture->text[picture->text_count++];
    assert_int_equal(
        sscanf(element, "<text x=\"%lf\" y=\"%lf\" class=\"%23[a-z ]\">", &x, &y, class), 3);
    unescape(strchr(element, '>') + 1, text->words);
    double const size = has_class(class, "title")  ? 18
                        : has_class(class, "head") ? 13
                        : has_class(class, "tiny") ? 10
                                                   : 12;
    bool const bold = has_class(class, "title") || has_class(class, "head");
    double const width = words_width(text->words, size, bold);
    double const left = has_class(class, "mid")   ? x - width / 2
                        : has_class(class, "end") ? x - width
                                                  : x;
    text->box = (struct picture_box){left, y - ascent * size, left + width, y + descent * size, ""};
    memcpy(text->box.class, class, sizeof class);
}

static void add_line(struct picture *picture, struct picture_line line)
{
    assert_true(picture->line_count < PICTURE_PARTS_MAX);
    picture->line[picture->line_count++] = line;
}

static void add_path(struct picture *picture, const char *element)
{
    struct picture_line line = {0};
    int used = 0;
    assert_int_equal(sscanf(element, "<path class=\"%23[a-z ]\" d=\"M%lf %lf%n", line.class,
                            &line.x1, &line.y1, &used),
                     3);
    for (const char *at = element + used; *at == 'L'; at += used) {
        assert_int_equal(sscanf(at, "L%lf %lf%n", &line.x2, &line.y2, &used), 2);
        add_line(picture, line);
        line.x1 = line.x2;
        line.y1 = line.y2;
    }
}

void picture_read(struct picture *picture, const char *svg)
{
    const char *page = strstr(svg, "viewBox=\"");
    memset(picture, 0, sizeof *picture);
    assert_non_null(page);
    assert_int_equal(sscanf(page, "viewBox=\"0 0 %lf %lf", &picture->width, &picture->height), 2);
    for (const char *at = svg; (at = strchr(at, '<')) != NULL; at++) {
        struct picture_line line = {0};
        struct picture_box box = {0};
        if (strncmp(at, "<text ", 6) == 0) add_text(picture, at);
        if (strncmp(at, "<path ", 6) == 0) add_path(picture, at);
        if (sscanf(at, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\" class=\"%23[a-z ]",
                   &line.x1, &line.y1, &line.x2, &line.y2, line.class) == 5)
            add_line(picture, line);
        if (sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" class=\"%23[a-z ]",
                   &box.left, &box.top, &box.right, &box.bottom, box.class) != 5)
            continue;
        assert_true(picture->box_count < PICTURE_PARTS_MAX);
        box.right += box.left;
        box.bottom += box.top;
        picture->box[picture->box_count++] = box;
    }
}

/* Cuts the part [*from, *to] of a line to what lies between two bounds of one coordinate. */
static bool clip(double start, double way, double low, double high, double *from, double *to)
{
    if (way == 0) return start >= low && start <= high;
    double const one = (low - start) / way, other = (high - start) / way;
    double const first = one < other ? one : other, last = one < other ? other : one;
    *from = first > *from ? first : *from;
    *to = last < *to ? last : *to;
    return *from <= *to;
}

bool picture_crosses(const struct picture_line *line, const struct picture_box *box)
{
    double from = 0, to = 1;
    return clip(line->x1, line->x2 - line->x1, box->left, box->right, &from, &to) &&
           clip(line->y1, line->y2 - line->y1, box->top, box->bottom, &from, &to);
}

static bool overlaps(const struct picture_box *a, const struct picture_box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool contains(const struct picture_box *outer, const struct picture_box *inner)
{
    return inner->left >= outer->left && inner->right <= outer->right && inner->top >= outer->top &&
           inner->bottom <= outer->bottom;
}

/* Prints what is wrong with a text, if anything is. */
static bool text_is_readable(const struct picture *picture, const char *name, uint32_t index)
{
    const struct picture_text *text = &picture->text[index];
    struct picture_box const page = {0, 0, picture->width, picture->height, ""};
    const char *fault = contains(&page, &text->box) ? NULL : "leaves the page", *of = "";
    for (uint32_t i = 0; i < picture->line_count; i++)
        if (picture_crosses(&picture->line[i], &text->box)) {
            fault = "is crossed by a line of the class ";
            of = picture->line[i].class;
        }
    for (uint32_t i = 0; i < picture->box_count; i++)
        if (overlaps(&picture->box[i], &text->box) && !contains(&picture->box[i], &text->box)) {
            fault = "crosses the edge of a box of the class ";
            of = picture->box[i].class;
        }
    for (uint32_t i = 0; i < index; i++)
        if (overlaps(&picture->text[i].box, &text->box)) {
            fault = "lies over ";
            of = picture->text[i].words;
        }
    if (fault != NULL) print_error("%s: \"%s\" %s%s\n", name, text->words, fault, of);
    return fault == NULL;
}

bool picture_is_readable(const struct picture *picture, const char *name)
{
    bool readable = true;
    for (uint32_t i = 0; i < picture->text_count; i++)
        readable = text_is_readable(picture, name, i) && readable;
    return readable;
}

bool picture_keeps_out(const struct picture *picture, const char *name, const char *class)
{
    for (uint32_t i = 0; i < picture->box_count; i++) {
        struct picture_box inside = picture->box[i];
        if (!has_class(inside.class, class)) continue;
        inside.left++, inside.right--, inside.top++, inside.bottom--;
        for (uint32_t k = 0; k < picture->line_count; k++) {
            if (!picture_crosses(&picture->line[k], &inside)) continue;
            print_error("%s: a line of the class %s crosses a box of the class %s\n", name,
                        picture->line[k].class, class);
            return false;
        }
    }
    return true;
}
