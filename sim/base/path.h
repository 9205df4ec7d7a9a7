/*
 * path.h: whether a text names a file, and the path of a file in the folder of another.
 */
#ifndef SIM_BASE_PATH_H
#define SIM_BASE_PATH_H

#include <stdbool.h>

#include "sim/base/status.h"

struct arena;

/* Whether it ends in ".json". */
bool path_is_json(const char *text);

/* Whether it has a folder or ends in ".json"; names of scenarios, chips and models do neither. */
bool path_is(const char *text);

/* The folder of a path, "/" for the root; NULL where it names none. STATUS_NO_MEMORY. */
enum status path_folder(struct arena *arena, const char *path, const char **ret_folder,
                        struct error *reterr);

/* The path of a file that lies in a folder, so that it is found from anywhere; the path itself if
 * there is none, if `folder` is NULL or if the path is absolute. STATUS_NO_MEMORY. */
enum status path_beside(struct arena *arena, const char *folder, const char *path,
                        const char **ret_path, struct error *reterr);

#endif
