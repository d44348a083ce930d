/* SPDX-License-Identifier: MIT */
/*
 * Building a root file system as detached mounts. Must not leave anything attached on the host: what is made here lives
 * only in descriptors until an agent attaches it inside its own mount namespace, so that a crash leaves nothing.
 */
#include "rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../util/error.h"

#define TOP_BYTES (1ull << 30)
#define TOP_INODES 262144ull

void dsec__rootfs_none(struct dsec__rootfs *fs)
{
	fs->root = fs->dev = -EBADF;
	for (size_t i = 0; i < ARRAY_LEN(fs->trees); i++)
		fs->trees[i] = -EBADF;
	fs->n_held = 0;
}

void dsec__rootfs_sent(struct dsec__rootfs *fs)
{
	dsec__closep(&fs->root);
	dsec__closep(&fs->dev);
	for (size_t i = 0; i < ARRAY_LEN(fs->trees); i++)
		dsec__closep(&fs->trees[i]);
}

void dsec__rootfs_done(struct dsec__rootfs *fs)
{
	dsec__rootfs_sent(fs);
	while (fs->n_held)
		dsec__closep(&fs->held[--fs->n_held]);
}

static int set_number(int fs, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value); /* 20 digits at most */
	return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

/* A detached tmpfs; bytes and inodes 0: the kernel's defaults. */
static int tmpfs_new(uint64_t bytes, uint64_t inodes, const char *mode, unsigned int attr, struct dsec_error *err)
{
	AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int mnt;

	if (fs < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsopen \"tmpfs\"");
	if ((bytes && set_number(fs, "size", bytes) < 0) || (inodes && set_number(fs, "nr_inodes", inodes) < 0) ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "configure tmpfs");
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, attr);
	if (mnt < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsmount \"tmpfs\"");
	return mnt;
}

static const struct {
	const char *name;
	unsigned int major, minor;
} dev_nodes[] = {
	{ "null", 1, 3 },    { "zero", 1, 5 },    { "full", 1, 7 }, /* expected by every program */
	{ "random", 1, 8 },  { "urandom", 1, 9 },                   /* seeds */
	{ "tty", 5, 0 },                                            /* the caller's own terminal, none if it has none */
};

static const struct {
	const char *name, *target;
} dev_links[] = {
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" }, /* each sandbox has a devpts instance of its own */
};

static int dev_skeleton(int dir, struct dsec_error *err)
{
	static const char *const dirs[] = { "pts", "shm" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(dir, dirs[i], 0755) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir \"/dev/%s\"", dirs[i]);
	for (size_t i = 0; i < ARRAY_LEN(dev_links); i++)
		if (symlinkat(dev_links[i].target, dir, dev_links[i].name) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "symlink \"/dev/%s\"", dev_links[i].name);
	return 0;
}

int dsec__rootfs_dev(struct dsec_error *err)
{
	AUTO_CLOSE int mnt = tmpfs_new(64 << 10, 64, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };
	int r;

	if (mnt < 0)
		return mnt;
	for (size_t i = 0; i < ARRAY_LEN(dev_nodes); i++)
		if (mknodat(mnt, dev_nodes[i].name, S_IFCHR, makedev(dev_nodes[i].major, dev_nodes[i].minor)) < 0 ||
		    fchmodat(mnt, dev_nodes[i].name, 0666, 0) < 0) /* mknod's mode is under the umask */
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mknod \"/dev/%s\"", dev_nodes[i].name);
	r = dev_skeleton(mnt, err);
	if (r < 0)
		return r;
	if (mount_setattr(mnt, "", AT_EMPTY_PATH, &ro, sizeof ro) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "make \"/dev\" read-only");
	return TAKE_FD(mnt);
}

/* The directory that holds upper and work directories: a tmpfs of this sandbox's own, or top_dir. */
static int top_open(const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	const struct dsec__spec *s = plan->spec;
	int fd;

	if (!plan->top_dir)
		return tmpfs_new(s->disk_bytes ? s->disk_bytes : TOP_BYTES, s->disk_inodes ? s->disk_inodes : TOP_INODES,
				 "0700", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	fd = open(plan->top_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "open \"%s\"", plan->top_dir);
	return fd;
}

static int top_dir(int top, const char *name, uint32_t owner, struct dsec_error *err)
{
	int fd;

	if (mkdirat(top, name, 0755) < 0 || fchmodat(top, name, 0755, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir \"%s\" in the writable top", name);
	if (owner && fchownat(top, name, owner, owner, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "chown \"%s\" in the writable top", name);
	fd = openat(top, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "open \"%s\" in the writable top", name);
	return fd;
}

static int layer_open(const char *source, const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	AUTO_CLOSE int fd = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IMAGE, "open_tree \"%s\"", source);
	if (plan->userns >= 0) {
		struct mount_attr map = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)plan->userns };

		if (mount_setattr(fd, "", AT_EMPTY_PATH, &map, sizeof map) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_IMAGE,
					  "map the owners of \"%s\" (its file system must support idmapped mounts)",
					  source);
	}
	return TAKE_FD(fd);
}

/* What one overlay is made of. */
struct stack {
	const char *source;
	unsigned int slot; /* tells its directories in the top apart from those of other trees */
	int layer, top, upper, work;
};

static int overlay_open(const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	int fs = fsopen("overlay", FSOPEN_CLOEXEC);

	if (fs < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsopen \"overlay\"");
	if (plan->userns < 0 && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0) {
		int r = dsec__fail(err, -errno, DSEC_STEP_MOUNT, "option \"userxattr\" of overlay");

		dsec__closep(&fs);
		return r;
	}
	return fs;
}

static int overlay_finish(int fs, const struct stack *s, struct dsec_error *err)
{
	int mnt;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "create overlay of \"%s\"", s->source);
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mnt < 0 ? dsec__fail(err, -errno, DSEC_STEP_MOUNT, "fsmount overlay of \"%s\"", s->source) : mnt;
}

/* From Linux 6.13: layers are descriptors, of mounts that are attached nowhere. -EINVAL on an older kernel. */
static int overlay_by_fd(const struct stack *s, const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	AUTO_CLOSE int fs = overlay_open(plan, err);

	if (fs < 0)
		return fs;
	if (fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, s->layer) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, s->upper) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, s->work) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "configure overlay of \"%s\"", s->source);
	return overlay_finish(fs, s, err);
}

static int set_path(int fs, const char *key, int top, char kind, unsigned int slot)
{
	char path[48];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%c%u", top, kind, slot); /* fits */
	return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

/* Before: layers are paths, so the layer has to be attached while the overlay is made; it lies in the top. */
static int overlay_by_path(const struct stack *s, const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	char name[8], path[48];
	AUTO_CLOSE int at = -EBADF;
	AUTO_CLOSE int fs = -EBADF;
	int r;

	(void)snprintf(name, sizeof name, "l%u", s->slot); /* one digit */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", s->top, name); /* fits */
	if (mkdirat(s->top, name, 0755) < 0 || (at = openat(s->top, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir \"%s\" in the writable top", name);
	if (move_mount(s->layer, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "attach layer \"%s\"", s->source);
	fs = overlay_open(plan, err);
	if (fs < 0)
		r = fs;
	else if (set_path(fs, "lowerdir", s->top, 'l', s->slot) < 0 || set_path(fs, "upperdir", s->top, 'u', s->slot) < 0 ||
		 set_path(fs, "workdir", s->top, 'w', s->slot) < 0)
		r = dsec__fail(err, -errno, DSEC_STEP_MOUNT, "configure overlay of \"%s\" by path", s->source);
	else
		r = overlay_finish(fs, s, err);
	if (umount2(path, MNT_DETACH) < 0 && r >= 0) {
		dsec__closep(&r);
		r = dsec__fail(err, -errno, DSEC_STEP_MOUNT, "detach layer \"%s\"", s->source);
	}
	return r;
}

/* Attaches the top's own mount for as long as overlays are made by path. */
static int top_attach(int top, const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	if (!plan->top_dir &&
	    move_mount(top, "", plan->staging, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "attach the writable top");
	return 0;
}

static void top_detach(int top, const struct dsec__rootfs_plan *plan)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", top); /* fits */
	if (!plan->top_dir)
		(void)umount2(path, MNT_DETACH); /* else it goes with this mount namespace */
}

static int overlay_new(const char *source, unsigned int slot, bool by_path, struct dsec__rootfs *held,
		       const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	char names[2][8];
	struct stack s = { .source = source, .slot = slot, .top = held->held[0], .layer = layer_open(source, plan, err) };
	AUTO_CLOSE int upper = -EBADF;
	AUTO_CLOSE int work = -EBADF;

	if (s.layer < 0)
		return s.layer;
	held->held[held->n_held++] = s.layer;
	(void)snprintf(names[0], sizeof names[0], "u%u", slot); /* one digit: there are at most nine trees */
	(void)snprintf(names[1], sizeof names[1], "w%u", slot);
	s.upper = upper = top_dir(s.top, names[0], plan->first_id, err);
	if (upper < 0)
		return upper;
	s.work = work = top_dir(s.top, names[1], 0, err);
	if (work < 0)
		return work;
	return by_path ? overlay_by_path(&s, plan, err) : overlay_by_fd(&s, plan, err);
}

static int overlays_new(struct dsec__rootfs *fs, bool by_path, const struct dsec__rootfs_plan *plan,
			struct dsec_error *err)
{
	int r = by_path ? top_attach(fs->held[0], plan, err) : 0;

	if (r == 0)
		r = fs->root = overlay_new(plan->image->root, 0, by_path, fs, plan, err);
	for (size_t i = 0; r >= 0 && i < plan->image->n_trees; i++)
		r = fs->trees[i] = overlay_new(plan->image->trees[i].source, (unsigned int)i + 1, by_path, fs, plan, err);
	if (by_path)
		top_detach(fs->held[0], plan);
	return r < 0 ? r : 0;
}

/* Whether this kernel's overlay takes layers by descriptor: an option that it does not know is refused at once. */
static bool takes_descriptors(int top)
{
	AUTO_CLOSE int fs = fsopen("overlay", FSOPEN_CLOEXEC);

	return fs >= 0 && fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, top) == 0;
}

int dsec__rootfs_build(struct dsec__rootfs *ret_fs, const struct dsec__rootfs_plan *plan, struct dsec_error *err)
{
	CLEANUP(dsec__rootfs_done) struct dsec__rootfs fs;
	int top = top_open(plan, err);
	int r;

	dsec__rootfs_none(&fs);
	if (top < 0)
		return top;
	fs.held[fs.n_held++] = top;
	r = overlays_new(&fs, plan->by_path || !takes_descriptors(top), plan, err);
	if (r < 0)
		return r;
	if (plan->dev >= 0) {
		fs.dev = open_tree(plan->dev, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
		if (fs.dev < 0)
			fs.dev = dsec__rootfs_dev(err); /* before Linux 6.15 a detached mount cannot be cloned */
		if (fs.dev < 0)
			return fs.dev;
	}
	*ret_fs = fs;
	dsec__rootfs_none(&fs);
	return 0;
}
