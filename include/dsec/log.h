/* SPDX-License-Identifier: MIT */
/* Logging: silent until a callback is set. Failures are returned, not logged; this is for what helps to explain them. */
#ifndef DSEC_LOG_H
#define DSEC_LOG_H

#include "types.h"

DSEC_BEGIN_DECLS

enum {
	DSEC_LOG_DEBUG = 1,
	DSEC_LOG_WARNING = 2,
};

/*
 * Receives one line (no newline at its end, valid only during the call). May be called from any thread that is inside
 * a call of the library; it must not call the library back.
 */
typedef void (*dsec_log_fn)(uint32_t level, const char *line, void *data);

/*
 * Sets the process's one log callback, NULL for none. Safe to call at any time from any thread: a call of the library
 * that is under way on another thread may still use the former callback once.
 * fn: the callback or NULL. data: handed to it; must outlive its use.
 */
DSEC_API void dsec_log_set(dsec_log_fn fn, void *data);

DSEC_END_DECLS

#endif
