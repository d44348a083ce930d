/* SPDX-License-Identifier: MIT */
/*
 * The null backend: no isolation because nothing runs. For tests of programs that use the library, and to measure what
 * the library itself costs. {"echo", words...} gives the words as stdout, {"exit", "n"} ends with code n, {"signal", "n"}
 * as if killed by signal n; anything else ends with code 0.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../core/core.h"
#include "../util/cleanup.h"
#include "../util/error.h"

struct null {
	_Atomic uint64_t seq;
};

static int null_probe(struct dsec_node *node, struct dsec_error *err)
{
	(void)node;
	(void)err;
	return 0;
}

static int null_create(struct dsec_sandbox *sb, const struct dsec_sandbox_opts *opts, struct dsec_error *err)
{
	struct null *n = calloc(1, sizeof *n);

	(void)opts;
	if (!n)
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a null sandbox");
	dsec_backend_set_data(sb, n);
	return 0;
}

static int null_start(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	(void)sb;
	(void)timeout_ms;
	(void)err;
	return 0;
}

/* A number from 0 to max in decimal, else 0. */
static int number(const char *text, int max)
{
	char *end;
	long v = text ? strtol(text, &end, 10) : 0;

	return text && *text && !*end && v >= 0 && v <= max ? (int)v : 0;
}

static void join(struct dsec__buf *b, const char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		dsec__buf_put(b, words[i], strlen(words[i]));
		dsec__buf_put(b, words[i + 1] ? " " : "\n", 1);
	}
}

static int null_exec(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *opts, int *ret_fd,
		     struct dsec_error *err)
{
	struct null *n = dsec_backend_data(sb);
	struct dsec_frame_result res = { .reason = DSEC_REASON_EXITED, .seq = atomic_fetch_add(&n->seq, 1) + 1 };
	struct dsec__buf out = { 0 };
	struct dsec__chan far;
	int pair[2];

	(void)opts;
	if (strcmp(argv[0], "echo") == 0)
		join(&out, argv + 1);
	else if (strcmp(argv[0], "exit") == 0)
		res.exit_code = number(argv[1], 255);
	else if (strcmp(argv[0], "signal") == 0)
		res.signal = number(argv[1], 64);
	if (res.signal) {
		res.reason = DSEC_REASON_SIGNALED;
		res.exit_code = -1;
	}
	res.stdout_bytes = out.len;
	if (out.failed || out.len > 64 << 10 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		int r = out.failed ? -ENOMEM : out.len > 64 << 10 ? -E2BIG : -errno;

		dsec__buf_done(&out);
		return dsec__fail_retry(err, r, DSEC_STEP_EXEC, "null \"%s\"", argv[0]);
	}
	dsec__chan_init(&far, pair[1]);
	if (out.len)
		dsec__chan_send(&far, DSEC_FRAME_STDOUT, 0, out.data, out.len);
	dsec__chan_send(&far, DSEC_FRAME_RESULT, 0, &res, sizeof res); /* both fit into an empty socket */
	dsec__chan_done(&far);
	dsec__buf_done(&out);
	*ret_fd = pair[0];
	return 0;
}

static int null_signal(struct dsec_sandbox *sb, int fd, int32_t signo, struct dsec_error *err)
{
	(void)sb;
	(void)fd;
	(void)signo;
	return dsec__fail(err, -EPIPE, DSEC_STEP_SIGNAL, "a null command has ended when it begins");
}

static int null_stop(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	(void)sb;
	(void)timeout_ms;
	(void)err;
	return 0;
}

static void null_destroy(struct dsec_sandbox *sb)
{
	free(dsec_backend_data(sb));
}

const struct dsec_backend_ops dsec__backend_null = {
	.sz = sizeof(struct dsec_backend_ops),
	.name = "null",
	.caps = DSEC_CAP_EXEC,
	.probe = null_probe,
	.create = null_create,
	.start = null_start,
	.exec = null_exec,
	.signal = null_signal,
	.stop = null_stop,
	.destroy = null_destroy,
};
