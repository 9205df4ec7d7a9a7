#include "sim/base/svg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Okabe and Ito's colours, which the colour-blind can tell apart. */
static const char *const colours[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                      "#f0e442", "#0072b2", "#d55e00", "#999999"};
enum { COLOUR_COUNT = sizeof colours / sizeof *colours };

/* Of lines, where colours come again. */
static const char *const dashes[] = {"none", "7 3", "2 3"};

static const char common[] =
    "text { font: 12px sans-serif; fill: #222 } .title { font-size: 18px; font-weight: bold }\n"
    ".head { font-size: 13px; font-weight: bold } .tiny { font-size: 10px }\n"
    ".mid { text-anchor: middle } .end { text-anchor: end }\n"
    ".on { fill: #111; stroke: #fff; stroke-width: 2.5px; stroke-linejoin: round;\n"
    "  paint-order: stroke }\n"
    ".ink { fill: #222 } .soft { fill: #ddd } .paper { fill: #fff } .faint { fill: #f2f2f2 }\n"
    ".edge { fill: none; stroke: #888 } .axis { stroke: #222 } .grid { stroke: #ccc }\n"
    "path { fill: none } .dashed { stroke-dasharray: 6 4 }\n";

static const char common_dark[] =
    "text { fill: #e6e6e6 } .on { fill: #111; stroke: #fff } .ink { fill: #e6e6e6 }\n"
    ".soft { fill: #444b55 } .paper { fill: #14171c } .faint { fill: #22272f }\n"
    ".edge { stroke: #8a93a0 } .axis { stroke: #e6e6e6 } .grid { stroke: #3a414c }\n";

static void add_escaped(struct strbuf *text, const char *plain)
{
    for (const char *c = plain == NULL ? "" : plain; *c != '\0'; c++) {
        if (*c == '&')
            strbuf_add(text, "&amp;");
        else if (*c == '<')
            strbuf_add(text, "&lt;");
        else if (*c == '>')
            strbuf_add(text, "&gt;");
        else
            strbuf_add_bytes(text, c, 1);
    }
}

/* To a hundredth of a pixel, as short as that is. */
static void add_number(struct strbuf *text, double value)
{
    char digits[32];
    int const length = snprintf(digits, sizeof digits, "%.2f", value);
    int end = length;
    while (end > 0 && digits[end - 1] == '0') end--;
    if (end > 0 && digits[end - 1] == '.') end--;
    digits[end] = '\0';
    strbuf_add(text, "%s", strcmp(digits, "-0") == 0 ? "0" : digits);
}

static void add_attribute(struct strbuf *text, const char *name, double value)
{
    strbuf_add(text, " %s=\"", name);
    add_number(text, value);
    strbuf_add(text, "\"");
}

static void add_series(struct strbuf *text, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < SVG_SERIES_MAX; i++) {
        uint32_t const again = i / COLOUR_COUNT;
        strbuf_add(text, ".l%u { stroke: %s; stroke-dasharray: %s }", i, colours[i % COLOUR_COUNT],
                   dashes[again]);
        if (again == 0)
            strbuf_add(text, " .f%u { fill: %s }\n", i, colours[i]);
        else
            strbuf_add(text, " .f%u { fill: url(#p%u) }\n", i, i);
    }
}

/* Stripes, then dots, of a colour that has come before. */
static void add_patterns(struct strbuf *text, uint32_t count)
{
    for (uint32_t i = COLOUR_COUNT; i < count && i < SVG_SERIES_MAX; i++) {
        strbuf_add(text,
                   "<pattern id=\"p%u\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" class=\"f%u\"/>",
                   i, i % COLOUR_COUNT);
        if (i / COLOUR_COUNT == 1)
            strbuf_add(text, "<rect width=\"2.5\" height=\"7\" class=\"paper\"/></pattern>\n");
        else
            strbuf_add(text, "<circle cx=\"3.5\" cy=\"3.5\" r=\"2\" class=\"paper\"/></pattern>\n");
    }
}

void svg_begin(struct strbuf *text, const struct svg_page *page)
{
    strbuf_add(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    add_attribute(text, "width", page->width);
    add_attribute(text, "height", page->height);
    strbuf_add(text, " viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", page->width,
               page->height);
    add_escaped(text, page->title);
    strbuf_add(text, "</title>\n<style>\n%s", common);
    add_series(text, page->series_count);
    strbuf_add(text, "%s@media (prefers-color-scheme: dark) {\n%s%s}\n</style>\n",
               page->classes == NULL ? "" : page->classes, common_dark,
               page->dark == NULL ? "" : page->dark);
    add_patterns(text, page->series_count);
    strbuf_add(text, "<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n");
}

void svg_end(struct strbuf *text)
{
    strbuf_add(text, "</svg>\n");
}

void svg_words(struct strbuf *text, double x, double y, const char *style, const char *words)
{
    strbuf_add(text, "<text");
    add_attribute(text, "x", x);
    add_attribute(text, "y", y);
    strbuf_add(text, " class=\"%s\">", style);
    add_escaped(text, words);
    strbuf_add(text, "</text>\n");
}

void svg_say(struct strbuf *text, double x, double y, const char *style, const char *format, ...)
{
    struct strbuf words = {0};
    va_list arguments;
    va_start(arguments, format);
    strbuf_add_list(&words, format, arguments);
    va_end(arguments);
    svg_words(text, x, y, style, words.bytes);
    text->failed = text->failed || words.failed;
    strbuf_free(&words);
}

static void add_box(struct strbuf *text, double x, double y, double width, double height,
                    const char *style)
{
    strbuf_add(text, "<rect");
    add_attribute(text, "x", x);
    add_attribute(text, "y", y);
    add_attribute(text, "width", width);
    add_attribute(text, "height", height);
    strbuf_add(text, " class=\"%s\"", style);
}

void svg_box(struct strbuf *text, double x, double y, double width, double height,
             const char *style)
{
    add_box(text, x, y, width, height, style);
    strbuf_add(text, "/>\n");
}

void svg_titled_box(struct strbuf *text, double x, double y, double width, double height,
                    const char *style, const char *title)
{
    add_box(text, x, y, width, height, style);
    strbuf_add(text, "><title>");
    add_escaped(text, title);
    strbuf_add(text, "</title></rect>\n");
}

void svg_line(struct strbuf *text, double x1, double y1, double x2, double y2, const char *style)
{
    strbuf_add(text, "<line");
    add_attribute(text, "x1", x1);
    add_attribute(text, "y1", y1);
    add_attribute(text, "x2", x2);
    add_attribute(text, "y2", y2);
    strbuf_add(text, " class=\"%s\"/>\n", style);
}

void svg_circle(struct strbuf *text, double x, double y, double radius, const char *style)
{
    strbuf_add(text, "<circle");
    add_attribute(text, "cx", x);
    add_attribute(text, "cy", y);
    add_attribute(text, "r", radius);
    strbuf_add(text, " class=\"%s\"/>\n", style);
}

void svg_path_begin(struct strbuf *text, const char *style)
{
    strbuf_add(text, "<path class=\"%s\" d=\"", style);
}

void svg_path_to(struct strbuf *text, double x, double y)
{
    bool const is_first = !text->failed && text->bytes[text->size_bytes - 1] == '"';
    strbuf_add(text, is_first ? "M" : "L");
    add_number(text, x);
    strbuf_add(text, " ");
    add_number(text, y);
}

void svg_path_end(struct strbuf *text)
{
    strbuf_add(text, "\"/>\n");
}

void svg_group_begin(struct strbuf *text, const char *style)
{
    strbuf_add(text, "<g class=\"%s\">\n", style);
}

void svg_group_end(struct strbuf *text)
{
    strbuf_add(text, "</g>\n");
}

const char *svg_fill(char buffer[SVG_CLASS_BYTES], uint32_t series)
{
    (void)snprintf(buffer, SVG_CLASS_BYTES, "f%u", series % SVG_SERIES_MAX);
    return buffer;
}

const char *svg_stroke(char buffer[SVG_CLASS_BYTES], uint32_t series)
{
    (void)snprintf(buffer, SVG_CLASS_BYTES, "l%u", series % SVG_SERIES_MAX);
    return buffer;
}
