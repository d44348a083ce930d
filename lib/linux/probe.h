/* SPDX-License-Identifier: MIT */
/* What this kernel and this user can do: found by trying, never by version. */
#ifndef DSEC__PROBE_H
#define DSEC__PROBE_H

#include <dsec/node.h>

/*
 * The body of dsec_node_probe(). root, images: directories of the node, NULL leaves their items out. Safe in a process
 * with threads and in a big one: it never copies the caller's memory. Leaves nothing behind and does not change errno.
 * (On v2, controllers that were enabled for the trial stay enabled in the parent of our groups: others may rely on them
 * by then.)
 */
int dsec__probe(const char *root, const char *images, struct dsec_probe_item *items, size_t n_items, size_t item_sz,
		struct dsec_error *err);

#endif
