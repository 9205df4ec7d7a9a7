/*
 * result_mesh.h: in a result's JSON, where the mesh lies on the machine, and what is padded for it.
 */
#ifndef SIM_REPORT_RESULT_MESH_H
#define SIM_REPORT_RESULT_MESH_H

struct json_writer;
struct machine;
struct mesh;
struct paddings;

/* "mesh": its axes innermost first, and the parts of machine axes that each lies on. */
void result_mesh_write(struct json_writer *json, const struct machine *machine,
                       const struct mesh *mesh);

/* "padding": of what shares have more than there is, where ranks divide it evenly; often none. */
void result_padding_write(struct json_writer *json, const struct paddings *paddings);

#endif
