/* SPDX-License-Identifier: MIT */
/* Errors and the log slot. Nothing here allocates: it must work when memory is out, and in a child before execve. */
#include <dsec/error.h>
#include <dsec/log.h>
#include <dsec/types.h>

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
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

/* Function and data change together: two words that are published as one pointer to an immutable pair would need a
   place to live for ever, so data is stored first and the function last, and the header allows one late call. */
static _Atomic(dsec_log_fn) log_fn;
static _Atomic(void *) log_data;

void dsec_log_set(dsec_log_fn fn, void *data)
{
	atomic_store(&log_fn, NULL);
	atomic_store(&log_data, data);
	atomic_store(&log_fn, fn);
}

void dsec__log(uint32_t level, const char *fmt, ...)
{
	dsec_log_fn fn = atomic_load(&log_fn);
	int saved = errno;
	char line[512];
	va_list ap;

	if (!fn)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	fn(level, line, atomic_load(&log_data));
	errno = saved;
}
