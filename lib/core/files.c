/* SPDX-License-Identifier: MIT */
/* Whole files in and out of a sandbox, over the streaming interface: a file transfer is a command of another kind. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"
#include "core.h"

#define READ_MAX (1u << 30)
#define PIECE (64u << 10)

static void exec_closep(struct dsec_exec **e)
{
	dsec_exec_close(*e);
}

/* The result of a transfer (cleared), of which only its failure is of interest. */
static int judge(struct dsec_result *res, const char *path, struct dsec_error *err)
{
	int r = 0;

	if (res->reason != DSEC_REASON_EXITED || res->exit_code != 0)
		r = dsec__fail(err, res->reason == DSEC_REASON_LOST ? -EPIPE : -EIO, DSEC_STEP_FILE,
			       "\"%s\": the transfer was ended (signal %d)", path, res->signal);
	dsec_result_clear(res);
	return r;
}

static int finish(struct dsec_exec *e, const char *path, struct dsec_error *err)
{
	struct dsec_result res = { .sz = sizeof res };
	int r = dsec_exec_wait(e, -1, &res, err);

	return r < 0 ? dsec__wrap(err, r, "\"%s\"", path) : judge(&res, path, err);
}

static int start(struct dsec_sandbox *sb, const char *path, uint32_t kind, uint64_t flags, uint32_t mode,
		 const void *data, size_t len, struct dsec_exec **ret_exec, struct dsec_error *err)
{
	const char *argv[] = { path, NULL };
	struct dsec_exec_opts o = { .sz = sizeof o, .kind = kind, .flags = flags, .mode = mode,
				    .stdin_data = data, .stdin_len = len };

	return dsec_exec_start(sb, argv, &o, ret_exec, err);
}

static int wait_readable(struct dsec_exec *e, struct dsec_error *err)
{
	struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };

	if (poll(&p, 1, -1) < 0 && errno != EINTR)
		return dsec__fail(err, -errno, DSEC_STEP_FILE, "poll");
	return 0;
}

int dsec_sandbox_read(struct dsec_sandbox *sandbox, const char *path, void **ret_data, size_t *ret_len,
		      struct dsec_error *err)
{
	KEEP_ERRNO;
	CLEANUP(exec_closep) struct dsec_exec *e = NULL;
	AUTO_FREE uint8_t *data = NULL;
	size_t len = 0, cap = 0;
	int r = start(sandbox, path, DSEC_EXEC_FILE_READ, DSEC_EXEC_STREAM, 0, NULL, 0, &e, err);

	while (r == 0) {
		int64_t n;

		if (cap - len < PIECE + 1) {
			size_t more = cap ? cap * 2 : 2 * PIECE;
			uint8_t *p = more > 2ull * READ_MAX ? NULL : realloc(data, more);

			if (!p)
				return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "contents of \"%s\"", path);
			data = p;
			cap = more;
		}
		n = dsec_exec_read(e, DSEC_STREAM_STDOUT, data + len, cap - len - 1, NULL);
		if (n == -EAGAIN) {
			r = wait_readable(e, err);
			continue;
		}
		if (n <= 0)
			break;
		len += (size_t)n;
		if (len > READ_MAX)
			return dsec__fail(err, -EFBIG, DSEC_STEP_FILE, "\"%s\" has more than 1 GiB", path);
	}
	if (r == 0)
		r = finish(e, path, err);
	if (r < 0)
		return r;
	data[len] = 0;
	*ret_data = TAKE_PTR(data);
	*ret_len = len;
	return 0;
}

int dsec_sandbox_write(struct dsec_sandbox *sandbox, const char *path, const void *data, size_t len, uint32_t mode,
		       struct dsec_error *err)
{
	KEEP_ERRNO;
	const char *argv[] = { path, NULL };
	struct dsec_exec_opts o = { .sz = sizeof o, .kind = DSEC_EXEC_FILE_WRITE, .mode = mode,
				    .stdin_data = data, .stdin_len = len };
	struct dsec_result res = { .sz = sizeof res };
	int r = dsec_sandbox_exec(sandbox, argv, &o, &res, err); /* sends from the caller's memory, without a copy */

	if (r < 0)
		return path ? dsec__wrap(err, r, "\"%s\"", path) : r;
	return judge(&res, path, err);
}

static int write_piece(struct dsec_exec *e, const uint8_t *data, size_t len, struct dsec_error *err)
{
	while (len) {
		int64_t n = dsec_exec_write(e, data, len, NULL);

		if (n == -EAGAIN) {
			int r = wait_readable(e, err);

			if (r < 0)
				return r;
			continue;
		}
		if (n == -EPIPE)
			return 1; /* the other side ended it: its result tells why */
		if (n < 0)
			return dsec__fail(err, (int)n, DSEC_STEP_FILE, "send a file to the keeper");
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int dsec_sandbox_put(struct dsec_sandbox *sandbox, const char *host_path, const char *path, struct dsec_error *err)
{
	KEEP_ERRNO;
	CLEANUP(exec_closep) struct dsec_exec *e = NULL;
	AUTO_CLOSE int fd = -EBADF;
	AUTO_FREE uint8_t *buf = malloc(PIECE);
	struct stat st;
	ssize_t n = 0;
	int r;

	if (!host_path || !*host_path)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "host_path: is empty");
	fd = open(host_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_FILE, "open \"%s\" on this machine", host_path);
	if (!S_ISREG(st.st_mode))
		return dsec__fail(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, DSEC_STEP_FILE,
				  "\"%s\" on this machine is not a regular file", host_path);
	if (!buf)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "a buffer");
	r = start(sandbox, path, DSEC_EXEC_FILE_WRITE, DSEC_EXEC_STDIN, st.st_mode & 07777, NULL, 0, &e, err);
	while (r == 0 && ((n = read(fd, buf, PIECE)) > 0 || (n < 0 && errno == EINTR)))
		r = n > 0 ? write_piece(e, buf, (size_t)n, err) : 0;
	if (r < 0)
		return r;
	if (n < 0)
		return dsec__fail(err, -errno, DSEC_STEP_FILE, "read \"%s\" on this machine", host_path);
	if (r == 0) {
		n = dsec_exec_write(e, NULL, 0, NULL);
		if (n < 0 && n != -EPIPE)
			return dsec__fail(err, (int)n, DSEC_STEP_FILE, "\"%s\": send the end of the file", path);
	}
	return finish(e, path, err); /* tells why, if the other side had closed its input */
}

static int receive(struct dsec_exec *e, int fd, const char *host_path, struct dsec_error *err)
{
	AUTO_FREE uint8_t *buf = malloc(PIECE);
	int64_t n;
	int r;

	if (!buf)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "a buffer");
	for (;;) {
		n = dsec_exec_read(e, DSEC_STREAM_STDOUT, buf, PIECE, NULL);
		if (n == -EAGAIN) {
			r = wait_readable(e, err);
			if (r < 0)
				return r;
			continue;
		}
		if (n <= 0)
			return 0; /* the end, or what the result will tell */
		r = dsec__write_all(fd, buf, (size_t)n);
		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_FILE, "write \"%s\" on this machine", host_path);
	}
}

int dsec_sandbox_get(struct dsec_sandbox *sandbox, const char *path, const char *host_path, struct dsec_error *err)
{
	KEEP_ERRNO;
	CLEANUP(exec_closep) struct dsec_exec *e = NULL;
	char id[DSEC__ID_LEN + 1];
	AUTO_FREE char *part = NULL;
	AUTO_CLOSE int fd = -EBADF;
	int r;

	if (!host_path || !*host_path)
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "host_path: is empty");
	dsec__id_new(id);
	if (asprintf(&part, "%s.%s", host_path, id) < 0) {
		part = NULL;
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "a path");
	}
	r = start(sandbox, path, DSEC_EXEC_FILE_READ, DSEC_EXEC_STREAM, 0, NULL, 0, &e, err);
	if (r < 0)
		return r;
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_FILE, "create a file beside \"%s\" on this machine", host_path);
	r = receive(e, fd, host_path, err);
	if (r == 0)
		r = finish(e, path, err);
	if (r == 0 && close(TAKE_FD(fd)) < 0) /* where network file systems tell that a write failed */
		r = dsec__fail(err, -errno, DSEC_STEP_FILE, "close \"%s\" on this machine", host_path);
	if (r == 0 && rename(part, host_path) < 0)
		r = dsec__fail(err, -errno, DSEC_STEP_FILE, "rename to \"%s\" on this machine", host_path);
	if (r < 0)
		(void)unlink(part);
	return r;
}
