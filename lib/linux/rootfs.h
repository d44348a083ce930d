/* SPDX-License-Identifier: MIT */
/*
 * The file system of a container: overlays of an image's trees under a writable top, /dev, /proc and /sys.
 *
 * Two halves. dsec__rootfs_build() makes the overlays as detached mounts; with privilege the keeper calls it on the host
 * side, since only there layers can be idmapped to the sandbox's own ids and overlays keep their marks in trusted
 * attributes; without privilege the agent calls it as root of its user namespace. dsec__rootfs_enter() runs in the agent
 * in either case: attaches, adds what belongs to its namespaces, masks, and makes it the root.
 */
#ifndef DSEC__ROOTFS_H
#define DSEC__ROOTFS_H

#include <dsec/error.h>

#include "../image/image.h"
#include "../node/spec.h"
#include "../util/cleanup.h"

struct dsec__rootfs {
	int root;                                                     /* detached mounts, -EBADF where there is none */
	int trees[ARRAY_LEN(((struct dsec__image *)0)->trees)];
	int dev;
	/* What the overlays were made from. Letting go of a detached mount waits for the kernel (an RCU grace period each), so
	   the keeper holds these until it exits. */
	int held[ARRAY_LEN(((struct dsec__image *)0)->trees) + 2];
	size_t n_held;
};

struct dsec__rootfs_plan {
	const struct dsec__image *image;
	const struct dsec__spec *spec;
	const char *top_dir;  /* DSEC_TOP_DISK: an empty directory of ours, else NULL */
	int userns;           /* user namespace that layers are idmapped to, -EBADF without privilege */
	uint32_t first_id;    /* host id of the sandbox's root; 0 without privilege, where the caller is that root */
	int staging;          /* an empty directory in this mount namespace; used before Linux 6.13 only */
	bool by_path;         /* as if this were such a kernel */
	int dev;              /* dsec__rootfs_dev() of this node, -EBADF to have none: then enter binds the host's nodes */
};

void dsec__rootfs_none(struct dsec__rootfs *fs);
/* Closes the mounts that were sent away. */
void dsec__rootfs_sent(struct dsec__rootfs *fs);
void dsec__rootfs_done(struct dsec__rootfs *fs);

/* A detached, read-only tmpfs with the six harmless device nodes, made once and cloned for each sandbox. Privileged. */
int dsec__rootfs_dev(struct dsec_error *err);

int dsec__rootfs_build(struct dsec__rootfs *ret_fs, const struct dsec__rootfs_plan *plan, struct dsec_error *err);

/*
 * Attaches fs over `staging` (descriptor of a directory, opened in this mount namespace), completes it and pivots into it. Afterwards nothing of the former
 * root can be reached by path. The working directory is "/".
 */
int dsec__rootfs_enter(const struct dsec__rootfs *fs, const struct dsec__image *image, const struct dsec__spec *spec,
		       int staging, struct dsec_error *err);

#endif
