/* SPDX-License-Identifier: MIT */
/*
 * Trials of namespaces and mounts for the probe. Nothing is attached anywhere: all goes when its descriptor is closed.
 */
#ifndef DSEC__TRIAL_H
#define DSEC__TRIAL_H

/* What a process in new user and mount namespaces found: 0 or -errno each. */
struct dsec__trial {
	int process;   /* could it be started */
	int map;       /* could it map root to the caller: not from a process that is not dumpable, as after setuid() */
	int overlay;   /* could it make an overlay as sandboxes of ordinary users need it */
	int userns_fd; /* its user namespace, with that mapping; -EBADF on failure; the caller closes it */
};

void dsec__trial_userns(struct dsec__trial *ret);
/* As the caller itself: an overlay of descriptors over a tmpfs of its own. 0 or -errno. */
int dsec__trial_overlay(void);
/* An EROFS image in a file without name in `dir`, mounted without a loop device. */
int dsec__trial_erofs(const char *dir);
/* The owners of what `dir` holds mapped into a user namespace. */
int dsec__trial_idmap(const char *dir, int userns_fd);

#endif
