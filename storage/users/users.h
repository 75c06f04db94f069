/* users.h - which users were active in a set of days, and on which days one user was.
 *
 * Layer: storage.  Two operations of a reader thread.
 */
#ifndef STORAGE_USERS_USERS_H
#define STORAGE_USERS_USERS_H

#include "storage/read/operation.h"

/* STORAGE_ACTIVE_USERS and STORAGE_USER_DAYS. */
reader_op_fn active_users_run;
reader_op_fn user_days_run;

#endif
