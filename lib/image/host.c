/* SPDX-License-Identifier: MIT */
/*
 * A root tree for this machine's own /usr: links or trees for /bin and its like, empty standard directories, and /etc
 * without secrets. Made under a temporary name and renamed, so that a half-made tree is never used; the name is a hash of
 * what it is made from, so that a change of the host makes a new one. Must not copy a file that only some may read.
 */
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../node/state.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"
#include "secret.h"

#define BUILDER 2u /* raised when the tree that is made changes */
#define FILE_MAX_BYTES (1 << 20) /* larger ones in /etc are databases that no program of a sandbox needs */
#define LARGE_MAX_BYTES (64 << 20)
#define DEPTH_MAX 8
#define USER 1000u /* the id of "user" */
#define STALE_SECONDS 3600 /* a build takes less than one: what is older was left by a process that died */

static const struct {
	const char *path;
	mode_t mode;
} dirs[] = {
	{ "etc", 0755 },     { "usr", 0755 },       { "proc", 0555 },    { "sys", 0555 },       { "dev", 0755 },
	{ "run", 0755 },     { "run/lock", 01777 }, { "tmp", 01777 },    { "root", 0700 },      { "home", 0755 },
	{ "mnt", 0755 },     { "media", 0755 },     { "opt", 0755 },     { "srv", 0755 },       { "work", 0755 },
	{ "var", 0755 },     { "var/tmp", 01777 },  { "var/lib", 0755 }, { "var/cache", 0755 }, { "var/log", 0755 },
	{ "home/user", 0755 },
};

/* Links into /usr on a merged system, trees of their own on others. */
static const char *const tops[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Where programs still look for what has moved. */
static const struct {
	const char *path, *target;
} links[] = {
	{ "var/run", "/run" },
	{ "var/lock", "/run/lock" },
	{ "etc/mtab", "/proc/self/mounts" },
};

/* What may be larger than FILE_MAX_BYTES. */
static const char *const large[] = { "ld.so.cache", "ca-certificates.crt", "ca-bundle*", "*.pem", "cacerts" };

/* Written by us: accounts that commands expect, and names without the host's network. */
static const struct {
	const char *name, *text;
} own[] = {
	{ "passwd", "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
		    "user:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n" },
	{ "hostname", "dsec\n" },
	{ "hosts", "127.0.0.1\tlocalhost dsec\n::1\tlocalhost ip6-localhost\n" },
	{ "machine-id", "" }, /* the host's identifies it */
};

static bool is_own(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strcmp(own[i].name, name) == 0)
			return true;
	return strcmp(name, "mtab") == 0; /* one of links[] */
}

static int fail(struct dsec_error *err, const char *what, const char *name)
{
	return dsec__fail(err, -errno, DSEC_STEP_IMAGE, "image \"host\": %s \"%s\"", what, name);
}

static off_t size_limit(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(large); i++)
		if (fnmatch(large[i], name, 0) == 0)
			return LARGE_MAX_BYTES;
	return FILE_MAX_BYTES;
}

/* Reads up to n bytes; fewer when the file shrank meanwhile. */
static ssize_t read_all(int fd, char *buf, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t r = read(fd, buf + have, n - have);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		have += (size_t)r;
	}
	return (ssize_t)have;
}

static int new_file(int dir, const char *name, const char *data, size_t n, mode_t mode, struct dsec_error *err)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return fail(err, "create", name);
	while (n) {
		ssize_t w = write(fd, data, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return fail(err, "write", name);
		data += w;
		n -= (size_t)w;
	}
	return fchmod(fd, mode) < 0 ? fail(err, "chmod", name) : 0;
}

/* All is judged by the open file, which nobody can exchange any more. nofollow: O_NOFOLLOW or 0. */
static int copy_file(int from, int to, const char *name, int nofollow, struct dsec_error *err)
{
	AUTO_CLOSE int in = openat(from, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | nofollow);
	AUTO_FREE char *data = NULL;
	struct stat st;
	ssize_t n;

	if (in < 0)
		return errno == EACCES || errno == ENOENT || errno == ELOOP ? 0 : fail(err, "open", name);
	if (fstat(in, &st) < 0)
		return fail(err, "stat", name);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0004) || st.st_size > size_limit(name))
		return 0;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "image \"host\": copy \"%s\"", name);
	n = read_all(in, data, (size_t)st.st_size);
	if (n < 0)
		return fail(err, "read", name);
	if (dsec__secret_text(data, (size_t)n, NULL))
		return 0;
	return new_file(to, name, data, (size_t)n, st.st_mode & 0755, err);
}

static int copy_link(int from, int to, const char *name, struct dsec_error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof target - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : fail(err, "readlink", name);
	target[n] = 0;
	return symlinkat(target, to, name) < 0 ? fail(err, "symlink", name) : 0;
}

static int copy_tree(int from, int to, int depth, struct dsec_error *err);

static int copy_dir(int from, int to, const char *name, int depth, struct dsec_error *err)
{
	AUTO_CLOSE int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int out = -EBADF;

	if (in < 0)
		return errno == EACCES || errno == ENOENT ? 0 : fail(err, "open", name);
	if (mkdirat(to, name, 0755) < 0 || fchmodat(to, name, 0755, 0) < 0) /* whatever the umask */
		return fail(err, "mkdir", name);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return out < 0 ? fail(err, "open", name) : copy_tree(in, out, depth + 1, err);
}

static int copy_entry(int from, int to, const char *name, int depth, struct dsec_error *err)
{
	struct stat st;

	if (dsec__secret_name(name, NULL) || (depth == 0 && is_own(name)))
		return 0;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(err, "stat", name);
	/* Often a link into /run, where a sandbox has nothing. */
	if (depth == 0 && strcmp(name, "resolv.conf") == 0)
		return copy_file(from, to, name, 0, err);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name, err);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 && depth < DEPTH_MAX)
		return copy_dir(from, to, name, depth, err);
	return S_ISREG(st.st_mode) ? copy_file(from, to, name, O_NOFOLLOW, err) : 0;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int copy_tree(int from, int to, int depth, struct dsec_error *err)
{
	AUTO_CLOSEDIR DIR *dir = NULL;
	int fd = fcntl(from, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || !(dir = fdopendir(fd))) {
		int r = fail(err, "read a directory of", "/etc");

		dsec__closep(&fd);
		return r;
	}
	for (;;) {
		struct dirent *e;
		int r;

		errno = 0;
		e = readdir(dir);
		if (!e)
			return errno ? fail(err, "read a directory of", "/etc") : 0;
		r = is_dots(e->d_name) ? 0 : copy_entry(from, to, e->d_name, depth, err);
		if (r < 0)
			return r;
	}
}

/* The parts that come from no file of the host. */
static int write_own(int root, int etc, struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		int r = new_file(etc, own[i].name, own[i].text, strlen(own[i].text), 0644, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].target, root, links[i].path) < 0)
			return fail(err, "symlink", links[i].path);
	if (geteuid() == 0)
		(void)fchownat(root, "home/user", USER, USER, 0); /* where this user id is not mapped it stays root's */
	return 0;
}

static int build_tops(int root, int host, struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		struct stat st;
		int r;

		if (fstatat(host, tops[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* this architecture has none */
		r = S_ISLNK(st.st_mode) ? copy_link(host, root, tops[i], err) : 0;
		if (r < 0)
			return r;
		if (S_ISDIR(st.st_mode) && (mkdirat(root, tops[i], 0755) < 0 || fchmodat(root, tops[i], 0755, 0) < 0))
			return fail(err, "mkdir", tops[i]);
	}
	return 0;
}

/* Fills the new, empty directory `root`. */
static int build(int root, struct dsec_error *err)
{
	AUTO_CLOSE int host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int host_etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int etc = -EBADF;
	int r;

	if (host < 0 || host_etc < 0)
		return fail(err, "open", "/etc");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(root, dirs[i].path, dirs[i].mode) < 0 || fchmodat(root, dirs[i].path, dirs[i].mode, 0) < 0)
			return fail(err, "mkdir", dirs[i].path);
	r = build_tops(root, host, err);
	if (r < 0)
		return r;
	etc = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (etc < 0)
		return fail(err, "open", "etc");
	r = copy_tree(host_etc, etc, 0, err);
	return r < 0 ? r : write_own(root, etc, err);
}

static uint64_t fnv1a(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

/* Changes with the builder and with what a package manager touches in /etc. */
static uint64_t source_key(void)
{
	/* resolv.conf is copied through its link, so that what it points to counts */
	static const struct {
		const char *path;
		int flags;
	} watched[] = {
		{ "/etc", AT_SYMLINK_NOFOLLOW },
		{ "/etc/ld.so.cache", AT_SYMLINK_NOFOLLOW },
		{ "/etc/alternatives", AT_SYMLINK_NOFOLLOW },
		{ "/etc/ssl/certs", 0 },
		{ "/etc/resolv.conf", 0 },
		{ "/usr", AT_SYMLINK_NOFOLLOW },
		{ "/bin", AT_SYMLINK_NOFOLLOW },
		{ "/lib", AT_SYMLINK_NOFOLLOW },
	};
	const uint32_t builder = BUILDER;
	uint64_t h = fnv1a(0xcbf29ce484222325u, &builder, sizeof builder);

	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		struct stat st;

		if (fstatat(AT_FDCWD, watched[i].path, &st, watched[i].flags) < 0)
			continue;
		h = fnv1a(h, &st.st_ino, sizeof st.st_ino);
		h = fnv1a(h, &st.st_mtim.tv_sec, sizeof st.st_mtim.tv_sec);
		h = fnv1a(h, &st.st_mtim.tv_nsec, sizeof st.st_mtim.tv_nsec);
	}
	return h;
}

static int open_host_dir(const char *images, struct dsec_error *err)
{
	AUTO_CLOSE int dir = open(images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (dir < 0)
		return fail(err, "open", images);
	if (mkdirat(dir, "host", 0755) < 0 && errno != EEXIST)
		return fail(err, "mkdir in", images);
	fd = openat(dir, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? fail(err, "open \"host\" in", images) : fd;
}

/* Removes the half-made trees of processes that died. */
static void sweep(int host)
{
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(host, ".");

	for (struct dirent *e; dir && (e = readdir(dir));) {
		struct stat st;

		if (e->d_name[0] == '.' && !is_dots(e->d_name) && fstatat(host, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    time(NULL) - st.st_mtime > STALE_SECONDS)
			(void)dsec__remove_tree(host, e->d_name); /* another process may be at it too */
	}
}

static int make(const char *images, const char *key, struct dsec_error *err)
{
	AUTO_CLOSE int host = open_host_dir(images, err);
	AUTO_CLOSE int root = -EBADF;
	char id[DSEC__ID_LEN + 1], part[64];
	int r;

	if (host < 0)
		return host;
	sweep(host);
	dsec__id_new(id);
	(void)snprintf(part, sizeof part, ".%s", id); /* fits */
	if (mkdirat(host, part, 0755) < 0 || fchmodat(host, part, 0755, 0) < 0)
		return fail(err, "mkdir in", images);
	root = openat(host, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = root < 0 ? fail(err, "open", part) : build(root, err);
	if (r == 0 && renameat(host, part, host, key) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = fail(err, "rename to", key);
	/* Another process may have been first: its tree is as good. Removing needs descriptors; an empty one needs none. */
	dsec__closep(&root);
	if (unlinkat(host, part, AT_REMOVEDIR) < 0)
		(void)dsec__remove_tree(host, part);
	return r;
}

/* 1 when the tree is there, 0 when not. A tree that another user could change is refused. */
static int is_made(const char *root, struct dsec_error *err)
{
	struct stat st;

	if (lstat(root, &st) < 0)
		return errno == ENOENT ? 0 : fail(err, "stat", root);
	if (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
		return dsec__fail(err, -EPERM, DSEC_STEP_IMAGE, "image \"host\": \"%s\" belongs to user %u", root, st.st_uid);
	return 1;
}

int dsec__host_image(const char *images, struct dsec__image *ret_image, struct dsec_error *err)
{
	char key[20];
	int n, r;

	(void)snprintf(key, sizeof key, "%016llx", (unsigned long long)source_key()); /* fits */
	n = snprintf(ret_image->root, sizeof ret_image->root, "%s/host/%s", images, key);
	if (n >= (int)sizeof ret_image->root)
		return dsec__fail(err, -EINVAL, DSEC_STEP_IMAGE, "images: the path is too long");
	r = is_made(ret_image->root, err);
	if (r == 0)
		r = make(images, key, err);
	if (r < 0)
		return r;
	(void)strcpy(ret_image->trees[0].source, "/usr"); /* fit, as the following */
	(void)strcpy(ret_image->trees[0].target, "usr");
	ret_image->n_trees = 1;
	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		struct dsec__image_tree *t = &ret_image->trees[ret_image->n_trees];
		struct stat st;

		(void)snprintf(t->source, sizeof t->source, "/%s", tops[i]);
		(void)snprintf(t->target, sizeof t->target, "%s", tops[i]);
		if (lstat(t->source, &st) == 0 && S_ISDIR(st.st_mode))
			ret_image->n_trees++;
	}
	return 0;
}
