/* users.h - who is in a set of days, and on which days one user was there.
 *
 * Layer: storage.  Two operations of a reader thread.
 */
#ifndef STORAGE_USERS_USERS_H
#define STORAGE_USERS_USERS_H

#include "storage/read/operation.h"

reader_op_fn active_users_run;
reader_op_fn user_days_run;

#endif
