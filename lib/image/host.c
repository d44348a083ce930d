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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../node/state.h"
#include "../util/cleanup.h"
#include "../util/error.h"

#define BUILDER 1u /* raised when the tree that is made changes */
#define FILE_MAX_BYTES (1 << 20) /* larger ones in /etc are databases that no program of a sandbox needs */
#define DEPTH_MAX 8

static const struct {
	const char *path;
	mode_t mode;
} dirs[] = {
	{ "etc", 0755 },     { "usr", 0755 },     { "proc", 0555 },      { "sys", 0555 },     { "dev", 0755 },
	{ "run", 0755 },     { "tmp", 01777 },    { "root", 0700 },      { "home", 0755 },    { "home/user", 0755 },
	{ "mnt", 0755 },     { "media", 0755 },   { "opt", 0755 },       { "srv", 0755 },     { "work", 0755 },
	{ "var", 0755 },     { "var/tmp", 01777 }, { "var/lib", 0755 },  { "var/cache", 0755 }, { "var/log", 0755 },
};

/* Links into /usr on a merged system, trees of their own on others. */
static const char *const tops[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Beside the rule that only what everyone may read is copied: names whose permissions are often wrong. */
static const struct {
	const char *pattern, *reason;
} secrets[] = {
	{ "*shadow*", "password hashes" },
	{ "*-", "backups of account files" },
	{ "sudoers*", "who may become whom" },
	{ "ssh", "host keys, and which users may log in" },
	{ "*.key", "private keys" },
	{ "private", "private keys" },
	{ "*secret*", "by its name" },
	{ "*password*", "by its name" },
	{ "*credential*", "by its name" },
	{ "*token*", "by its name" },
	{ "*.keytab", "Kerberos keys" },
	{ "machine-id", "identifies the host; an empty one is written" },
	{ "auth.conf*", "package repository logins" },
	{ "netrc", "logins" },
	{ "npmrc", "package registry logins" },
	{ "pip.conf", "package registry logins" },
	{ "maven", "package registry logins" },
	{ ".*", "hidden: lock files, leftovers" },
	{ "docker", "registry logins, daemon keys" },
	{ "containers", "registry logins" },
	{ "kubernetes", "cluster keys" },
	{ "rancher", "cluster keys" },
	{ "wireguard", "private keys" },
	{ "openvpn", "private keys" },
	{ "ipsec*", "private keys" },
	{ "NetworkManager", "wireless passwords" },
	{ "wpa_supplicant", "wireless passwords" },
	{ "netplan", "wireless passwords" },
	{ "letsencrypt", "private keys" },
	{ "mysql", "maintenance login" },
	{ "postgresql*", "logins" },
	{ "puppet*", "keys" },
	{ "salt", "keys" },
	{ "munge", "the cluster's key" },
	{ "slurm*", "the cluster's keys" },
	{ "samba", "logins" },
	{ "ldap*", "logins" },
	{ "sssd", "logins" },
	{ "nslcd.conf", "logins" },
	{ "cron*", "what the host runs" },
	{ "systemd", "what the host runs" },
	{ "init.d", "what the host runs" },
	{ "rc?.d", "what the host runs" },
	{ "fstab", "the host's disks" },
	{ "crypttab", "the host's disks" },
	{ "mtab", "is /proc/self/mounts; a link of its own is made" },
	{ "environment", "may hold keys" },
};

/* Written by us: accounts that commands expect, and names without the host's network. */
static const struct {
	const char *name, *text;
} own[] = {
	{ "passwd", "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
		    "user:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n" },
	{ "hostname", "dsec\n" },
	{ "hosts", "127.0.0.1\tlocalhost dsec\n::1\tlocalhost ip6-localhost\n" },
	{ "machine-id", "" },
};

static bool is_own(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strcmp(own[i].name, name) == 0)
			return true;
	return false;
}

static bool is_secret(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		if (fnmatch(secrets[i].pattern, name, 0) == 0 && strcmp(name, "alternatives") != 0)
			return true;
	return false;
}

static int fail(struct dsec_error *err, const char *what, const char *name)
{
	return dsec__fail(err, -errno, DSEC_STEP_IMAGE, "image \"host\": %s \"%s\"", what, name);
}

static int copy_file(int from, int to, const char *name, const struct stat *st, struct dsec_error *err)
{
	AUTO_CLOSE int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	AUTO_CLOSE int out = -EBADF;
	off_t left = st->st_size;

	if (in < 0)
		return errno == EACCES || errno == ENOENT ? 0 : fail(err, "open", name);
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return fail(err, "create", name);
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n < 0)
			return fail(err, "copy", name);
		if (n == 0)
			break; /* it shrank meanwhile */
		left -= n;
	}
	return fchmod(out, st->st_mode & 0755) < 0 ? fail(err, "chmod", name) : 0;
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
	if (mkdirat(to, name, 0755) < 0)
		return fail(err, "mkdir", name);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return out < 0 ? fail(err, "open", name) : copy_tree(in, out, depth + 1, err);
}

static int copy_entry(int from, int to, const char *name, int depth, struct dsec_error *err)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_secret(name) || (depth == 0 && is_own(name)))
		return 0;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(err, "stat", name);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name, err);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 && depth < DEPTH_MAX)
		return copy_dir(from, to, name, depth, err);
	if (S_ISREG(st.st_mode) && st.st_mode & 0004 && st.st_size <= FILE_MAX_BYTES)
		return copy_file(from, to, name, &st, err);
	return 0;
}

static int copy_tree(int from, int to, int depth, struct dsec_error *err)
{
	AUTO_CLOSEDIR DIR *dir = NULL;
	int fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
	int r = 0;

	if (fd < 0 || !(dir = fdopendir(fd))) {
		r = fail(err, "read a directory of", "/etc");
		dsec__closep(&fd);
		return r;
	}
	for (struct dirent *e; r == 0 && (e = readdir(dir));)
		r = copy_entry(from, to, e->d_name, depth, err);
	return r;
}

static int write_own(int etc, struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		AUTO_CLOSE int fd = openat(etc, own[i].name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		size_t n = strlen(own[i].text);

		if (fd < 0 || fchmod(fd, 0644) < 0 || write(fd, own[i].text, n) != (ssize_t)n)
			return fail(err, "write", own[i].name);
	}
	return symlinkat("/proc/self/mounts", etc, "mtab") < 0 ? fail(err, "symlink", "mtab") : 0;
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
	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		struct stat st;

		if (fstatat(host, tops[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* this architecture has none */
		r = S_ISLNK(st.st_mode) ? copy_link(host, root, tops[i], err) : 0;
		if (r < 0)
			return r;
		if (S_ISDIR(st.st_mode) && mkdirat(root, tops[i], 0755) < 0)
			return fail(err, "mkdir", tops[i]);
	}
	etc = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (etc < 0)
		return fail(err, "open", "etc");
	r = copy_tree(host_etc, etc, 0, err);
	return r < 0 ? r : write_own(etc, err);
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
	static const char *const watched[] = { "/etc", "/etc/ld.so.cache", "/etc/alternatives", "/usr", "/bin", "/lib" };
	const uint32_t builder = BUILDER;
	uint64_t h = fnv1a(0xcbf29ce484222325u, &builder, sizeof builder);

	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		struct stat st;

		if (lstat(watched[i], &st) < 0)
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
	fd = openat(dir, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail(err, "open \"host\" in", images) : fd;
}

static int make(const char *images, const char *key, struct dsec_error *err)
{
	AUTO_CLOSE int host = open_host_dir(images, err);
	AUTO_CLOSE int root = -EBADF;
	char id[DSEC__ID_LEN + 1], part[64];
	int r;

	if (host < 0)
		return host;
	dsec__id_new(id);
	(void)snprintf(part, sizeof part, ".%s", id); /* fits */
	if (mkdirat(host, part, 0755) < 0 || fchmodat(host, part, 0755, 0) < 0)
		return fail(err, "mkdir in", images);
	root = openat(host, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = root < 0 ? fail(err, "open", part) : build(root, err);
	if (r == 0 && renameat(host, part, host, key) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = fail(err, "rename to", key);
	/* Another process may have been first: its tree is as good. */
	(void)dsec__remove_tree(host, part);
	return r;
}

int dsec__host_image(const char *images, struct dsec__image *ret_image, struct dsec_error *err)
{
	char key[20];
	int n, r;

	(void)snprintf(key, sizeof key, "%016llx", (unsigned long long)source_key()); /* fits */
	n = snprintf(ret_image->root, sizeof ret_image->root, "%s/host/%s", images, key);
	if (n >= (int)sizeof ret_image->root)
		return dsec__fail(err, -ENAMETOOLONG, DSEC_STEP_IMAGE, "images: the path is too long");
	if (access(ret_image->root, F_OK) < 0) {
		r = make(images, key, err);
		if (r < 0)
			return r;
	}
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
