/* SPDX-License-Identifier: MIT */
/*
 * Fault points. The fault variants of library and helper are linked with --wrap for each symbol of wrapped.mk, so that each
 * of our own calls of it comes here first (the C library's calls of itself do not). A small file that all processes map
 * ($DSEC_FAULT_FILE) counts the calls while it is armed and says which one fails.
 */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern long __real_syscall(long n, long a, long b, long c, long d, long e, long f);

static struct fault *shared(void)
{
	static struct fault *f;
	const char *path;
	long fd, p;

	if (f)
		return f;
	path = getenv("DSEC_FAULT_FILE");
	if (!path)
		return NULL;
	fd = __real_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0); /* not through ourselves */
	if (fd < 0)
		return NULL;
	p = __real_syscall(SYS_mmap, 0, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)__real_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	if (p == -1)
		return NULL;
	f = (struct fault *)p;
	return f;
}

static bool hit(const char *name)
{
	struct fault *f = shared();

	if (!f || !f->armed || __atomic_add_fetch(&f->seen, 1, __ATOMIC_SEQ_CST) != f->target)
		return false;
	(void)strncpy(f->name, name, sizeof f->name - 1);
	__atomic_store_n(&f->fired, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* The error is of a kind that the call can give. */
#define WRAP(type, name, error, params, args)                                                                          \
	extern type __real_##name params;                                                                              \
	type __wrap_##name params;                                                                                     \
	type __wrap_##name params                                                                                      \
	{                                                                                                              \
		if (hit(#name)) {                                                                                      \
			errno = error;                                                                                 \
			return (type)-1;                                                                               \
		}                                                                                                      \
		return __real_##name args;                                                                             \
	}

#define WRAP_NULL(type, name, error, params, args)                                                                     \
	extern type __real_##name params;                                                                              \
	type __wrap_##name params;                                                                                     \
	type __wrap_##name params                                                                                      \
	{                                                                                                              \
		if (hit(#name)) {                                                                                      \
			errno = error;                                                                                 \
			return NULL;                                                                                   \
		}                                                                                                      \
		return __real_##name args;                                                                             \
	}

WRAP_NULL(void *, malloc, ENOMEM, (size_t n), (n))
WRAP_NULL(void *, calloc, ENOMEM, (size_t n, size_t m), (n, m))
WRAP_NULL(void *, realloc, ENOMEM, (void *p, size_t n), (p, n))
WRAP_NULL(char *, strdup, ENOMEM, (const char *s), (s))
WRAP(int, open, EMFILE, (const char *p, int f, mode_t m), (p, f, m))
WRAP(int, openat, EMFILE, (int d, const char *p, int f, mode_t m), (d, p, f, m))
WRAP(int, mkdir, ENOSPC, (const char *p, mode_t m), (p, m))
WRAP(int, mkdirat, ENOSPC, (int d, const char *p, mode_t m), (d, p, m))
WRAP(int, renameat, EIO, (int a, const char *p, int b, const char *q), (a, p, b, q))
WRAP(int, unlinkat, EIO, (int d, const char *p, int f), (d, p, f))
WRAP(int, symlinkat, ENOSPC, (const char *t, int d, const char *p), (t, d, p))
WRAP(int, fchownat, EIO, (int d, const char *p, uid_t u, gid_t g, int f), (d, p, u, g, f))
WRAP(int, fchmodat, EIO, (int d, const char *p, mode_t m, int f), (d, p, m, f))
WRAP(ssize_t, read, EIO, (int fd, void *p, size_t n), (fd, p, n))
WRAP(ssize_t, write, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pwrite, ENOSPC, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o))
WRAP(ssize_t, send, ENOBUFS, (int fd, const void *p, size_t n, int f), (fd, p, n, f))
WRAP(ssize_t, sendmsg, ENOBUFS, (int fd, const struct msghdr *m, int f), (fd, m, f))
WRAP(ssize_t, recvmsg, ENOMEM, (int fd, struct msghdr *m, int f), (fd, m, f))
WRAP(int, socket, EMFILE, (int d, int t, int p), (d, t, p))
WRAP(int, socketpair, EMFILE, (int d, int t, int p, int *v), (d, t, p, v))
WRAP(int, bind, EADDRINUSE, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, listen, EIO, (int fd, int n), (fd, n))
WRAP(int, pipe2, EMFILE, (int *v, int f), (v, f))
WRAP(int, dup2, EMFILE, (int a, int b), (a, b))
WRAP(int, fcntl, EMFILE, (int fd, int c, long a), (fd, c, a))
WRAP(int, ioctl, EIO, (int fd, unsigned long c, long a), (fd, c, a))
WRAP(int, flock, EIO, (int fd, int op), (fd, op))
WRAP(pid_t, fork, EAGAIN, (void), ())
WRAP(int, epoll_create1, EMFILE, (int f), (f))
WRAP(int, epoll_ctl, ENOMEM, (int e, int op, int fd, void *ev), (e, op, fd, ev))
WRAP(int, signalfd, EMFILE, (int fd, const void *m, int f), (fd, m, f))
WRAP(int, fsopen, EMFILE, (const char *t, unsigned int f), (t, f))
WRAP(int, fsconfig, ENOMEM, (int fd, unsigned int c, const char *k, const void *v, int a), (fd, c, k, v, a))
WRAP(int, fsmount, ENOMEM, (int fd, unsigned int f, unsigned int a), (fd, f, a))
WRAP(int, open_tree, ENOMEM, (int d, const char *p, unsigned int f), (d, p, f))
WRAP(int, move_mount, ENOMEM, (int a, const char *p, int b, const char *q, unsigned int f), (a, p, b, q, f))
WRAP(int, mount_setattr, ENOMEM, (int d, const char *p, unsigned int f, void *a, size_t n), (d, p, f, a, n))
WRAP(int, mount, ENOMEM, (const char *s, const char *t, const char *y, unsigned long f, const void *d), (s, t, y, f, d))
WRAP(int, umount2, EBUSY, (const char *t, int f), (t, f))
WRAP(int, chdir, EIO, (const char *p), (p))
WRAP(int, fchdir, EIO, (int fd), (fd))
WRAP(int, unshare, ENOSPC, (int f), (f))
WRAP(int, sethostname, EPERM, (const char *n, size_t z), (n, z))
WRAP(int, setresuid, EAGAIN, (uid_t a, uid_t b, uid_t c), (a, b, c))
WRAP(int, setresgid, EAGAIN, (gid_t a, gid_t b, gid_t c), (a, b, c))
WRAP(int, setrlimit, EPERM, (int r, const void *l), (r, l))
WRAP(int, close_range, EMFILE, (unsigned int a, unsigned int b, int f), (a, b, f))
WRAP(pid_t, setsid, EPERM, (void), ())
WRAP(int, fstat, EIO, (int fd, struct stat *s), (fd, s))
WRAP(long, syscall, ENOMEM, (long n, long a, long b, long c, long d, long e, long f), (n, a, b, c, d, e, f))
WRAP(int, prctl, EPERM, (int o, long a, long b, long c, long d), (o, a, b, c, d))
