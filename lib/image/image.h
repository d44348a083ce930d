/* SPDX-License-Identifier: MIT */
/* Images: from the name that a caller gives to the directories that a root file system is made of. */
#ifndef DSEC__IMAGE_H
#define DSEC__IMAGE_H

#include <dsec/error.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A tree that goes over a directory of the root, with a writable top of its own. */
struct dsec__image_tree {
	char source[PATH_MAX]; /* on this machine */
	char target[32];       /* below the root, without a leading slash: "usr" */
};

struct dsec__image {
	char root[PATH_MAX]; /* directory with the root file system */
	struct dsec__image_tree trees[8];
	size_t n_trees;
};

/*
 * Resolves `name`: "host", or an absolute path of a directory. images: the image directory of the node.
 *
 * "host" is this machine's /usr with its /bin, /sbin, /lib* (links into /usr, or trees of their own on a system that is
 * not merged) over a small root tree <images>/host/<key>/ that is made once (temporary name, rename; two processes at once
 * are fine) and made again when its sources change: empty standard directories, and /etc without secrets.
 *
 * Errors: -ENOENT, -ENOTDIR, -EACCES, -EINVAL (neither "host" nor absolute, "..", too long), -ENOSPC; step IMAGE.
 */
int dsec__image_resolve(const char *name, const char *images, struct dsec__image *ret_image, struct dsec_error *err);

#endif
