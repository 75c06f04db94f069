/* version.h - the release this tree is, or will be. */
#ifndef SERVICE_OPS_VERSION_H
#define SERVICE_OPS_VERSION_H

#define TALLYD_VERSION "0.1.0"

#endif
