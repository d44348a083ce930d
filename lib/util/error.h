/* SPDX-License-Identifier: MIT */
/* Filling struct dsec_error in one line at the place of the failure. */
#ifndef DSEC__ERROR_H
#define DSEC__ERROR_H

#include <dsec/error.h>
#include <dsec/log.h>

/*
 * Fills *err (NULL is allowed) and returns code, which must be a negative errno value. Does not allocate and does not
 * change errno. `return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mount \"%s\"", path);`
 */
int dsec__fail(struct dsec_error *err, int code, uint32_t step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same, and marks that nothing was started, so that the call may be repeated. */
int dsec__fail_retry(struct dsec_error *err, int code, uint32_t step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Puts "prefix: " before the text of an error that is set; code and step stay. Returns err's code. */
int dsec__wrap(struct dsec_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The log slot (dsec/log.h). Nothing is formatted while no callback is set. errno is kept. */
void dsec__log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
