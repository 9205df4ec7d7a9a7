/*
 * result_mesh.h: in a result's JSON, where the mesh lies on the machine.
 */
#ifndef SIM_REPORT_RESULT_MESH_H
#define SIM_REPORT_RESULT_MESH_H

struct json_writer;
struct machine;
struct mesh;

/* "mesh": its axes innermost first, and the parts of machine axes that each lies on. */
void result_mesh_write(struct json_writer *json, const struct machine *machine,
                       const struct mesh *mesh);

#endif
