/* SPDX-License-Identifier: MIT */
/* Errors and the log slot. Nothing here allocates: it must work when memory is out, and in a child before execve. */
#include <dsec/error.h>
#include <dsec/log.h>
#include <dsec/types.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

_Static_assert(sizeof(struct dsec_error) == 256, "struct dsec_error is frozen at 256 bytes");

/* One line, whatever a path in it holds. */
static void one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = '?';
}

static void fill(struct dsec_error *err, int code, uint32_t step, uint32_t flags, const char *fmt, va_list ap)
{
	int saved = errno;

	if (!err)
		return;
	err->code = code;
	err->step = step;
	err->flags = flags;
	(void)vsnprintf(err->text, sizeof err->text, fmt, ap); /* cut at the end is accepted */
	one_line(err->text);
	errno = saved;
}

int dsec__fail(struct dsec_error *err, int code, uint32_t step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, step, 0, fmt, ap);
	va_end(ap);
	return code;
}

int dsec__fail_retry(struct dsec_error *err, int code, uint32_t step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, code, step, DSEC_ERROR_RETRY, fmt, ap);
	va_end(ap);
	return code;
}

int dsec__wrap(struct dsec_error *err, int code, const char *fmt, ...)
{
	char lower[sizeof err->text];
	va_list ap;
	size_t n, rest;

	if (!err)
		return code;
	memcpy(lower, err->text, sizeof lower);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof err->text - 2, fmt, ap); /* leaves room for ": " */
	va_end(ap);
	n = strlen(err->text);
	memcpy(err->text + n, ": ", 3);
	n += 2;
	rest = strnlen(lower, sizeof err->text - 1 - n); /* the end of the lower text gives way */
	memcpy(err->text + n, lower, rest);
	err->text[n + rest] = 0;
	one_line(err->text);
	return code;
}

const char *dsec_step_name(uint32_t step)
{
	static const char *const names[] = {
		[DSEC_STEP_NONE] = "none",         [DSEC_STEP_OPTIONS] = "options",   [DSEC_STEP_NODE] = "node",
		[DSEC_STEP_LAUNCHER] = "launcher", [DSEC_STEP_KEEPER] = "keeper",     [DSEC_STEP_NAME] = "name",
		[DSEC_STEP_IMAGE] = "image",       [DSEC_STEP_IDS] = "ids",           [DSEC_STEP_CGROUP] = "cgroup",
		[DSEC_STEP_CLONE] = "clone",       [DSEC_STEP_MOUNT] = "mount",       [DSEC_STEP_NETWORK] = "network",
		[DSEC_STEP_SECURITY] = "security", [DSEC_STEP_SPAWN] = "spawn",       [DSEC_STEP_EXEC] = "exec",
		[DSEC_STEP_FILE] = "file",         [DSEC_STEP_SIGNAL] = "signal",     [DSEC_STEP_STOP] = "stop",
		[DSEC_STEP_PROTOCOL] = "protocol", [DSEC_STEP_MEMORY] = "memory",
	};

	if (step >= sizeof names / sizeof names[0])
		return "unknown";
	return names[step];
}

const char *dsec_version(void)
{
	return DSEC_VERSION;
}

/* Function and data change together, so that no function ever sees the data of another. */
static struct {
	dsec_log_fn fn;
	void *data;
} slot;
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER; /* a plain mutex that is never destroyed cannot fail */

void dsec_log_set(dsec_log_fn fn, void *data)
{
	(void)pthread_mutex_lock(&slot_lock);
	slot.fn = fn;
	slot.data = data;
	(void)pthread_mutex_unlock(&slot_lock);
}

void dsec__log(uint32_t level, const char *fmt, ...)
{
	int saved = errno;
	char line[512];
	dsec_log_fn fn;
	void *data;
	va_list ap;

	(void)pthread_mutex_lock(&slot_lock);
	fn = slot.fn;
	data = slot.data;
	(void)pthread_mutex_unlock(&slot_lock);
	if (!fn)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	one_line(line);
	fn(level, line, data);
	errno = saved;
}
