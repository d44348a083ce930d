/* SPDX-License-Identifier: MIT */
/*
 * What could be left behind, listed before and after, one line a thing. Used around every live test and every round of the
 * fault sweep, so that what stays is told by its name.
 *
 *   descriptors, threads and children of this process; memory files that it maps
 *   launchers, keepers and agents of the node at $DSEC_ROOT (of other nodes of this machine: not ours to judge)
 *   directories of sandboxes below any "dsec" control group, unless processes of another node are in them
 *   mounts that this process sees; shared memory in /dev/shm
 *   entries of sb/ and names/ below $DSEC_ROOT
 *
 * Network and other namespaces need no line of their own: each lives by a process, a descriptor or a mount above.
 */
#ifndef TESTS_LEAK_H
#define TESTS_LEAK_H

#include <stdbool.h>
#include <stddef.h>

#define LEAK_WAIT_MS 15000 /* far above what the kernel takes on a busy machine: closing a mount waits for RCU */

struct leak {
	char **items; /* sorted */
	size_t n, cap;
};

/* Sets $DSEC_ROOT and $DSEC_IMAGES to directories of this test program below /tmp; the latter survive it. */
void leak_setup_dirs(const char *program);
void leak_remove_dirs(void);
/* Lists what is there now; release with leak_done(), which allows an empty one. */
void leak_take(struct leak *ret);
void leak_done(struct leak *l);
/* Waits up to wait_ms until nothing is there that was not before: the kernel ends namespaces behind our back. Else names
   what stayed in `why`, as far as it fits. */
bool leak_none(const struct leak *before, int wait_ms, char *why, size_t size);

#endif
