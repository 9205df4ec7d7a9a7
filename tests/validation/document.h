/*
 * document.h: a page of docs/ that a program writes, and that a test keeps up to date.
 */
#ifndef TESTS_VALIDATION_DOCUMENT_H
#define TESTS_VALIDATION_DOCUMENT_H

struct strbuf;

/* "--markdown": writes the file; "--check": compares with it; "--contains": the text is some of it;
 * NULL: prints. Frees the text. Not 0, once it has said why: it could not be written, or is not up
 * to date. */
int document_end(struct strbuf *text, const char *mode, const char *path);

#endif
