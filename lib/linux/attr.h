/* SPDX-License-Identifier: MIT */
/*
 * The kernel's one-value files (cgroupfs, procfs, sysfs), relative to an open directory or absolute. errno is not used.
 */
#ifndef DSEC__ATTR_H
#define DSEC__ATTR_H

#include <stddef.h>
#include <stdint.h>

/* Writes the text in one write. 0 or -errno of open or write. */
int dsec__attr_write(int dir, const char *name, const char *text);
/* Reads at most n - 1 bytes and ends them with NUL. Their number, or -errno (buf is then an empty string). */
int dsec__attr_read(int dir, const char *name, char *buf, size_t n);
/* A file that holds one number; UINT64_MAX if it cannot be told, also for "max". */
uint64_t dsec__attr_u64(int dir, const char *name);
/* The number after `key` in a file of lines "key number"; UINT64_MAX if it cannot be told. */
uint64_t dsec__attr_field(int dir, const char *name, const char *key);

#endif
