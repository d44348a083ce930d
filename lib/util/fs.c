/* SPDX-License-Identifier: MIT */
/* Directories and whole writes. */
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

#define DEPTH_MAX 32 /* directories open at once; sandboxes make deeper ones than there are descriptors */

DIR *dsec__opendirat(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		dsec__closep(&fd);
	return dir;
}

int dsec__write_all(int fd, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* A tree that is being removed. What lies too deep is moved up into its root, for the next pass. */
struct removal {
	int root;
	unsigned int moved; /* how many; also the next one's name */
};

static int move_up(struct removal *t, int parent, const char *name)
{
	char up[32];

	(void)fchmodat(parent, name, 0700, 0); /* moving it writes its "..", which one of mode 0 refuses */
	do {
		(void)snprintf(up, sizeof up, ".deep-%u", t->moved++); /* fits */
		if (renameat2(parent, name, t->root, up, RENAME_NOREPLACE) == 0)
			return 0;
	} while (errno == EEXIST);
	return -errno;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_entry(struct removal *t, int parent, const char *name, int depth);

/* Removes what `dir` holds. An ordinary user's directory may be one that its owner cannot write to. */
static int empty(struct removal *t, DIR *dir, int depth)
{
	int r = 0;

	for (struct dirent *e; (e = readdir(dir));) {
		int one = is_dots(e->d_name) ? 0 : remove_entry(t, dirfd(dir), e->d_name, depth);

		if (one == -EACCES && fchmod(dirfd(dir), 0700) == 0)
			one = remove_entry(t, dirfd(dir), e->d_name, depth);
		if (one < 0 && r == 0)
			r = one;
	}
	return r;
}

/* An overlay's work directory has mode 0. */
static DIR *open_any(int parent, const char *name)
{
	DIR *dir = dsec__opendirat(parent, name);

	if (!dir && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		dir = dsec__opendirat(parent, name);
	return dir;
}

static int remove_entry(struct removal *t, int parent, const char *name, int depth)
{
	AUTO_CLOSEDIR DIR *dir = NULL;
	int r;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth == DEPTH_MAX)
		return move_up(t, parent, name);
	dir = open_any(parent, name);
	if (!dir)
		return -errno;
	r = empty(t, dir, depth + 1);
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && r == 0)
		r = -errno;
	return r;
}

int dsec__remove_tree(int parent, const char *name)
{
	AUTO_CLOSEDIR DIR *root = NULL;
	struct removal t = { 0 };
	int r = 0;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	root = open_any(parent, name);
	if (!root)
		return -errno;
	t.root = dirfd(root);
	for (unsigned int before = ~0u; t.moved != before; rewinddir(root)) {
		before = t.moved;
		r = empty(&t, root, 1);
		if (r < 0)
			break;
	}
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && r == 0)
		r = -errno;
	return r;
}
