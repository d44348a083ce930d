/* SPDX-License-Identifier: MIT */
/* The node: this machine as dsec sees it, a state directory plus a block of shared memory. */
#ifndef DSEC_NODE_H
#define DSEC_NODE_H

#include "error.h"

DSEC_BEGIN_DECLS

struct dsec_node_opts {
	size_t sz;
	uint64_t flags;     /* none yet */
	const char *root;   /* state directory, absolute; NULL: $DSEC_ROOT, /run/dsec (root) or $XDG_RUNTIME_DIR/dsec */
	const char *images; /* image directory, absolute; NULL: $DSEC_IMAGES, /var/lib/dsec (root) or $XDG_DATA_HOME/dsec */
};

/*
 * Opens the node, making its directories if need be, adopts what lives in it and reaps what is dead, and starts this
 * handle's launcher. The calling process is never forked.
 *
 * ret_node: receives the handle; close it with dsec_node_close().
 * opts: NULL for defaults.
 * Errors: -EINVAL (an option; the text names it), -EACCES or -EPERM (no right to the directory), -ENOSPC, -EROFS,
 * -EUCLEAN (the directory holds something that is not a dsec node), -ENOMEM, -EMFILE.
 */
DSEC_API DSEC_MUST_CHECK int dsec_node_open(struct dsec_node **ret_node, const struct dsec_node_opts *opts,
					    struct dsec_error *err);

/*
 * Closes the handle and ends its launcher. Sandboxes made through it live on by their own rule (see
 * DSEC_SANDBOX_RETAIN). Close sandbox handles first. NULL is allowed.
 */
DSEC_API void dsec_node_close(struct dsec_node *node);

/* One thing that this kernel and user can or cannot do. */
struct dsec_probe_item {
	char name[32];     /* such as "user_namespaces", "cgroup_memory", "kvm" */
	int32_t available; /* 1 yes, 0 no */
	uint32_t reserved;
	char why[256];    /* how it was found out, or why it is missing */
	char effect[256]; /* what follows for sandboxes, and what to change; empty where nothing does */
};

/*
 * Says what this kernel and user can do, why not, and what follows. Nothing is left behind by asking.
 *
 * node: NULL is allowed and leaves out what depends on the node's directories.
 * items, n_items: array to fill, and its length; NULL and 0 to count.
 * item_sz: sizeof(struct dsec_probe_item) of the caller.
 * Returns the number of items that there are, which may be more than n_items. Errors: -EINVAL, -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_node_probe(struct dsec_node *node, struct dsec_probe_item *items, size_t n_items,
					     size_t item_sz, struct dsec_error *err);

enum {
	DSEC_STATE_STARTING = 1,
	DSEC_STATE_RUNNING = 2,
	DSEC_STATE_PAUSED = 3,
	DSEC_STATE_STOPPED = 4,
	DSEC_STATE_LOST = 5, /* its keeper is dead; dsec_node_reap() removes what is left */
};

/* One sandbox of the node, as its state directory tells. */
struct dsec_sandbox_info {
	char id[32];
	char name[64];    /* empty when it has none */
	char run[64];     /* empty when it belongs to none */
	char backend[16];
	char image[256];  /* cut at 255 bytes */
	uint32_t state;   /* DSEC_STATE_* */
	int32_t keeper_pid; /* for display only: it may be recycled */
	uint64_t created_ns; /* wall clock, nanoseconds since 1970 */
};

/*
 * Lists the sandboxes of the node, whoever made them, in order of creation.
 * infos, n_infos: array to fill and its length; NULL and 0 to count. info_sz: sizeof of the caller's structure.
 * Returns how many there are, which may be more than n_infos. Errors: -EINVAL, -EACCES, -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_node_list(struct dsec_node *node, struct dsec_sandbox_info *infos, size_t n_infos,
					    size_t info_sz, struct dsec_error *err);

/* Counters since the node was made (all processes), and gauges. */
struct dsec_node_stats {
	size_t sz;
	uint64_t live;           /* sandboxes that are starting or running */
	uint64_t created;        /* sandboxes that started */
	uint64_t create_failed;  /* creates that were refused or failed after they reached a keeper */
	uint64_t execs;          /* commands started */
	uint64_t reaped;         /* dead sandboxes whose remains were removed */
	uint64_t ids_free;       /* ranges of user ids that are free; 0 where sandboxes have none of their own */
};

/* Fills `ret` as far as ret->sz reaches. Errors: -EINVAL. */
DSEC_API DSEC_MUST_CHECK int dsec_node_stats(struct dsec_node *node, struct dsec_node_stats *ret,
					     struct dsec_error *err);

/*
 * Removes what dead sandboxes left: control groups, directories, names, id ranges. Never touches a process that is
 * not certainly the one recorded. Returns the number of sandboxes whose remains were removed.
 * Errors: -EACCES, -ENOMEM.
 */
DSEC_API DSEC_MUST_CHECK int dsec_node_reap(struct dsec_node *node, struct dsec_error *err);

DSEC_END_DECLS

#endif
