/* SPDX-License-Identifier: MIT */
/* Commands in a sandbox: their options, their result, and the streaming interface. */
#ifndef DSEC_EXEC_H
#define DSEC_EXEC_H

#include "error.h"

DSEC_BEGIN_DECLS

enum {
	DSEC_EXEC_COMMAND = 0,    /* argv is a command; argv[0] without a slash is looked up in PATH of its environment */
	DSEC_EXEC_FILE_READ = 1,  /* argv is { path, NULL }; the file's bytes come as stdout */
	DSEC_EXEC_FILE_WRITE = 2, /* argv is { path, NULL }; stdin becomes the file; parents are made */
};

enum {
	DSEC_EXEC_STDIN = 1u << 0,        /* keep stdin open for dsec_exec_write(); else it is closed after stdin_data */
	DSEC_EXEC_TTY = 1u << 1,          /* a terminal for all three streams; output comes as stdout. Implies STDIN in
					    dsec_exec_start(); in dsec_sandbox_exec() the input ends after stdin_data */
	DSEC_EXEC_STREAM = 1u << 2,       /* deliver all output as it comes, held back while nobody reads; no limit */
	DSEC_EXEC_LIMIT_KILLS = 1u << 3,  /* passing output_limit ends the command (DSEC_REASON_OUTPUT_LIMIT) */
	DSEC_EXEC_CLEAN_ENV = 1u << 4,    /* env is the whole environment; else it is added to the sandbox's */
};

struct dsec_exec_opts {
	size_t sz;
	uint64_t flags;          /* DSEC_EXEC_STDIN and so on */
	uint32_t kind;           /* DSEC_EXEC_COMMAND and so on */
	uint32_t mode;           /* FILE_WRITE: permission bits of a new file; 0: 0644 */
	const char *const *env;  /* "NAME=value", ends with NULL */
	const char *workdir;     /* absolute; NULL: the sandbox's */
	const char *user;        /* "uid", "uid:gid" or "root"; NULL: the sandbox's */
	const void *stdin_data;  /* whole standard input; used before the call returns */
	size_t stdin_len;        /* bytes */
	uint64_t timeout_ms;     /* 0: none. The result comes at the deadline and the whole process tree is ended */
	uint64_t output_limit;   /* bytes kept of each stream, half head and half tail; 0: 8 MiB */
	uint16_t tty_rows;       /* 0: 24 */
	uint16_t tty_cols;       /* 0: 80 */
	uint32_t reserved;
};

enum {
	DSEC_REASON_EXITED = 1,       /* ended by itself with exit_code */
	DSEC_REASON_SIGNALED = 2,     /* killed by `signal` */
	DSEC_REASON_TIMEOUT = 3,      /* timeout_ms passed; the tree was ended */
	DSEC_REASON_OOM = 4,          /* the kernel ended it, or a child whose death its shell reports with code 137, because
					 the sandbox's memory limit was reached */
	DSEC_REASON_OUTPUT_LIMIT = 5, /* DSEC_EXEC_LIMIT_KILLS, and the limit was reached */
	DSEC_REASON_LOST = 6,         /* the sandbox ended under it */
	DSEC_REASON_UNKNOWN = 7,      /* it was started, and its end was not seen */
};

enum {
	DSEC_RESULT_STDOUT_CUT = 1u << 0, /* bytes are missing between head and tail of stdout_data */
	DSEC_RESULT_STDERR_CUT = 1u << 1,
};

/*
 * What became of a command. Exactly one reason holds. stdout_data and stderr_data belong to the caller, who releases
 * them with dsec_result_clear(); they end with a NUL byte that is not counted. In a stream they are NULL: the bytes
 * went through dsec_exec_read().
 */
struct dsec_result {
	size_t sz;
	uint32_t reason;          /* DSEC_REASON_* */
	uint32_t flags;           /* DSEC_RESULT_* */
	int32_t exit_code;        /* 0 to 255 with EXITED, else -1 */
	int32_t signal;           /* 1 to 64 with SIGNALED, TIMEOUT, OOM or OUTPUT_LIMIT, else 0 */
	uint64_t seq;             /* number of this command in its sandbox, from 1 */
	uint64_t wall_ns;         /* from the start of the command to its end */
	uint64_t cpu_ns;          /* user and system time of the process tree (of the waited-for part without cgroup v2) */
	uint64_t memory_peak;     /* bytes; the largest resident set among its processes */
	uint64_t stdout_bytes;    /* bytes that were written, kept or not */
	uint64_t stderr_bytes;
	char *stdout_data;        /* kept bytes: head, then tail */
	size_t stdout_len;
	char *stderr_data;
	size_t stderr_len;
	size_t stdout_head;       /* when cut: where the tail begins in stdout_data */
	size_t stderr_head;
};

/* Releases the output of a result and zeroes all but its size. NULL, and a result that was never filled, are allowed. */
DSEC_API void dsec_result_clear(struct dsec_result *result);

/*
 * Runs a command in the sandbox and waits for its end.
 *
 * argv: ends with NULL, at least one entry. opts: NULL for defaults; STDIN and STREAM are refused here.
 * ret: ret->sz set by the caller; filled on success. A command that fails, dies or times out is a success of this
 * call: the result says which.
 * Errors: -EINVAL (an option), -ENOENT, -EACCES, -ENOEXEC, -E2BIG (the command could not be executed; step is
 * DSEC_STEP_EXEC), -EPIPE (the sandbox is gone; nothing was started where DSEC_ERROR_RETRY is set), -ENOTSUP, -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_exec(struct dsec_sandbox *sandbox, const char *const argv[],
					       const struct dsec_exec_opts *opts, struct dsec_result *ret,
					       struct dsec_error *err);

/*
 * Starts a command and returns at once; any number may run in one sandbox.
 * ret_exec: receives the handle; close it with dsec_exec_close(). Errors as dsec_sandbox_exec(), except that a
 * failure to execute comes from dsec_exec_wait().
 */
DSEC_API DSEC_MUST_CHECK int dsec_exec_start(struct dsec_sandbox *sandbox, const char *const argv[],
					     const struct dsec_exec_opts *opts, struct dsec_exec **ret_exec,
					     struct dsec_error *err);

/*
 * A descriptor for poll(), select() or an event loop: readable when dsec_exec_read() or dsec_exec_wait() has something
 * to take. What arrives for one stream is taken in with the other and waits in the handle: once it was readable, take from
 * both streams until -EAGAIN before polling again. It belongs to the handle: do not read, write or close it.
 */
DSEC_API int dsec_exec_fd(const struct dsec_exec *exec);

enum {
	DSEC_STREAM_STDOUT = 1,
	DSEC_STREAM_STDERR = 2,
};

/*
 * Takes output of a command started with DSEC_EXEC_STREAM. Never blocks.
 * stream: DSEC_STREAM_*. buf, len: where to put at most len bytes.
 * Returns the number of bytes, 0 at the end of the stream. Errors: -EAGAIN (none yet: poll), -EINVAL (not a stream),
 * -EPIPE (the sandbox is gone).
 */
DSEC_API DSEC_MUST_CHECK int64_t dsec_exec_read(struct dsec_exec *exec, uint32_t stream, void *buf, size_t len,
						struct dsec_error *err);

/*
 * Gives bytes to the command's stdin. Never blocks. len 0 closes it.
 * Returns how many bytes were taken, which may be fewer. Errors: -EAGAIN (the command has not read what it was given:
 * poll dsec_exec_fd() for reading and call dsec_exec_read() or dsec_exec_poll(), then try again), -EPIPE (stdin is
 * closed or the command has ended), -EINVAL (started without DSEC_EXEC_STDIN).
 */
DSEC_API DSEC_MUST_CHECK int64_t dsec_exec_write(struct dsec_exec *exec, const void *buf, size_t len,
						 struct dsec_error *err);

/*
 * Takes in what has arrived, without blocking. Returns 1 when the command has ended (dsec_exec_wait() will not
 * block), else 0. Errors: -EPIPE as dsec_exec_wait() would give it.
 */
DSEC_API DSEC_MUST_CHECK int dsec_exec_poll(struct dsec_exec *exec, struct dsec_error *err);

/* Sets the size of the command's terminal. Errors: -EINVAL (no terminal, or a size of 0), -EPIPE (it has ended). */
DSEC_API DSEC_MUST_CHECK int dsec_exec_resize(struct dsec_exec *exec, uint16_t rows, uint16_t cols,
					      struct dsec_error *err);

/*
 * Sends a signal, 1 to 64, to the process group of the command; SIGKILL ends its whole process tree, whatever groups
 * and sessions it made. May be called from another thread than the handle's.
 * Errors: -EINVAL (no such signal), -EPIPE (it has ended).
 */
DSEC_API DSEC_MUST_CHECK int dsec_exec_signal(struct dsec_exec *exec, int32_t signo, struct dsec_error *err);

/*
 * Waits for the end of the command. In a stream it is an error to wait with output unread beyond what the library
 * holds: read to the end first, or the call takes and discards it.
 * timeout_ms: 0 to ask without blocking, -1 to wait as long as it takes.
 * ret: ret->sz set by the caller; filled on success. A second wait gives the same result without output.
 * Errors: -ETIMEDOUT (it runs on), -EPIPE (the keeper is gone: the outcome is unknown), and those of a command that
 * could not be executed, as dsec_sandbox_exec().
 */
DSEC_API DSEC_MUST_CHECK int dsec_exec_wait(struct dsec_exec *exec, int64_t timeout_ms, struct dsec_result *ret,
					    struct dsec_error *err);

/* Releases the handle. A command that still runs is ended with its whole process tree. NULL is allowed. */
DSEC_API void dsec_exec_close(struct dsec_exec *exec);

DSEC_END_DECLS

#endif
