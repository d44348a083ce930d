/* SPDX-License-Identifier: MIT */
/* Sandboxes: isolated environments that live until they are stopped. */
#ifndef DSEC_SANDBOX_H
#define DSEC_SANDBOX_H

#include "error.h"

DSEC_BEGIN_DECLS

enum {
	DSEC_SANDBOX_RETAIN = 1u << 0, /* lives on when its creator closes or dies; else it ends with the creator's handle */
	DSEC_SANDBOX_NOWAIT = 1u << 1, /* create returns at once; wait for dsec_sandbox_fd(), then dsec_sandbox_wait() */
	DSEC_SANDBOX_LIMITS_OPTIONAL = 1u << 2, /* go on without a limit that this machine cannot enforce */
};

enum {
	DSEC_NETWORK_NONE = 0, /* a network of its own with a loopback interface only */
	DSEC_NETWORK_HOST = 1, /* this machine's network: no isolation */
};

enum {
	DSEC_TOP_MEMORY = 0, /* a tmpfs of its own: fast, gone with the sandbox, counts as the sandbox's memory */
	DSEC_TOP_DISK = 1,   /* a directory below the node's state directory */
};

struct dsec_sandbox_opts {
	size_t sz;
	uint64_t flags;          /* DSEC_SANDBOX_* */
	const char *backend;     /* "container" (default), "null", "function", "microvm", "fullvm" or a registered one */
	const char *image;       /* "host" (default) or the absolute path of a directory that holds a root file system */
	const char *name;        /* [a-z0-9][a-z0-9._-]{0,62}, not of an id's form, unique on the node; NULL: none */
	const char *run;         /* the training run that owns it, same form as a name; NULL: none */
	const char *hostname;    /* NULL: "dsec" */
	const char *workdir;     /* absolute, made if missing; NULL: /root */
	const char *user;        /* "uid", "uid:gid" or "root"; NULL: "root" (of the sandbox: nobody on this machine) */
	const char *const *env;  /* "NAME=value" for every command, ends with NULL; added to PATH, HOME (/root for root,
				    else /tmp) and LANG */
	uint64_t cpu_millis;     /* thousandths of a CPU; 0: no limit */
	uint64_t memory_bytes;   /* 0: no limit; else at least 8 MiB */
	uint64_t pids;           /* processes and threads; 0: 1024 where it can be enforced */
	uint64_t disk_bytes;     /* size of the writable top; 0: 1 GiB with DSEC_TOP_MEMORY, no limit on disk */
	uint64_t disk_inodes;    /* files in the writable top; 0: 262144 with DSEC_TOP_MEMORY, no limit on disk */
	uint32_t network;        /* DSEC_NETWORK_* */
	uint32_t top;            /* DSEC_TOP_* */
};

/*
 * Makes a sandbox and waits until it takes commands.
 *
 * ret_sandbox: receives the handle; release it with dsec_sandbox_close(). On failure nothing is left behind.
 * opts: NULL for a container over the "host" image with no limits.
 * Errors: -EINVAL or -E2BIG (an option; the text names the field and the reason), -EEXIST (the name is in use),
 * -ENOENT or -ENOTDIR (the image), -ENOTSUP (what this backend, kernel or user cannot do, by field), -EACCES, -EPERM,
 * -ENOSPC, -EAGAIN (no id range, pid or descriptor is free now; DSEC_ERROR_RETRY is set), -EPIPE (the launcher is
 * gone), -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_create(struct dsec_node *node, const struct dsec_sandbox_opts *opts,
						 struct dsec_sandbox **ret_sandbox, struct dsec_error *err);

/*
 * Opens a second handle on a sandbox that lives, made by any process of the same user.
 * id: its id or its name. Errors: -ENOENT (no such sandbox), -EINVAL (neither an id nor a name), -EACCES, -EPIPE (it
 * ended meanwhile).
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_attach(struct dsec_node *node, const char *id,
						 struct dsec_sandbox **ret_sandbox, struct dsec_error *err);

/* The sandbox's id, "dsec-" and 20 characters; belongs to the handle. */
DSEC_API const char *dsec_sandbox_id(const struct dsec_sandbox *sandbox);

/* What its backend can do: DSEC_CAP_* of dsec/backend.h. */
DSEC_API uint64_t dsec_sandbox_caps(const struct dsec_sandbox *sandbox);

/*
 * A descriptor that becomes readable when a create or stop begun with NOWAIT is done. It belongs to the handle.
 * Returns -EINVAL where the backend has none.
 */
DSEC_API int dsec_sandbox_fd(const struct dsec_sandbox *sandbox);

/*
 * Completes a create or stop that was begun with NOWAIT.
 * timeout_ms: 0 to ask without blocking, -1 to wait as long as it takes.
 * Errors: -ETIMEDOUT (not done yet), and those of dsec_sandbox_create() or dsec_sandbox_stop().
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_wait(struct dsec_sandbox *sandbox, int64_t timeout_ms,
					       struct dsec_error *err);

/*
 * Reads a whole file of the sandbox.
 * path: absolute, or relative to the sandbox's working directory; resolved inside the sandbox as its root user.
 * ret_data, ret_len: receive the bytes (free() them; a NUL that is not counted follows) and their number.
 * Errors: -ENOENT, -EISDIR, -EACCES, -EINVAL (a FIFO, socket or device: never opened), -EFBIG (over 1 GiB: use
 * dsec_sandbox_get()), -EPIPE, -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_read(struct dsec_sandbox *sandbox, const char *path, void **ret_data,
					       size_t *ret_len, struct dsec_error *err);

/*
 * Writes a whole file of the sandbox, making parent directories; an existing file is replaced in place.
 * mode: permission bits of a new file, 0 for 0644. Errors: as read, and -ENOSPC, -EDQUOT.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_write(struct dsec_sandbox *sandbox, const char *path, const void *data,
						size_t len, uint32_t mode, struct dsec_error *err);

/*
 * Copies a regular file of this machine into the sandbox, of any size, a piece at a time. The permission bits are kept.
 * host_path: read as the calling process. path: as dsec_sandbox_write(). Errors: of both sides; the text says which.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_put(struct dsec_sandbox *sandbox, const char *host_path, const char *path,
					      struct dsec_error *err);

/*
 * Copies a regular file of the sandbox to this machine, of any size, a piece at a time.
 * host_path: made or replaced as a whole when all bytes have arrived (mode 0644 less the umask).
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_get(struct dsec_sandbox *sandbox, const char *path, const char *host_path,
					      struct dsec_error *err);

/* What a sandbox uses now. A field that this machine cannot tell is UINT64_MAX. */
struct dsec_sandbox_stats {
	size_t sz;
	uint64_t cpu_ns;        /* CPU time since its creation */
	uint64_t memory_bytes;  /* charged now */
	uint64_t memory_peak;   /* highest so far */
	uint64_t pids;          /* processes and threads */
	uint64_t execs;         /* commands started */
	uint64_t execs_running;
	uint64_t oom_kills;
	uint64_t keeper_memory; /* bytes: private memory of its keeper on this machine */
};

/* Fills `ret` as far as ret->sz reaches. Errors: -EINVAL, -ENOTSUP (the backend has no DSEC_CAP_STATS), -EPIPE. */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_stats(struct dsec_sandbox *sandbox, struct dsec_sandbox_stats *ret,
						struct dsec_error *err);

/*
 * Ends the sandbox, all its processes and all that it kept on this machine. When the call returns nothing is left. A
 * second stop is a success. Commands that run get DSEC_REASON_LOST.
 * flags: 0 or DSEC_SANDBOX_NOWAIT. Errors: -EINVAL.
 */
DSEC_API DSEC_MUST_CHECK int dsec_sandbox_stop(struct dsec_sandbox *sandbox, uint64_t flags, struct dsec_error *err);

/*
 * Releases the handle. The creator's handle of a sandbox without DSEC_SANDBOX_RETAIN ends the sandbox, without waiting
 * for it; an attached handle never does. Close exec handles first. NULL is allowed.
 */
DSEC_API void dsec_sandbox_close(struct dsec_sandbox *sandbox);

DSEC_END_DECLS

#endif
