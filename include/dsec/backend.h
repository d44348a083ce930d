/* SPDX-License-Identifier: MIT */
/* Backends: the table through which a sandbox is made, used and ended; registering one of your own. */
#ifndef DSEC_BACKEND_H
#define DSEC_BACKEND_H

#include "error.h"
#include "exec.h"
#include "sandbox.h"

DSEC_BEGIN_DECLS

/* What may be asked of a backend. A call without its bit is refused with -ENOTSUP before any slot is called. */
enum {
	DSEC_CAP_EXEC = 1u << 0,
	DSEC_CAP_FILES = 1u << 1,   /* read, write, put, get */
	DSEC_CAP_TTY = 1u << 2,
	DSEC_CAP_LIMITS = 1u << 3,  /* cpu_millis, memory_bytes, pids, disk_bytes, disk_inodes */
	DSEC_CAP_STATS = 1u << 4,
	DSEC_CAP_ATTACH = 1u << 5,  /* other processes may attach, and DSEC_SANDBOX_RETAIN is allowed */
	DSEC_CAP_FREEZE = 1u << 6,
	DSEC_CAP_FORK_DISK = 1u << 7,
	DSEC_CAP_FORK_MEMORY = 1u << 8,
	DSEC_CAP_NETWORK_HOST = 1u << 9,
};

/*
 * The exec channel: what the `exec` slot returns. A connected stream socket that carries frames in both directions, each
 * a header followed by `len` bytes of payload. Numbers are in the
 * machine's byte order. After DSEC_FRAME_RESULT nothing follows.
 */
struct dsec_frame {
	uint32_t len;     /* bytes of payload, at most DSEC_FRAME_MAX */
	uint16_t type;    /* DSEC_FRAME_* */
	uint16_t flags;   /* 0 */
	uint32_t channel; /* 0 on an exec channel */
};

#define DSEC_FRAME_MAX (4u << 20)

enum {
	/* to the library */
	DSEC_FRAME_STDOUT = 1,  /* bytes */
	DSEC_FRAME_STDERR = 2,  /* bytes */
	DSEC_FRAME_CREDIT = 3,  /* uint32_t: so many more bytes of stdin are welcome (64 KiB are from the start) */
	DSEC_FRAME_RESULT = 4,  /* struct dsec_frame_result */
	DSEC_FRAME_FAILED = 5,  /* struct dsec_error: the command was not executed; ends the channel like RESULT */
	/* from the library */
	DSEC_FRAME_STDIN = 16,  /* bytes; no payload closes stdin */
	DSEC_FRAME_SIGNAL = 17, /* uint32_t signal */
	DSEC_FRAME_RESIZE = 18, /* uint16_t rows, uint16_t columns */
};

/* Payload of DSEC_FRAME_RESULT; meanings as in struct dsec_result. */
struct dsec_frame_result {
	uint32_t reason;
	uint32_t flags;
	int32_t exit_code;
	int32_t signal;
	uint64_t seq;
	uint64_t wall_ns;
	uint64_t cpu_ns;
	uint64_t memory_peak;
	uint64_t stdout_bytes;
	uint64_t stderr_bytes;
	uint64_t stdout_head; /* when cut: bytes of stdout sent before the gap */
	uint64_t stderr_head;
};

/*
 * One backend. The table must stay valid and unchanged while the process lives. Slots return 0 or a negative errno
 * value and set `err` on failure, once. Slots of one sandbox are never called at the same time, except `signal`.
 */
struct dsec_backend_ops {
	size_t sz;        /* sizeof(struct dsec_backend_ops) at the author's compile time */
	const char *name; /* [a-z0-9-]{1,15}; compared as a whole */
	uint64_t caps;    /* DSEC_CAP_* */

	/* required */

	/* Whether the backend works on this machine. Called before create; must leave nothing behind. */
	int (*probe)(struct dsec_node *node, struct dsec_error *err);
	/* Begins a sandbox. The options are checked and complete. On failure nothing is left and destroy is not called. */
	int (*create)(struct dsec_sandbox *sandbox, const struct dsec_sandbox_opts *opts, struct dsec_error *err);
	/* Completes create: waits at most timeout_ms (-1: for ever) until commands are taken. -ETIMEDOUT may be repeated;
	   after any other failure destroy follows. */
	int (*start)(struct dsec_sandbox *sandbox, int64_t timeout_ms, struct dsec_error *err);
	/* Begins a command and returns its exec channel in *ret_fd, which the library closes. It may be non-blocking. */
	int (*exec)(struct dsec_sandbox *sandbox, const char *const argv[], const struct dsec_exec_opts *opts,
		    int *ret_fd, struct dsec_error *err);
	/* Sends a signal to the command behind the channel `fd`. May run beside any other slot. */
	int (*signal)(struct dsec_sandbox *sandbox, int fd, int32_t signo, struct dsec_error *err);
	/* Ends the sandbox; waits at most timeout_ms until nothing is left. Must succeed when it already ended. */
	int (*stop)(struct dsec_sandbox *sandbox, int64_t timeout_ms, struct dsec_error *err);
	/* Releases what belongs to the handle; ends the sandbox if this handle owns it. Last call. Cannot fail. In a
	   process that was forked from the owner it must release memory and descriptors only: see dsec_backend_forked(). */
	void (*destroy)(struct dsec_sandbox *sandbox);

	/* optional: NULL when the capability is off */

	int (*attach)(struct dsec_sandbox *sandbox, const char *id, struct dsec_error *err);
	int (*stats)(struct dsec_sandbox *sandbox, struct dsec_sandbox_stats *ret, struct dsec_error *err);
	int (*fd)(const struct dsec_sandbox *sandbox);
	int (*freeze)(struct dsec_sandbox *sandbox, struct dsec_error *err);
	int (*thaw)(struct dsec_sandbox *sandbox, struct dsec_error *err);
};

/*
 * Adds a backend for this process, before the first sandbox that names it.
 * ops: borrowed for the life of the process.
 * Errors: -EINVAL (the text names the missing slot or bad field), -EEXIST (the name is taken), -ENOSPC (32 are
 * registered).
 */
DSEC_API DSEC_MUST_CHECK int dsec_backend_register(const struct dsec_backend_ops *ops, struct dsec_error *err);

/* The backend's own state of a sandbox, NULL until set. */
DSEC_API void *dsec_backend_data(const struct dsec_sandbox *sandbox);

/* Sets it; released by the backend's destroy slot. */
DSEC_API void dsec_backend_set_data(struct dsec_sandbox *sandbox, void *data);

/* Whether this process was forked from the one that the handle belongs to: what is outside memory is not its own. */
DSEC_API int dsec_backend_forked(const struct dsec_sandbox *sandbox);

DSEC_END_DECLS

#endif
