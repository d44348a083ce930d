/* SPDX-License-Identifier: MIT */
/*
 * Commands: the library's half of an exec channel (dsec/backend.h). A handle holds what has arrived and was not taken,
 * and what of stdin could not be sent yet. Credit bounds the latter on the other side: a command that does not read
 * holds up its own input and nothing else.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "core.h"

#define PIECE (64u << 10)
#define HELD_MAX (1u << 20) /* bytes of a stream that wait here for dsec_exec_read(); beyond, the keeper holds back */

struct dsec_exec {
	struct dsec_sandbox *sandbox;
	struct dsec__chan chan;
	pthread_mutex_t send_lock; /* frames of stdin, and signals of another thread */
	uint64_t flags;
	_Atomic bool ended; /* asked by dsec_exec_signal() on another thread */
	bool lost;
	struct dsec_frame_result result;
	struct dsec_error error;      /* code 0 unless it was not executed */
	struct dsec__buf out[2];
	size_t out_used[2];           /* bytes of them that were taken */
	const uint8_t *input;         /* of the caller's memory in dsec_sandbox_exec(), else input_copy */
	size_t input_left;
	struct dsec__buf input_copy;
	uint64_t credit;
	bool input_closed;
};

/* Frames leave whole or not at all: -EAGAIN when not even the first byte fits. Serialised against signals. */
static int send_frame(struct dsec_exec *e, uint16_t type, const void *payload, size_t n)
{
	int r;

	(void)pthread_mutex_lock(&e->send_lock);
	r = dsec__frame_send(e->chan.fd, type, payload, n, false);
	(void)pthread_mutex_unlock(&e->send_lock);
	return r;
}

/* Sends what credit allows of the input that was given at the start, then its end. */
static void input_pump(struct dsec_exec *e)
{
	while (e->input_left && e->credit && !e->ended) {
		size_t n = e->input_left < PIECE ? e->input_left : PIECE;

		n = n < e->credit ? n : e->credit;
		if (send_frame(e, DSEC_FRAME_STDIN, e->input, n) < 0)
			return; /* full: the next call goes on; gone: reading shows it */
		e->input += n;
		e->input_left -= n;
		e->credit -= n;
	}
	if (!e->input_left && !e->input_closed && !(e->flags & DSEC_EXEC_STDIN) && !e->ended)
		e->input_closed = send_frame(e, DSEC_FRAME_STDIN, NULL, 0) == 0;
}

static size_t held(const struct dsec_exec *e)
{
	return e->out[0].len - e->out_used[0] + e->out[1].len - e->out_used[1];
}

static void on_frame(struct dsec_exec *e, const struct dsec_frame *f, const uint8_t *payload)
{
	uint32_t credit;

	switch (f->type) {
	case DSEC_FRAME_STDOUT:
	case DSEC_FRAME_STDERR:
		dsec__buf_put(&e->out[f->type == DSEC_FRAME_STDERR], payload, f->len);
		break;
	case DSEC_FRAME_CREDIT:
		if (f->len == sizeof credit) {
			memcpy(&credit, payload, sizeof credit);
			e->credit += credit;
		}
		break;
	case DSEC_FRAME_RESULT:
		if (f->len == sizeof e->result) {
			memcpy(&e->result, payload, sizeof e->result);
			e->ended = true;
		}
		break;
	case DSEC_FRAME_FAILED:
		(void)dsec__frame_error(f, payload, &e->error);
		e->ended = true;
		break;
	default:
		break; /* from a newer backend: not for us */
	}
}

/* Takes in what has arrived, unless the caller has not taken what came before. Never blocks. */
static void take_in(struct dsec_exec *e)
{
	const uint8_t *payload;
	struct dsec_frame f;

	if (e->ended || e->lost)
		return;
	if (!(e->flags & DSEC_EXEC_STREAM) || held(e) < HELD_MAX)
		dsec__chan_fill(&e->chan);
	for (int i = 0; i < 2; i++) {
		if (e->out_used[i])
			dsec__buf_drop_front(&e->out[i], e->out_used[i]);
		e->out_used[i] = 0;
	}
	while (!e->ended && dsec__chan_next(&e->chan, &f, &payload))
		on_frame(e, &f, payload);
	if (!e->ended && (e->chan.eof || e->chan.broken || e->out[0].failed || e->out[1].failed))
		e->lost = true;
	if (!e->ended && !e->lost)
		input_pump(e);
}

static int lost(const struct dsec_exec *e, struct dsec_error *err)
{
	if (e->out[0].failed || e->out[1].failed || e->chan.in.failed)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "output of a command");
	return dsec__fail(err, -EPIPE, DSEC_STEP_KEEPER,
			  "the keeper of \"%s\" is gone: the outcome of the command is unknown", e->sandbox->id);
}

static int exec_check(const struct dsec_exec *e, struct dsec_error *err)
{
	if (!e)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "exec: is NULL");
	return dsec__owner_check(e->sandbox->node, err);
}

static int check_call(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *opts,
		      struct dsec_exec_opts *o, struct dsec_error *err)
{
	uint64_t caps = DSEC_CAP_EXEC;
	int r = sb ? dsec__owner_check(sb->node, err) :
		     dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sandbox: is NULL");

	if (r == 0)
		r = dsec__exec_opts_check(o, argv, opts, err);
	if (r < 0)
		return r;
	if (o->kind != DSEC_EXEC_COMMAND)
		caps = DSEC_CAP_FILES;
	if (o->flags & DSEC_EXEC_TTY)
		caps |= DSEC_CAP_TTY;
	if ((sb->ops->caps & caps) != caps)
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS, "%s: not supported by backend \"%s\"",
				  o->kind ? "kind" : "flags", sb->ops->name);
	if (sb->state != SANDBOX_RUNNING)
		return dsec__fail_retry(err, -EPIPE, DSEC_STEP_KEEPER, "sandbox \"%s\" is not running", sb->id);
	return 0;
}

static struct dsec_exec *exec_new(struct dsec_sandbox *sb, const struct dsec_exec_opts *o)
{
	struct dsec_exec *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->sandbox = sb;
	e->flags = o->flags;
	e->credit = DSEC__STDIN_WINDOW;
	e->chan.fd = -EBADF;
	(void)pthread_mutex_init(&e->send_lock, NULL); /* a plain mutex needs nothing that could be missing */
	return e;
}

/* Starts a command whose first piece of input goes with the request. `o` is checked. */
static int exec_begin(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *o, bool copy,
		      struct dsec_exec **ret_exec, struct dsec_error *err)
{
	struct dsec_exec_opts first = *o;
	struct dsec_exec *e = exec_new(sb, o);
	int fd = -EBADF;
	int r;

	if (!e)
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "an exec handle");
	if (first.stdin_len > PIECE) {
		first.stdin_len = PIECE;
		first.flags |= DSEC_EXEC_STDIN; /* more follows in frames */
		e->input = (const uint8_t *)o->stdin_data + PIECE;
		e->input_left = o->stdin_len - PIECE;
	} else {
		e->input_closed = !(o->flags & DSEC_EXEC_STDIN);
	}
	if (copy && e->input_left) {
		dsec__buf_put(&e->input_copy, e->input, e->input_left);
		e->input = e->input_copy.data;
	}
	r = e->input_copy.failed ? dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "input of a command") :
				   sb->ops->exec(sb, argv, &first, &fd, err);
	dsec__chan_init(&e->chan, fd);
	if (r < 0) {
		e->ended = true;
		dsec_exec_close(e);
		return r;
	}
	*ret_exec = e;
	return 0;
}

int dsec_exec_start(struct dsec_sandbox *sandbox, const char *const argv[], const struct dsec_exec_opts *opts,
		    struct dsec_exec **ret_exec, struct dsec_error *err)
{
	KEEP_ERRNO;
	struct dsec_exec_opts o;
	int r = check_call(sandbox, argv, opts, &o, err);

	if (r < 0)
		return r;
	if (!ret_exec)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "ret_exec: is NULL");
	if (o.flags & DSEC_EXEC_TTY)
		o.flags |= DSEC_EXEC_STDIN; /* who has the terminal may type */
	return exec_begin(sandbox, argv, &o, true, ret_exec, err);
}

int dsec_sandbox_exec(struct dsec_sandbox *sandbox, const char *const argv[], const struct dsec_exec_opts *opts,
		      struct dsec_result *ret, struct dsec_error *err)
{
	KEEP_ERRNO;
	struct dsec_exec *e = NULL;
	struct dsec_exec_opts o;
	int r = check_call(sandbox, argv, opts, &o, err);

	if (r < 0)
		return r;
	if (o.flags & (DSEC_EXEC_STREAM | DSEC_EXEC_STDIN))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "flags: STDIN and STREAM need dsec_exec_start()");
	if (!ret || ret->sz < offsetof(struct dsec_result, reason) + sizeof ret->reason)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: too small for struct dsec_result");
	r = exec_begin(sandbox, argv, &o, false, &e, err);
	if (r < 0)
		return r;
	r = dsec_exec_wait(e, -1, ret, err);
	dsec_exec_close(e);
	return r;
}

int dsec_exec_fd(const struct dsec_exec *exec)
{
	return exec->chan.fd;
}

int64_t dsec_exec_read(struct dsec_exec *exec, uint32_t stream, void *buf, size_t len, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = exec_check(exec, err);
	struct dsec__buf *b;
	size_t n, *used;

	if (r < 0)
		return r;
	if ((stream != DSEC_STREAM_STDOUT && stream != DSEC_STREAM_STDERR) || !(exec->flags & DSEC_EXEC_STREAM))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "stream: not one of a command started with STREAM");
	if (!buf && len)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "buf: is NULL");
	b = &exec->out[stream == DSEC_STREAM_STDERR];
	used = &exec->out_used[stream == DSEC_STREAM_STDERR];
	if (!b->len)
		take_in(exec);
	if (b->len) {
		n = b->len - *used < len ? b->len - *used : len;
		memcpy(buf, b->data + *used, n);
		*used += n;
		if (*used == b->len)
			b->len = *used = 0;
		return (int64_t)n;
	}
	if (exec->lost)
		return lost(exec, err);
	if (exec->ended)
		return 0;
	return dsec__fail(err, -EAGAIN, DSEC_STEP_NONE, "no output yet");
}

int64_t dsec_exec_write(struct dsec_exec *exec, const void *buf, size_t len, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = exec_check(exec, err);
	size_t n = len < PIECE ? len : PIECE;

	if (r < 0)
		return r;
	if (!(exec->flags & DSEC_EXEC_STDIN))
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "flags: the command was started without STDIN");
	take_in(exec);
	if (exec->ended || exec->lost || exec->input_closed)
		return dsec__fail(err, -EPIPE, DSEC_STEP_SPAWN, "stdin of the command is closed");
	if (exec->input_left || (len && !exec->credit))
		return dsec__fail(err, -EAGAIN, DSEC_STEP_NONE, "the command has not read its input");
	n = n < exec->credit ? n : exec->credit;
	r = send_frame(exec, DSEC_FRAME_STDIN, buf, n);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_KEEPER, "send input to the keeper");
	exec->credit -= n;
	exec->input_closed = !len;
	return (int64_t)n;
}

int dsec_exec_poll(struct dsec_exec *exec, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = exec_check(exec, err);

	if (r < 0)
		return r;
	take_in(exec);
	return exec->lost ? lost(exec, err) : exec->ended;
}

int dsec_exec_resize(struct dsec_exec *exec, uint16_t rows, uint16_t cols, struct dsec_error *err)
{
	KEEP_ERRNO;
	uint16_t size[2] = { rows, cols };
	int r = exec_check(exec, err);

	if (r < 0)
		return r;
	if (!(exec->flags & DSEC_EXEC_TTY))
		return dsec__fail(err, -EINVAL, DSEC_STEP_SIGNAL, "the command has no terminal");
	if (!rows || !cols)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "rows, cols: 0 is no size");
	if (exec->ended)
		return dsec__fail(err, -EPIPE, DSEC_STEP_SIGNAL, "the command has ended");
	r = send_frame(exec, DSEC_FRAME_RESIZE, size, sizeof size);
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_SIGNAL, "send a terminal size to the keeper") : 0;
}

int dsec_exec_signal(struct dsec_exec *exec, int32_t signo, struct dsec_error *err)
{
	KEEP_ERRNO;
	int r = exec_check(exec, err);

	if (r < 0)
		return r;
	if (signo < 1 || signo > 64)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "signo: %d is not 1 to 64", signo);
	if (exec->ended)
		return dsec__fail(err, -EPIPE, DSEC_STEP_SIGNAL, "the command has ended");
	(void)pthread_mutex_lock(&exec->send_lock);
	r = exec->sandbox->ops->signal(exec->sandbox, exec->chan.fd, signo, err);
	(void)pthread_mutex_unlock(&exec->send_lock);
	return r;
}

/* Hands a buffer over as a C string whose NUL is not counted. */
static int give(struct dsec__buf *b, char **ret_data, size_t *ret_len)
{
	uint8_t *end = dsec__buf_reserve(b, 1);

	if (!end)
		return -ENOMEM;
	*end = 0;
	*ret_data = (char *)b->data;
	*ret_len = b->len;
	*b = (struct dsec__buf){ 0 };
	return 0;
}

static int fill_result(struct dsec_exec *e, struct dsec_result *ret, struct dsec_error *err)
{
	const struct dsec_frame_result *f = &e->result;
	struct dsec_result r = {
		.sz = ret->sz, .reason = f->reason, .flags = f->flags, .exit_code = f->exit_code, .signal = f->signal,
		.seq = f->seq, .wall_ns = f->wall_ns, .cpu_ns = f->cpu_ns, .memory_peak = f->memory_peak,
		.stdout_bytes = f->stdout_bytes, .stderr_bytes = f->stderr_bytes,
		.stdout_head = f->stdout_head, .stderr_head = f->stderr_head,
	};
	bool takes_output = ret->sz >= offsetof(struct dsec_result, stderr_len) + sizeof ret->stderr_len;

	if (!(e->flags & DSEC_EXEC_STREAM) && takes_output &&
	    (give(&e->out[0], &r.stdout_data, &r.stdout_len) < 0 ||
	     give(&e->out[1], &r.stderr_data, &r.stderr_len) < 0)) {
		free(r.stdout_data);
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "output of a command");
	}
	memcpy(ret, &r, ret->sz < sizeof r ? ret->sz : sizeof r);
	return 0;
}

int dsec_exec_wait(struct dsec_exec *exec, int64_t timeout_ms, struct dsec_result *ret, struct dsec_error *err)
{
	KEEP_ERRNO;
	int64_t end = dsec__deadline(timeout_ms);
	int r = exec_check(exec, err);

	if (r < 0)
		return r;
	if (!ret || ret->sz < offsetof(struct dsec_result, reason) + sizeof ret->reason)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "sz: too small for struct dsec_result");
	for (;;) {
		int left = dsec__time_left(end);
		struct pollfd p = { .fd = exec->chan.fd, .events = POLLIN };

		take_in(exec);
		if (exec->ended || exec->lost)
			break;
		if (exec->flags & DSEC_EXEC_STREAM && held(exec) >= HELD_MAX) /* nobody will read it while we wait */
			exec->out[0].len = exec->out[1].len = exec->out_used[0] = exec->out_used[1] = 0;
		if (left == 0)
			return dsec__fail(err, -ETIMEDOUT, DSEC_STEP_NONE, "the command runs on");
		/* Input that could not be sent: the socket was full, or the kernel out of memory. */
		if (exec->input_left ? exec->credit > 0 : !exec->input_closed && !(exec->flags & DSEC_EXEC_STDIN))
			p.events |= POLLOUT;
		if (poll(&p, 1, left) < 0 && errno != EINTR)
			return dsec__fail(err, -errno, DSEC_STEP_KEEPER, "poll");
	}
	if (exec->lost)
		return lost(exec, err);
	if (exec->error.code) {
		if (err)
			*err = exec->error;
		return exec->error.code;
	}
	return fill_result(exec, ret, err);
}

void dsec_result_clear(struct dsec_result *result)
{
	KEEP_ERRNO;
	size_t sz;

	if (!result)
		return;
	sz = result->sz;
	if (sz >= offsetof(struct dsec_result, stderr_len) + sizeof result->stderr_len) {
		free(result->stdout_data);
		free(result->stderr_data);
	}
	memset(result, 0, sz < sizeof *result ? sz : sizeof *result);
	result->sz = sz;
}

/* A channel whose command has ended cleanly can carry the next one. */
static bool reusable(const struct dsec_exec *e)
{
	const struct dsec_sandbox *sb = e->sandbox;

	return sb->reuses_channels && sb->state == SANDBOX_RUNNING && e->ended && !e->lost &&
	       !e->chan.eof && !e->chan.broken && e->chan.fd >= 0 && e->chan.in.len == e->chan.in_used &&
	       !e->error.code && sb->node->owner == getpid();
}

void dsec_exec_close(struct dsec_exec *exec)
{
	KEEP_ERRNO;
	if (!exec)
		return;
	if (reusable(exec)) /* what comes back is the former one, kept by another thread meanwhile, or none */
		exec->chan.fd = atomic_exchange(&exec->sandbox->idle_channel, exec->chan.fd);
	if (exec->sandbox->node->owner == getpid())
		(void)shutdown(exec->chan.fd, SHUT_RDWR); /* a forked process may hold a copy */
	dsec__chan_done(&exec->chan);
	dsec__buf_done(&exec->out[0]);
	dsec__buf_done(&exec->out[1]);
	dsec__buf_done(&exec->input_copy);
	(void)pthread_mutex_destroy(&exec->send_lock);
	free(exec);
}
