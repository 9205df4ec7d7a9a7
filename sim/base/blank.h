/*
 * blank.h: blanks within a line of text: spaces, tabs, and the '\r' of a line that ends in "\r\n".
 */
#ifndef SIM_BASE_BLANK_H
#define SIM_BASE_BLANK_H

#include <stdbool.h>

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

#endif
