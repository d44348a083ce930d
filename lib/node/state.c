/* SPDX-License-Identifier: MIT */
/* The state directory: making and opening it. Its sandboxes' directories are in sbdir.c. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"

#define SHM_MAGIC 0x316d687363657364ull /* "dsecshm1" */
#define NODE_MAGIC "dsec-node 1\n"

static int choose(char out[PATH_MAX], const char *option, const char *field, const char *variable, const char *system,
		  const char *user_variable, const char *user_fallback, struct dsec_error *err)
{
	const char *given = option ? option : secure_getenv(variable);
	const char *base = secure_getenv(user_variable);
	const char *home = secure_getenv("HOME");
	int n;

	if (given)
		n = snprintf(out, PATH_MAX, "%s", given);
	else if (geteuid() == 0)
		n = snprintf(out, PATH_MAX, "%s", system);
	else if (base && *base == '/')
		n = snprintf(out, PATH_MAX, "%s/dsec", base);
	else if (user_fallback && home && *home == '/')
		n = snprintf(out, PATH_MAX, "%s/%s/dsec", home, user_fallback);
	else if (!user_fallback)
		n = snprintf(out, PATH_MAX, "/tmp/dsec-%u", (unsigned int)geteuid());
	else
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "%s: neither $%s, $%s nor $HOME is set", field,
				  variable, user_variable);
	if (n >= PATH_MAX)
		return dsec__fail(err, -ENAMETOOLONG, DSEC_STEP_OPTIONS, "%s: over %d bytes", field, PATH_MAX - 1);
	if (out[0] != '/')
		return dsec__fail(err, -EINVAL, DSEC_STEP_OPTIONS, "%s: \"%s\" is not an absolute path", field, given);
	return 0;
}

int dsec__state_paths(struct dsec__state *st, const char *root, const char *images, struct dsec_error *err)
{
	int r = choose(st->root, root, "root", "DSEC_ROOT", "/run/dsec", "XDG_RUNTIME_DIR", NULL, err);

	return r < 0 ? r : choose(st->images, images, "images", "DSEC_IMAGES", "/var/lib/dsec", "XDG_DATA_HOME",
				  ".local/share", err);
}

/* mkdir -p; directories that we make are ours alone. */
static int make_path(const char *path, struct dsec_error *err)
{
	char part[PATH_MAX];

	(void)snprintf(part, sizeof part, "%s", path); /* choose() has checked the length */
	for (char *p = part + 1;; p++) {
		char c = *p;

		if (c != '/' && c != 0)
			continue;
		*p = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return dsec__fail(err, -errno, DSEC_STEP_NODE, "mkdir \"%s\"", part);
		*p = c;
		if (!c)
			return 0;
	}
}

static void boot_id(char buf[64])
{
	AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, 63);

	buf[n > 0 ? n : 0] = 0;
}

/* 1, 0 or -errno. */
static int is_empty(int parent, const char *name)
{
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(parent, name);
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return 0;
	return 1;
}

/* Reads the node file; makes it in an empty directory. Tells whether the rest is of a former boot. */
static int node_file(struct dsec__state *st, bool *ret_stale, struct dsec_error *err)
{
	char want[128], have[128] = "", boot[64];
	AUTO_CLOSE int fd = openat(st->root_fd, "node", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	boot_id(boot);
	(void)snprintf(want, sizeof want, NODE_MAGIC "boot %s", boot); /* fits */
	if (fd < 0 && errno != ENOENT)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "open \"%s/node\"", st->root);
	if (fd < 0) {
		int r = is_empty(st->root_fd, ".");

		if (r <= 0)
			return dsec__fail(err, r < 0 ? r : -EUCLEAN, DSEC_STEP_NODE, r < 0 ? "read \"%s\"" :
					  "root: \"%s\" is not empty and is not a dsec node", st->root);
		fd = openat(st->root_fd, "node", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return dsec__fail(err, -errno, DSEC_STEP_NODE, "create \"%s/node\"", st->root);
	}
	n = pread(fd, have, sizeof have - 1, 0);
	if (n < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "read \"%s/node\"", st->root);
	if (n > 0 && strncmp(have, NODE_MAGIC, strlen(NODE_MAGIC)) != 0)
		return dsec__fail(err, -EUCLEAN, DSEC_STEP_NODE, "root: \"%s/node\" is of no known version", st->root);
	/* Without a boot id nothing tells that the rest is stale: what lives must not be thrown away. */
	*ret_stale = n == 0 || (boot[0] && strcmp(have, want) != 0);
	if (*ret_stale && (pwrite(fd, want, strlen(want), 0) < 0 || ftruncate(fd, (off_t)strlen(want)) < 0))
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "write \"%s/node\"", st->root);
	return 0;
}

/* A block that is not as we made it while sandboxes have ranges of ids: those could be given to others. */
static int shm_make(struct dsec__state *st, int fd, bool stale, struct dsec_error *err)
{
	int r = stale ? 1 : is_empty(st->root_fd, "sb");

	if (r <= 0)
		return dsec__fail(err, r < 0 ? r : -EUCLEAN, DSEC_STEP_NODE,
				  "\"%s/shm\" is missing or damaged while sandboxes may live: stop them, then remove \"%s\"",
				  st->root, st->root);
	if (ftruncate(fd, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "truncate \"%s/shm\"", st->root);
	do /* and not ftruncate: a full file system must be an error here and not SIGBUS in whoever touches the map */
		r = posix_fallocate(fd, 0, (off_t)sizeof *st->shm);
	while (r == EINTR);
	return r ? dsec__fail(err, -r, DSEC_STEP_NODE, "allocate \"%s/shm\"", st->root) : 0;
}

static int shm_open_file(struct dsec__state *st, bool stale, struct dsec_error *err)
{
	AUTO_CLOSE int fd = openat(st->root_fd, "shm", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	uint64_t magic = 0;
	struct stat sb;
	void *p;

	if (fd < 0 || fstat(fd, &sb) < 0 || pread(fd, &magic, sizeof magic, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "open \"%s/shm\"", st->root);
	if (stale || sb.st_size != (off_t)sizeof *st->shm || magic != SHM_MAGIC) {
		int r = shm_make(st, fd, stale, err);

		if (r < 0)
			return r;
	}
	p = mmap(NULL, sizeof *st->shm, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "map \"%s/shm\"", st->root);
	st->shm = p;
	st->shm->magic = SHM_MAGIC;
	return 0;
}

static int subdir(struct dsec__state *st, const char *name, int *ret_fd, struct dsec_error *err)
{
	AUTO_CLOSE int fd = -EBADF;

	if (mkdirat(st->root_fd, name, 0700) < 0 && errno != EEXIST)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "mkdir \"%s/%s\"", st->root, name);
	fd = openat(st->root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NODE, "open \"%s/%s\"", st->root, name);
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_locked(struct dsec__state *st, struct dsec_error *err)
{
	bool stale = false;
	int r;

	while (flock(st->root_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return dsec__fail(err, -errno, DSEC_STEP_NODE, "lock \"%s\"", st->root);
	r = node_file(st, &stale, err);
	if (r == 0)
		r = subdir(st, "sb", &st->sb_fd, err);
	if (r == 0)
		r = subdir(st, "names", &st->names_fd, err);
	if (r == 0)
		r = subdir(st, "mnt", NULL, err);
	if (r == 0)
		r = shm_open_file(st, stale, err);
	(void)flock(st->root_fd, LOCK_UN); /* closing would let go of it too */
	return r;
}

int dsec__state_open(struct dsec__state *st, struct dsec_error *err)
{
	struct stat sb;
	int r;

	st->root_fd = st->sb_fd = st->names_fd = -EBADF;
	st->shm = NULL;
	r = make_path(st->root, err);
	if (r < 0)
		return r;
	st->root_fd = open(st->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (st->root_fd < 0 || fstat(st->root_fd, &sb) < 0)
		r = dsec__fail(err, -errno, DSEC_STEP_NODE, "open \"%s\"", st->root);
	else if (sb.st_uid != geteuid())
		r = dsec__fail(err, -EACCES, DSEC_STEP_NODE, "root: \"%s\" belongs to user %u", st->root, sb.st_uid);
	else
		r = open_locked(st, err);
	if (r == 0)
		r = make_path(st->images, err);
	if (r < 0)
		dsec__state_close(st);
	return r;
}

void dsec__state_close(struct dsec__state *st)
{
	if (st->shm)
		(void)munmap(st->shm, sizeof *st->shm);
	st->shm = NULL;
	dsec__closep(&st->names_fd);
	dsec__closep(&st->sb_fd);
	dsec__closep(&st->root_fd);
}
