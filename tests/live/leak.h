/* SPDX-License-Identifier: MIT */
/* What could be left behind, counted before and after. Used around every live test. */
#ifndef TESTS_LEAK_H
#define TESTS_LEAK_H

#include <stdbool.h>
#include <stddef.h>

struct leak {
	int descriptors; /* of this process */
	int children;    /* of this process */
	int processes;   /* launchers, keepers and agents of the node at $DSEC_ROOT */
	int cgroups;     /* directories of sandboxes below any "dsec" group */
	int mounts;      /* that this process sees */
	int entries;     /* below sb/ and names/ of $DSEC_ROOT */
};

/* Sets $DSEC_ROOT and $DSEC_IMAGES to directories of this test program below /tmp; the latter survive it. */
void leak_setup_dirs(const char *program);
void leak_remove_dirs(void);
void leak_count(struct leak *ret);
/* Waits up to wait_ms for all counts to be at most those of `before`: the kernel ends namespaces behind our back. Else
   describes the first that is higher in `why`. */
bool leak_none(const struct leak *before, int wait_ms, char *why, size_t size);

#endif
