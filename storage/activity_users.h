/* activity_users.h - who is in a set of days, and on which days one user was there.
 *
 * Layer: storage.  Two operations of a reader thread.
 */
#ifndef STORAGE_ACTIVITY_USERS_H
#define STORAGE_ACTIVITY_USERS_H

#include "storage/reader_op.h"

reader_op_fn active_users_run;
reader_op_fn user_days_run;

#endif
