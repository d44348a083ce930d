/* SPDX-License-Identifier: MIT */
/* The agent of a container before it is one: from a fresh clone in new namespaces to a locked-down pid 1. */
#ifndef DSEC__CONTAINER_H
#define DSEC__CONTAINER_H

#include "../linux/rootfs.h"
#include "../node/launcher.h"

/* Values of `channel` in DSEC__FRAME_MOUNT beside the number of a tree. */
#define DSEC__MOUNT_ROOT 1000u
#define DSEC__MOUNT_DEV 1001u

/* What the clone knows of its sandbox: copies of the keeper's memory. */
struct dsec__container {
	struct launcher *launcher;
	const struct dsec__spec *spec;
	const struct dsec__image *image;
	int socket;      /* its end of the keeper's connection */
	bool has_groups; /* commands come with a control group */
};

/* Runs in the cloned child. Never returns. */
_Noreturn void dsec__container_main(const struct dsec__container *b);

#endif
