/* version.h - the version of tallyd: the release that this source is, or will be.
 *
 * Layer: service.
 */
#ifndef SERVICE_OPS_VERSION_H
#define SERVICE_OPS_VERSION_H

#define TALLYD_VERSION "0.2.0"

#endif
