/* api_description.h - the endpoints that describe the interface: /openapi.yaml and /openapi.json.
 *
 * Layer: service.  The functions are written against handlers/http/http.h, as those of handlers/.
 *
 * Both files are built into the program.  The first is openapi.yaml, byte for byte; the second is
 * what service/ops/yaml_to_json made of that file.  tests/contract/ holds the server to what they
 * say.
 */
#ifndef SERVICE_OPS_API_DESCRIPTION_H
#define SERVICE_OPS_API_DESCRIPTION_H

#include "handlers/http/http.h"

extern const struct route api_description_routes[];
extern const size_t n_api_description_routes;

#endif
