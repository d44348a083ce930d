/* SPDX-License-Identifier: MIT */
/* Between cgroot.c, which finds the base directories, and cgroup.c, which works in them. */
#ifndef DSEC__CGROOT_H
#define DSEC__CGROOT_H

#include "cgroup.h"

/*
 * Makes the base of hierarchy i again after another process, the last to use it, removed it; root->fd[i] keeps its
 * number. 0 or -errno.
 */
int dsec__cgroot_again(const struct dsec__cgroot *root, int i);

#endif
