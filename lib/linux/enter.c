/* SPDX-License-Identifier: MIT */
/*
 * Becoming a container: the agent's half of the root file system. Stages, each with what holds after it:
 *
 *   attach   the overlays and /dev lie over the staging directory        must not follow a link of the image
 *   kernel   /proc, /sys, /dev/pts, /dev/shm of our own namespaces       must precede the loss of the host's /proc
 *   mask     what tells about or reaches the host is hidden or read-only must not fail because a file is absent
 *   pivot    the host's mounts are gone from this namespace
 *
 * Targets are opened beneath the new root with openat2 and links refused: an image where /proc or /dev is a link would
 * otherwise have us mount outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../util/error.h"
#include "rootfs.h"

#define UNMAPPED 65534 /* how an id without a mapping shows */
#define QUIET (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Opens a path below `root` without following any link. */
static int beneath(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Attaches mount `mnt` on directory `path` of the new root, making the directory if the image lacks it. */
static int attach(int root, const char *path, int mnt, struct dsec_error *err)
{
	AUTO_CLOSE int at = beneath(root, path, O_PATH | O_DIRECTORY);

	if (at < 0 && errno == ENOENT && mkdirat(root, path, 0755) == 0)
		at = beneath(root, path, O_PATH | O_DIRECTORY);
	if (at < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "open mount point \"/%s\" of the image", path);
	if (move_mount(mnt, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mount \"/%s\"", path);
	return 0;
}

struct option {
	const char *key, *value;
};

static int mount_new(int root, const char *type, const struct option *opts, unsigned int attr, const char *path,
		     struct dsec_error *err)
{
	AUTO_CLOSE int fs = fsopen(type, FSOPEN_CLOEXEC);
	AUTO_CLOSE int mnt = -EBADF;

	if (fs < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsopen \"%s\"", type);
	for (; opts && opts->key; opts++)
		if (fsconfig(fs, opts->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, opts->key, opts->value, 0) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "option \"%s\" of %s", opts->key, type);
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "create %s for \"/%s\"", type, path);
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, attr);
	if (mnt < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsmount %s for \"/%s\"", type, path);
	return attach(root, path, mnt, err);
}

/* Without privilege there is no device tmpfs from the keeper: bind the host's nodes one by one. */
static int dev_bind(int root, struct dsec_error *err)
{
	static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
	static const char *const links[][2] = { { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
						{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
						{ "ptmx", "pts/ptmx" } };
	static const struct option opts[] = { { "size", "65536" }, { "nr_inodes", "64" }, { "mode", "0755" }, { 0 } };
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };
	AUTO_CLOSE int dev = -EBADF;
	int r = mount_new(root, "tmpfs", opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "dev", err);

	if (r < 0)
		return r;
	dev = beneath(root, "dev", O_PATH | O_DIRECTORY);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		char host[24];
		AUTO_CLOSE int at = openat(dev, nodes[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		AUTO_CLOSE int mnt = -EBADF;

		(void)snprintf(host, sizeof host, "/dev/%s", nodes[i]); /* fits: the longest is /dev/urandom */
		mnt = open_tree(AT_FDCWD, host, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (at < 0 || mnt < 0 ||
		    move_mount(mnt, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "bind \"%s\"", host);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i][1], dev, links[i][0]) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "symlink \"/dev/%s\"", links[i][0]);
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 01777) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir in \"/dev\"");
	if (mount_setattr(dev, "", AT_EMPTY_PATH, &ro, sizeof ro) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "make \"/dev\" read-only");
	return 0;
}

static int stage_attach(int root, const struct dsec__rootfs *fs, const struct dsec__image *image, struct dsec_error *err)
{
	for (size_t i = 0; i < image->n_trees; i++) {
		int r = attach(root, image->trees[i].target, fs->trees[i], err);

		if (r < 0)
			return r;
	}
	return fs->dev >= 0 ? attach(root, "dev", fs->dev, err) : dev_bind(root, err);
}

/* With the host's network its sysfs cannot be mounted anew by us: the host's own is bound, read-only. */
static int sys_bind(int root, struct dsec_error *err)
{
	AUTO_CLOSE int mnt = open_tree(AT_FDCWD, "/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct mount_attr ro = { .attr_set = QUIET | MOUNT_ATTR_RDONLY };

	if (mnt < 0 || mount_setattr(mnt, "", AT_EMPTY_PATH | AT_RECURSIVE, &ro, sizeof ro) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "bind \"/sys\" read-only");
	return attach(root, "sys", mnt, err);
}

static int stage_kernel(int root, const struct dsec__spec *spec, struct dsec_error *err)
{
	static const struct option pts[] = { { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" },
					      { "max", "128" }, { 0 } }; /* the machine has kernel.pty.max for all */
	static const struct option shm[] = { { "mode", "1777" }, { "size", "67108864" }, { "nr_inodes", "65536" }, { 0 } };
	int r = mount_new(root, "proc", NULL, QUIET, "proc", err);

	if (r == 0)
		r = mount_new(root, "devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "dev/pts", err);
	if (r == 0)
		r = mount_new(root, "tmpfs", shm, QUIET, "dev/shm", err);
	if (r == 0)
		r = spec->network == DSEC_NETWORK_HOST ?
			    sys_bind(root, err) :
			    mount_new(root, "sysfs", NULL, QUIET | MOUNT_ATTR_RDONLY, "sys", err);
	return r;
}

/*
 * No further namespaces below ours: the count is per user namespace, and root of a nested one would have every capability
 * over what it makes. Backs up the system call filter. Opened before /proc/sys is made read-only, written at the very
 * end: even a detached mount needs a mount namespace while it is being made. Absent files: a kernel without that kind.
 */
static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time" };

static void limits_closep(int (*fds)[ARRAY_LEN(kinds)])
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		dsec__closep(&(*fds)[i]);
}

static int limits_open(int root, int fds[ARRAY_LEN(kinds)], struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char path[64];

		(void)snprintf(path, sizeof path, "proc/sys/user/max_%s_namespaces", kinds[i]); /* fits */
		fds[i] = beneath(root, path, O_WRONLY);
		if (fds[i] < 0 && errno != ENOENT)
			return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "open \"/%s\"", path);
	}
	return 0;
}

static int limits_write(const int fds[ARRAY_LEN(kinds)], struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (fds[i] >= 0 && write(fds[i], "0", 1) != 1)
			return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "forbid further %s namespaces", kinds[i]);
	return 0;
}

enum {
	READ_ONLY,
	HIDE,
	HIDE_HOST, /* empty in a sysfs of our own; in the host's, bound with its network, other file systems lie there */
};

/* Root of a user namespace cannot open many of these anyway: they are left alone where this kernel's modes say so. */
static const struct {
	const char *path;
	int how;
} masks[] = {
	{ "proc/sys", READ_ONLY },          /* namespaced knobs stay as the agent set them */
	{ "proc/sysrq-trigger", HIDE },     /* reboots and crashes the host */
	{ "proc/bus", READ_ONLY },          /* PCI configuration space */
	{ "proc/fs", READ_ONLY },           /* tunables of the host's file systems */
	{ "proc/irq", READ_ONLY },          /* interrupt affinity of the host */
	{ "proc/acpi", HIDE },              /* power management of the host */
	{ "proc/kcore", HIDE },             /* the host's memory */
	{ "proc/kpagecount", HIDE },        /* the host's physical pages */
	{ "proc/kpageflags", HIDE },
	{ "proc/kpagecgroup", HIDE },       /* reading it has crashed kernels */
	{ "proc/kmsg", HIDE },              /* the host's log */
	{ "proc/keys", HIDE },              /* keyrings are not per user namespace in all kernels */
	{ "proc/latency_stats", HIDE },     /* side channels of other sandboxes' work */
	{ "proc/timer_list", HIDE },
	{ "proc/sched_debug", HIDE },
	{ "proc/interrupts", HIDE },        /* keystroke and device timing of the host */
	{ "proc/scsi", HIDE },              /* devices of the host can be removed through it */
	{ "proc/asound", HIDE },            /* audio activity of the host */
	{ "sys/firmware", HIDE },           /* serial numbers, EFI variables */
	{ "sys/devices/virtual/powercap", HIDE }, /* power side channel */
	{ "sys/kernel/debug", HIDE_HOST },
	{ "sys/kernel/tracing", HIDE_HOST },
	{ "sys/kernel/security", HIDE_HOST },
	{ "sys/fs/cgroup", HIDE_HOST },
};

/* Puts a clone of the mount, directory or file behind `from` over `at`. */
static int cover(int from, int at, uint64_t attr)
{
	struct mount_attr set = { .attr_set = attr };
	AUTO_CLOSE int mnt = open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (mnt < 0 || mount_setattr(mnt, "", AT_EMPTY_PATH, &set, sizeof set) < 0 ||
	    move_mount(mnt, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* A file of the host's root that others may not touch: no id of a sandbox is that root. */
static bool is_refused(const struct stat *st)
{
	return S_ISREG(st->st_mode) && !(st->st_mode & 0007) && st->st_uid == UNMAPPED && st->st_gid == UNMAPPED;
}

/* Hidden directories are covered by read-only clones of one removed, empty directory: no file system is made for them. */
static int stage_mask(int root, bool host_sys, struct dsec_error *err)
{
	AUTO_CLOSE int null = beneath(root, "dev/null", O_PATH);
	AUTO_CLOSE int empty = -EBADF;

	if (mkdirat(root, "dev/shm/.empty", 0555) == 0)
		empty = beneath(root, "dev/shm/.empty", O_PATH | O_DIRECTORY);
	if (null < 0 || empty < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "open what masks are made of");
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		AUTO_CLOSE int at = beneath(root, masks[i].path, O_PATH);
		struct stat st;
		int from = null;
		int r;

		if (at < 0 && errno != ENOENT)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "open \"/%s\" to mask it", masks[i].path);
		if (at < 0 || (masks[i].how == HIDE_HOST && !host_sys))
			continue; /* this kernel has no such file */
		if (fstat(at, &st) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "stat \"/%s\"", masks[i].path);
		if (is_refused(&st))
			continue;
		if (masks[i].how == READ_ONLY)
			from = at;
		else if (S_ISDIR(st.st_mode))
			from = empty;
		r = cover(from, at, QUIET | MOUNT_ATTR_RDONLY);
		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_MOUNT, "mask \"/%s\"", masks[i].path);
	}
	/* Its clones keep the directory alive without a name. */
	if (unlinkat(root, "dev/shm/.empty", AT_REMOVEDIR) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "remove the directory that masks are made of");
	return 0;
}

static int stage_pivot(int root, struct dsec_error *err)
{
	if (fchdir(root) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "chdir to the new root");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "detach the host's mounts");
	if (chdir("/") < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "chdir to \"/\"");
	return 0;
}

int dsec__rootfs_enter(const struct dsec__rootfs *fs, const struct dsec__image *image, const struct dsec__spec *spec,
		       int staging, struct dsec_error *err)
{
	CLEANUP(limits_closep) int limits[ARRAY_LEN(kinds)];
	int root = fs->root; /* once attached, the descriptor is that of the new root */
	int r;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		limits[i] = -EBADF;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "make mounts private");
	if (move_mount(root, "", staging, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "attach the root");
	r = stage_attach(root, fs, image, err);
	if (r == 0)
		r = stage_kernel(root, spec, err);
	if (r == 0)
		r = limits_open(root, limits, err);
	if (r == 0)
		r = stage_mask(root, spec->network == DSEC_NETWORK_HOST, err);
	if (r == 0)
		r = stage_pivot(root, err);
	return r < 0 ? r : limits_write(limits, err);
}
