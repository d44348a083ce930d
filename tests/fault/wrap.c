/* SPDX-License-Identifier: MIT */
/*
 * Fault points. The fault variants of library and helper are linked with --wrap for each symbol of wrapped.mk, so that each
 * of our own calls of it comes here first; the C library's calls of itself do not. A function
 * of libseccomp or libcap-ng is one call; what it calls in turn is not counted. A small file that all processes map ($DSEC_FAULT_FILE) counts the calls while it is armed and says which one
 * fails. A call that fails is not made: what it would have done is not done by half.
 */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

static __thread bool in_library;

static bool hit(const char *name)
{
	struct fault *f = shared();

	if (!f || !f->armed || in_library || __atomic_add_fetch(&f->seen, 1, __ATOMIC_SEQ_CST) != f->target)
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
WRAP_NULL(void *, reallocarray, ENOMEM, (void *p, size_t n, size_t m), (p, n, m))
WRAP_NULL(char *, strdup, ENOMEM, (const char *s), (s))
WRAP_NULL(FILE *, fopen, EMFILE, (const char *p, const char *m), (p, m))
WRAP_NULL(DIR *, fdopendir, ENOMEM, (int fd), (fd))
WRAP(int, open, EMFILE, (const char *p, int f, mode_t m), (p, f, m))
WRAP(int, openat, EMFILE, (int d, const char *p, int f, mode_t m), (d, p, f, m))
WRAP(int, mkdir, ENOSPC, (const char *p, mode_t m), (p, m))
WRAP(int, mkdirat, ENOSPC, (int d, const char *p, mode_t m), (d, p, m))
WRAP(int, rename, EIO, (const char *p, const char *q), (p, q))
WRAP(int, renameat, EIO, (int a, const char *p, int b, const char *q), (a, p, b, q))
WRAP(int, renameat2, EIO, (int a, const char *p, int b, const char *q, unsigned int f), (a, p, b, q, f))
WRAP(ssize_t, getline, ENOMEM, (char **l, size_t *n, FILE *f), (l, n, f))
WRAP(int, unlink, EIO, (const char *p), (p))
WRAP(int, unlinkat, EIO, (int d, const char *p, int f), (d, p, f))
WRAP(int, symlinkat, ENOSPC, (const char *t, int d, const char *p), (t, d, p))
WRAP(ssize_t, readlinkat, EIO, (int d, const char *p, char *b, size_t n), (d, p, b, n))
WRAP(int, mknodat, ENOSPC, (int d, const char *p, mode_t m, dev_t v), (d, p, m, v))
WRAP(int, fchown, EIO, (int fd, uid_t u, gid_t g), (fd, u, g))
WRAP(int, fchmod, EIO, (int fd, mode_t m), (fd, m))
WRAP(int, fchownat, EIO, (int d, const char *p, uid_t u, gid_t g, int f), (d, p, u, g, f))
WRAP(int, fchmodat, EIO, (int d, const char *p, mode_t m, int f), (d, p, m, f))
WRAP(int, fstat, EIO, (int fd, struct stat *s), (fd, s))
WRAP(int, fstatat, EIO, (int d, const char *p, struct stat *s, int f), (d, p, s, f))
WRAP(int, faccessat, EIO, (int d, const char *p, int m, int f), (d, p, m, f))
WRAP(int, ftruncate, ENOSPC, (int fd, off_t n), (fd, n))
WRAP(ssize_t, pread, EIO, (int fd, void *p, size_t n, off_t o), (fd, p, n, o))
WRAP(ssize_t, write, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pwrite, ENOSPC, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o))
WRAP(ssize_t, send, ENOBUFS, (int fd, const void *p, size_t n, int f), (fd, p, n, f))
WRAP(ssize_t, sendmsg, ENOBUFS, (int fd, const struct msghdr *m, int f), (fd, m, f))
WRAP(ssize_t, recvmsg, ENOMEM, (int fd, struct msghdr *m, int f), (fd, m, f))
WRAP(int, socket, EMFILE, (int d, int t, int p), (d, t, p))
WRAP(int, socketpair, EMFILE, (int d, int t, int p, int *v), (d, t, p, v))
WRAP(int, bind, EADDRINUSE, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, listen, EIO, (int fd, int n), (fd, n))
WRAP(int, setsockopt, ENOBUFS, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n))
WRAP(int, connect, ECONNREFUSED, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, accept4, EMFILE, (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f))
WRAP(int, pipe2, EMFILE, (int *v, int f), (v, f))
WRAP(int, dup2, EMFILE, (int a, int b), (a, b))
WRAP(int, dup3, EMFILE, (int a, int b, int f), (a, b, f))
WRAP(int, fcntl, EMFILE, (int fd, int c, long a), (fd, c, a))
WRAP(int, ioctl, EIO, (int fd, unsigned long c, long a), (fd, c, a))
WRAP(pid_t, fork, EAGAIN, (void), ())
WRAP(int, execve, ENOMEM, (const char *p, char *const *a, char *const *e), (p, a, e))
WRAP(int, poll, ENOMEM, (struct pollfd *p, nfds_t n, int t), (p, n, t))
WRAP(int, memfd_create, EMFILE, (const char *n, unsigned int f), (n, f))
WRAP(int, epoll_create1, EMFILE, (int f), (f))
WRAP(int, epoll_ctl, ENOMEM, (int e, int op, int fd, void *ev), (e, op, fd, ev))
WRAP(int, epoll_wait, EINTR, (int e, void *v, int n, int t), (e, v, n, t))
WRAP(int, sigprocmask, EINVAL, (int h, const sigset_t *s, sigset_t *o), (h, s, o))
WRAP(int, setgroups, ENOMEM, (size_t n, const gid_t *g), (n, g))
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
WRAP(long, syscall, ENOMEM, (long n, long a, long b, long c, long d, long e, long f), (n, a, b, c, d, e, f))
WRAP(int, prctl, EPERM, (int o, long a, long b, long c, long d), (o, a, b, c, d))

/* Those whose failure looks otherwise. */

extern void *__real_mmap(void *a, size_t n, int p, int f, int fd, off_t o);
void *__wrap_mmap(void *a, size_t n, int p, int f, int fd, off_t o);
void *__wrap_mmap(void *a, size_t n, int p, int f, int fd, off_t o)
{
	if (hit("mmap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(a, n, p, f, fd, o);
}

/* Letting go of a lock that is held cannot fail. */
extern int __real_flock(int fd, int op);
int __wrap_flock(int fd, int op);
int __wrap_flock(int fd, int op)
{
	if (!(op & LOCK_UN) && hit("flock")) {
		errno = EIO;
		return -1;
	}
	return __real_flock(fd, op);
}

/* From a terminal EIO is no failure: it says that the other side is closed. */
extern ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n)
{
	if (hit("read")) {
		errno = isatty(fd) ? ENOMEM : EIO;
		return -1;
	}
	return __real_read(fd, p, n);
}

extern int __real_posix_fallocate(int fd, off_t o, off_t n);
int __wrap_posix_fallocate(int fd, off_t o, off_t n);
int __wrap_posix_fallocate(int fd, off_t o, off_t n)
{
	return hit("posix_fallocate") ? ENOSPC : __real_posix_fallocate(fd, o, n);
}

extern int __real_posix_spawn(pid_t *p, const char *f, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t,
			      char *const *v, char *const *e);
int __wrap_posix_spawn(pid_t *p, const char *f, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t,
		       char *const *v, char *const *e);
int __wrap_posix_spawn(pid_t *p, const char *f, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *t,
		       char *const *v, char *const *e)
{
	return hit("posix_spawn") ? EAGAIN : __real_posix_spawn(p, f, a, t, v, e);
}

int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int r;

	if (hit("asprintf")) {
		errno = ENOMEM;
		return -1;
	}
	va_start(ap, fmt);
	r = vasprintf(ret, fmt, ap);
	va_end(ap);
	return r;
}

/* Its further arguments are those of the flags that are given: absent ones are passed on unread. */
extern int __real_clone(int (*fn)(void *), void *stack, int flags, void *arg, long a, long b, long c);
int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, long a, long b, long c);
int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, long a, long b, long c)
{
	if (hit("clone")) {
		errno = EAGAIN;
		return -1;
	}
	return __real_clone(fn, stack, flags, arg, a, b, c);
}

/* Functions of other libraries: weak, because the library's half links none of them. */
#define WRAP_LIBRARY(type, name, failure, params, args)                                                                \
	extern __attribute__((weak)) type __real_##name params;                                                        \
	type __wrap_##name params;                                                                                     \
	type __wrap_##name params                                                                                      \
	{                                                                                                              \
		type r;                                                                                                \
		if (hit(#name)) {                                                                                      \
			errno = ENOMEM;                                                                                \
			return failure;                                                                                \
		}                                                                                                      \
		in_library = true;                                                                                     \
		r = __real_##name args;                                                                                \
		in_library = false;                                                                                    \
		return r;                                                                                              \
	}

WRAP_LIBRARY(void *, seccomp_init, NULL, (uint32_t action), (action))
WRAP_LIBRARY(int, seccomp_merge, -ENOMEM, (void *a, void *b), (a, b))
WRAP_LIBRARY(int, seccomp_attr_set, -EINVAL, (void *c, int a, uint32_t v), (c, a, v))
WRAP_LIBRARY(int, seccomp_arch_add, -ENOMEM, (void *c, uint32_t a), (c, a))
WRAP_LIBRARY(int, seccomp_arch_remove, -ENOMEM, (void *c, uint32_t a), (c, a))
WRAP_LIBRARY(int, seccomp_rule_add_array, -ENOMEM, (void *c, uint32_t a, int n, unsigned int k, const void *v), (c, a, n, k, v))
WRAP_LIBRARY(int, seccomp_export_bpf, -ENOMEM, (void *c, int fd), (c, fd))
WRAP_LIBRARY(int, capng_update, -1, (int a, int t, unsigned int c), (a, t, c))
WRAP_LIBRARY(int, capng_apply, -1, (int s), (s))
