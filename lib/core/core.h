/* SPDX-License-Identifier: MIT */
/* Handles as the library itself sees them. How a sandbox is isolated is the backends' knowledge and not used here. */
#ifndef DSEC__CORE_H
#define DSEC__CORE_H

#include <dsec/dsec.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "../io/chan.h"
#include "../node/state.h"

struct dsec_node {
	pid_t owner; /* the process that opened it: a forked child's copy is of no use */
	struct dsec__state state;
	int launcher; /* socket */
	bool has_ids; /* its sandboxes have ranges of user ids of their own */
};

enum sandbox_state { SANDBOX_STARTING, SANDBOX_RUNNING, SANDBOX_STOPPING, SANDBOX_STOPPED, SANDBOX_FAILED };

struct dsec_sandbox {
	struct dsec_node *node;
	const struct dsec_backend_ops *ops;
	void *data;
	_Atomic enum sandbox_state state; /* an exec handle on another thread looks at it */
	char id[32];
	_Atomic int idle_channel; /* of a backend whose channels may carry one command after another, -EBADF if none */
	bool reuses_channels;
};

/* -ECHILD with a text when the handle was made by another process. */
int dsec__owner_check(const struct dsec_node *node, struct dsec_error *err);

/* backend.c */
const struct dsec_backend_ops *dsec__backend_find(const char *name);
/* A slot that the author's table does not reach counts as NULL. */
#define DSEC__SLOT(ops, slot) \
	((ops)->sz >= offsetof(struct dsec_backend_ops, slot) + sizeof((ops)->slot) ? (ops)->slot : NULL)

extern const struct dsec_backend_ops dsec__backend_container, dsec__backend_null, dsec__backend_function,
	dsec__backend_microvm, dsec__backend_fullvm;

/* options.c: what the caller knows of a sized structure, the rest zero. -EINVAL and -E2BIG as dsec/types.h says. */
int dsec__opts_copy(void *dst, size_t dst_size, const void *src, const char *what, struct dsec_error *err);
int dsec__sandbox_opts_check(struct dsec_sandbox_opts *o, const struct dsec_sandbox_opts *given, struct dsec_error *err);
int dsec__exec_opts_check(struct dsec_exec_opts *o, const char *const argv[], const struct dsec_exec_opts *given,
			  struct dsec_error *err);

/* launch.c: starts the launcher of a node; the descriptor is its socket. */
int dsec__launcher_start(const struct dsec__state *st, bool *ret_has_ids, struct dsec_error *err);

#endif
