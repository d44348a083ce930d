/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing a file of the sandbox, in a process of its own inside it: whatever the path leads to, it is the
 * sandbox's. A FIFO or device is looked at before it is opened, so that nothing blocks and nothing is triggered.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void done(int error)
{
	_exit(error);
}

/* Opens without following links into processes (/proc/<pid>/root, fd/N). */
static int open_path(const char *path, uint64_t flags, mode_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode,
				.resolve = RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

	return fd < 0 ? -errno : fd;
}

static int check_regular(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? 0 : EINVAL;
}

static int reopen(int fd, int flags)
{
	char link[32];
	int r;

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* fits */
	r = open(link, flags | O_CLOEXEC | O_NOCTTY);
	return r < 0 ? -errno : r;
}

static void copy(int from, int to)
{
	static char buf[128 << 10];

	for (;;) {
		ssize_t n = read(from, buf, sizeof buf);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			done(errno);
		if (n == 0)
			return;
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(to, buf + at, (size_t)(n - at));

			if (w < 0 && errno != EINTR)
				done(errno);
			at += w < 0 ? 0 : w;
		}
	}
}

static void file_read(const char *path)
{
	int found = open_path(path, O_PATH, 0);
	int fd, bad;

	if (found < 0)
		done(-found);
	bad = check_regular(found);
	if (bad)
		done(bad);
	fd = reopen(found, O_RDONLY);
	if (fd < 0)
		done(-fd);
	copy(fd, 1);
}

static void make_parents(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof part)
		done(ENAMETOOLONG);
	memcpy(part, path, n + 1);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			done(errno);
		*p = '/';
	}
}

/* A new file is made here and now; one that exists is looked at before it is opened for writing. */
static int open_for_write(const char *path, mode_t mode)
{
	int fd = open_path(path, O_WRONLY | O_CREAT | O_EXCL, mode);
	int found, bad;

	if (fd != -EEXIST)
		return fd;
	found = open_path(path, O_PATH, 0);
	if (found == -ENOENT) /* a dangling link: what it names is to be made */
		return open_path(path, O_WRONLY | O_CREAT | O_NONBLOCK, mode);
	if (found < 0)
		return found;
	bad = check_regular(found);
	return bad ? -bad : reopen(found, O_WRONLY | O_TRUNC);
}

static void file_write(const char *path, mode_t mode)
{
	int fd;

	make_parents(path);
	fd = open_for_write(path, mode);
	if (fd < 0)
		done(-fd);
	copy(0, fd);
	if (close(fd) < 0)
		done(errno);
}

void dsec__agent_file(const struct dsec__request *q, const char *workdir)
{
	if (chdir(workdir) < 0 && q->argv[0][0] != '/')
		done(errno);
	(void)umask(0); /* modes are meant as they are given */
	if (q->kind == DSEC_EXEC_FILE_READ)
		file_read(q->argv[0]);
	else
		file_write(q->argv[0], q->mode ? q->mode & 07777 : 0644);
	done(0);
}
