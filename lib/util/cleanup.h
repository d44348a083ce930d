/* SPDX-License-Identifier: MIT */
/*
 * Ownership by attribute: a local owner is marked where it is born, ownership moves only by TAKE_*, and a function is
 * left by return. Cleanups keep errno.
 */
#ifndef DSEC__CLEANUP_H
#define DSEC__CLEANUP_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <unistd.h>

static inline void dsec__freep(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void dsec__closep(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* nothing can be done about a failed close of what we give up */
	*fd = -EBADF;
	errno = saved;
}

static inline void dsec__closedirp(DIR **d)
{
	int saved = errno;

	if (*d)
		(void)closedir(*d);
	*d = NULL;
	errno = saved;
}

static inline int dsec__take_fd(int *fd)
{
	int r = *fd;

	*fd = -EBADF;
	return r;
}

static inline void *dsec__take_ptr(void *pp)
{
	void *r = *(void **)pp;

	*(void **)pp = NULL;
	return r;
}

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define AUTO_FREE CLEANUP(dsec__freep)
#define AUTO_CLOSE CLEANUP(dsec__closep)
#define AUTO_CLOSEDIR CLEANUP(dsec__closedirp)

#define TAKE_FD(fd) dsec__take_fd(&(fd))
#define TAKE_PTR(p) ((__typeof__(p))dsec__take_ptr(&(p)))

static inline void dsec__errnop(const int *kept)
{
	errno = *kept;
}

/* First in each public call: errno is the caller's. */
#define KEEP_ERRNO CLEANUP(dsec__errnop) __attribute__((unused)) int kept_errno = errno

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
