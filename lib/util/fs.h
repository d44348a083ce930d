/* SPDX-License-Identifier: MIT */
/* Directories and whole writes. All work beneath a directory descriptor and follow no link. */
#ifndef DSEC__FS_H
#define DSEC__FS_H

#include <dirent.h>
#include <stddef.h>

/* Opens directory `name` for readdir(), the caller's (closedir()). NULL with errno. */
DIR *dsec__opendirat(int parent, const char *name);

/* Writes all of it. 0 or -errno. */
int dsec__write_all(int fd, const void *data, size_t n);

/*
 * Removes a file or a tree of any depth with a bounded number of descriptors. What cannot be removed stays. 0, also when
 * there was none, or -errno of the first failure.
 */
int dsec__remove_tree(int parent, const char *name);

#endif
