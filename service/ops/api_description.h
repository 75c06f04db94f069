/* api_description.h - endpoints that describe the interface: /openapi.yaml, /openapi.json.
 *
 * Layer: service, written against the same seam as handlers/.
 * Both forms are built in: the file openapi.yaml byte for byte, and what service/ops/yaml_to_json
 * made of it.  tests/contract/ holds the server to what they say.
 */
#ifndef SERVICE_OPS_API_DESCRIPTION_H
#define SERVICE_OPS_API_DESCRIPTION_H

#include "handlers/http/http.h"

extern const struct route api_description_routes[];
extern const size_t n_api_description_routes;

#endif
