/*
 * show_text.h: machines and meshes in words, for `podsim show`.
 */
#ifndef TOOLS_PODSIM_SHOW_SHOW_TEXT_H
#define TOOLS_PODSIM_SHOW_SHOW_TEXT_H

struct machine;
struct mesh;
struct strbuf;

void show_machine(const struct machine *machine, struct strbuf *text);
void show_mesh(const struct machine *machine, const struct mesh *mesh, struct strbuf *text);

#endif
