/* SPDX-License-Identifier: MIT */
/*
 * Where the groups of sandboxes go. Looked up once by a launcher; sandboxes only use the directories found here.
 *
 * v1: below the caller's own group, so that what limits the trainer limits its sandboxes too.
 * v2: at the mount's root where we may; with controllers, a group that holds processes cannot hand them to children
 * (EBUSY), so else the nearest group above our own where they can be enabled; without controllers just somewhere.
 *
 * "dsec" is shared by all processes of the machine and removed by whoever leaves it empty: finding it there is success,
 * losing it between two steps is a reason to try again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "attr.h"
#include "cgroot.h"

#define BASE "dsec"
#define LOST_TRIES 16 /* others remove the base only when they end: losing it this often in a row is no accident */

static const char *const controllers[DSEC__CG_MAX] = {
	[DSEC__CG_CPU] = "cpu",
	[DSEC__CG_CPUACCT] = "cpuacct",
	[DSEC__CG_MEMORY] = "memory",
	[DSEC__CG_PIDS] = "pids",
};

/* Of one hierarchy: our own group, and the mount through which we see it. */
struct place {
	char own[512];   /* as /proc/self/cgroup has it */
	char root[512];  /* which group the mount shows as its root: not "/" with a bind mount or in a namespace */
	char mount[256]; /* empty: not mounted */
};

static void why(struct dsec__cgroot *root, int i, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void why(struct dsec__cgroot *root, int i, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(root->why[i], sizeof root->why[i], fmt, ap); /* cutting a reason short does no harm */
	va_end(ap);
}

/* Whether `word` stands in a list separated by `sep`. */
static bool has_word(const char *list, const char *word, char sep)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == sep) && (p[n] == sep || p[n] == '\0' || p[n] == '\n'))
			return true;
	return false;
}

/* The part of path `own` below `root`, NULL if it is not below. */
static const char *below(const char *own, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(own, root, n) != 0 || (own[n] != '\0' && own[n] != '/'))
		return NULL;
	return strcmp(own + n, "/") == 0 ? "" : own + n;
}

/* Undoes the \ooo of mountinfo in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/*
 * Closes a file that getline() has come to the end of. 0, or -errno if that was not its end: taken for it, limits would
 * seem to be what this machine lacks.
 */
static int read_end(FILE *f)
{
	int r = feof(f) ? 0 : -errno;

	(void)fclose(f); /* only read */
	return r;
}

/* 0 or -errno. Lines are "id:controllers:path". */
static int read_own(struct place places[DSEC__CG_MAX])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0;

	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		list++;
		path[strcspn(path, "\n")] = '\0';
		for (int i = 0; i < DSEC__CG_MAX; i++) {
			bool mine = controllers[i] ? has_word(list, controllers[i], ',') : *list == '\0';

			if (mine && strlen(path) < sizeof places[i].own)
				(void)strcpy(places[i].own, path); /* fits */
		}
	}
	return read_end(f);
}

/*
 * A later mount at the same point hides the earlier one; of mounts at different points the first is taken, unless only
 * a later one shows our own group.
 */
static void see_mount(struct place *p, const char *root, const char *mount)
{
	bool first = p->mount[0] == '\0';
	bool hides = strcmp(p->mount, mount) == 0;
	bool better = !first && !below(p->own, p->root) && below(p->own, root);

	if (!first && !hides && !better)
		return;
	if (strlen(root) >= sizeof p->root || strlen(mount) >= sizeof p->mount)
		return;
	(void)strcpy(p->root, root); /* both fit */
	(void)strcpy(p->mount, mount);
}

/* Lines are "id parent dev root mountpoint options [tags] - type source superoptions". */
static int read_mounts(struct place places[DSEC__CG_MAX])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0;

	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		char *tail = strstr(line, " - cgroup");
		char *save = NULL;
		char *word = tail ? strtok_r(line, " ", &save) : NULL;
		char *field[5] = { 0 };
		char *super;
		bool v2;

		for (int i = 0; word && i < 5; i++, word = strtok_r(NULL, " ", &save))
			field[i] = word;
		if (!field[4])
			continue;
		v2 = strncmp(tail + 3, "cgroup2 ", 8) == 0;
		super = strrchr(tail + 3, ' ');
		unescape(field[3]);
		unescape(field[4]);
		for (int i = 0; i < DSEC__CG_MAX; i++)
			if (v2 ? !controllers[i] : controllers[i] && super && has_word(super + 1, controllers[i], ','))
				see_mount(&places[i], field[3], field[4]);
	}
	return read_end(f);
}

/*
 * Whether a v2 group may hand controllers down. One that holds processes may not, but for the root of all, which has no
 * type. The kernel would say so for memory alone: cpu and pids it hands down at the price that the children become
 * threaded, and then take no process.
 */
static bool may_enable(int dir)
{
	char text[32];

	return faccessat(dir, "cgroup.type", F_OK, 0) < 0 ||
	       dsec__attr_read(dir, "cgroup.procs", text, sizeof text) == 0;
}

/*
 * Hands cpu, memory and pids down from a v2 group. Returns how many its children have. One at a time: a single refused
 * controller (cpu, where real-time threads run) would otherwise take the others with it.
 */
static int enable(int dir, int *ret_error)
{
	static const char *const names[] = { "cpu", "memory", "pids" };
	char have[256];
	char on[256];
	int n = 0;

	(void)dsec__attr_read(dir, "cgroup.controllers", have, sizeof have); /* an empty list is a fine answer */
	(void)dsec__attr_read(dir, "cgroup.subtree_control", on, sizeof on);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char text[16];
		int r = 0;

		if (!has_word(have, names[i], ' '))
			continue;
		(void)snprintf(text, sizeof text, "+%s", names[i]); /* fits */
		if (!has_word(on, names[i], ' '))
			r = may_enable(dir) ? dsec__attr_write(dir, "cgroup.subtree_control", text) : -EBUSY;
		if (r < 0)
			*ret_error = r;
		else
			n++;
	}
	return n;
}

/* Makes or finds the base in an open group. Its descriptor or -errno. */
static int open_base(int parent)
{
	for (int i = 0; i < LOST_TRIES; i++) {
		int fd;

		if (mkdirat(parent, BASE, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(parent, BASE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

/* Tries group `path` as the parent of the base; with `want`, only if controllers can be had there. 0 or -errno. */
static int try_parent(struct dsec__cgroot *root, int i, const char *path, bool want)
{
	AUTO_CLOSE int parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int base = -EBADF;
	struct statfs fs;
	int error = 0;

	if (parent < 0 || fstatfs(parent, &fs) < 0)
		return -errno;
	if (fs.f_type != (i == DSEC__CG_UNIFIED ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
		return -ENOTDIR; /* another mount hides it */
	base = open_base(parent);
	if (base < 0)
		return base;
	if (faccessat(base, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno; /* another user's */
	if (want && (enable(parent, &error) == 0 || enable(base, &error) == 0)) {
		(void)unlinkat(parent, BASE, AT_REMOVEDIR); /* stays if others use it */
		return error ? error : -ENODEV;
	}
	if ((size_t)snprintf(root->path[i], sizeof root->path[i], "%s/" BASE, path) >= sizeof root->path[i])
		return -ENAMETOOLONG;
	root->fd[i] = TAKE_FD(base);
	return 0;
}

/* Our own group as a path, cut down to the mount's root where it is not visible. */
static void own_path(const struct place *p, char *path, size_t n)
{
	const char *rest = below(p->own, p->root);

	if ((size_t)snprintf(path, n, "%s%s", p->mount, rest ? rest : "") >= n)
		(void)snprintf(path, n, "%s", p->mount); /* fits: a part of what it was made from */
}

/* From our own group upwards. A group that was removed under us, or that cannot hand on controllers, has a parent. */
static int try_upwards(struct dsec__cgroot *root, int i, const struct place *p, bool want)
{
	char path[sizeof p->own + sizeof p->mount];
	int first = 0;

	own_path(p, path, sizeof path);
	for (;;) {
		int r = try_parent(root, i, path, want);

		if (r == 0)
			return 0;
		if (first == 0)
			first = r;
		if (strlen(path) <= strlen(p->mount))
			return first;
		*strrchr(path, '/') = '\0';
	}
}

static void open_v1(struct dsec__cgroot *root, int i, const struct place *p)
{
	int r = try_upwards(root, i, p, false);

	if (r < 0)
		why(root, i, "mkdir \"" BASE "\" in \"%.60s\": %s", p->mount, strerror(-r));
}

static void open_v2(struct dsec__cgroot *root, const struct place *p)
{
	const int i = DSEC__CG_UNIFIED;
	char list[256];
	char name[sizeof p->mount + 32];
	int r;

	(void)snprintf(name, sizeof name, "%s/cgroup.controllers", p->mount); /* fits */
	(void)dsec__attr_read(AT_FDCWD, name, list, sizeof list);
	if (has_word(list, "cpu", ' ') || has_word(list, "memory", ' ') || has_word(list, "pids", ' ')) {
		if (try_parent(root, i, p->mount, true) == 0)
			return;
		r = try_upwards(root, i, p, true);
		if (r == 0)
			return;
		why(root, i, "enable controllers below \"%.60s\": %s", p->mount,
		    r == -EBUSY ? "processes are in that group itself" : strerror(-r));
	}
	r = try_parent(root, i, p->mount, false);
	if (r < 0)
		r = try_upwards(root, i, p, false);
	if (r < 0)
		why(root, i, "mkdir \"" BASE "\" in \"%.60s\": %s", p->mount, strerror(-r));
}

/* A base that another process removed since it was opened has no files: it is made once more before that counts. */
static bool has_file(const struct dsec__cgroot *root, int i, const char *file)
{
	for (int n = 0; n < LOST_TRIES; n++)
		if (faccessat(root->fd[i], file, F_OK, 0) == 0)
			return true;
		else if (dsec__cgroot_again(root, i) < 0)
			return false;
	return false;
}

/* Which hierarchy limits what. `file` tells whether v1 was built with that limit. */
static int limited_by(const struct dsec__cgroot *root, int v1, const char *file)
{
	char on[256];

	if (root->fd[DSEC__CG_UNIFIED] >= 0) {
		(void)dsec__attr_read(root->fd[DSEC__CG_UNIFIED], "cgroup.subtree_control", on, sizeof on);
		if (has_word(on, controllers[v1], ' '))
			return DSEC__CG_UNIFIED;
	}
	return root->fd[v1] >= 0 && has_file(root, v1, file) ? v1 : -1;
}

static void choose(struct dsec__cgroot *root)
{
	root->cpu = limited_by(root, DSEC__CG_CPU, "cpu.cfs_quota_us");
	root->memory = limited_by(root, DSEC__CG_MEMORY, "memory.limit_in_bytes");
	root->pids = limited_by(root, DSEC__CG_PIDS, "pids.max");
	if (root->fd[DSEC__CG_UNIFIED] >= 0)
		root->exec = DSEC__CG_UNIFIED;
	else if (root->fd[DSEC__CG_PIDS] >= 0)
		root->exec = DSEC__CG_PIDS;
}

static void open_all(struct dsec__cgroot *root, const struct place places[DSEC__CG_MAX])
{
	for (int i = 0; i < DSEC__CG_MAX; i++) {
		const struct place *p = &places[i];

		/* Each further group costs a mkdir and a move of every sandbox: none for what is known without. */
		if (p->mount[0] == '\0')
			why(root, i, "not mounted");
		else if (i == DSEC__CG_CPUACCT && strcmp(p->mount, places[DSEC__CG_CPU].mount) == 0)
			why(root, i, "one hierarchy with cpu");
		else if (i == DSEC__CG_CPUACCT && root->fd[DSEC__CG_UNIFIED] >= 0)
			why(root, i, "not needed: v2 tells CPU time");
		else if (i == DSEC__CG_UNIFIED)
			open_v2(root, p);
		else
			open_v1(root, i, p);
	}
}

int dsec__cgroot_open(struct dsec__cgroot *root, struct dsec_error *err)
{
	AUTO_FREE struct place *places = calloc(DSEC__CG_MAX, sizeof *places);
	int r;

	*root = (struct dsec__cgroot){ .cpu = -1, .memory = -1, .pids = -1, .exec = -1 };
	for (int i = 0; i < DSEC__CG_MAX; i++)
		root->fd[i] = -EBADF;
	if (!places)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "allocate the table of hierarchies");
	r = read_own(places);
	if (r < 0 && r != -ENOENT) /* absent: a kernel without control groups */
		return dsec__fail(err, r, DSEC_STEP_CGROUP, "read \"/proc/self/cgroup\"");
	r = r < 0 ? 0 : read_mounts(places);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_CGROUP, "read \"/proc/self/mountinfo\"");
	open_all(root, places);
	choose(root);
	return 0;
}

void dsec__cgroot_close(struct dsec__cgroot *root)
{
	for (int i = 0; i < DSEC__CG_MAX; i++) {
		if (root->fd[i] < 0)
			continue;
		dsec__closep(&root->fd[i]);
		(void)rmdir(root->path[i]); /* stays while any sandbox of any process is in it */
	}
}

int dsec__cgroot_again(const struct dsec__cgroot *root, int i)
{
	char parent_path[sizeof root->path[i]];
	AUTO_CLOSE int parent = -EBADF;
	AUTO_CLOSE int base = -EBADF;
	int error = 0;

	(void)strcpy(parent_path, root->path[i]); /* same size */
	*strrchr(parent_path, '/') = '\0';
	parent = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	base = open_base(parent);
	if (base < 0)
		return base;
	if (i == DSEC__CG_UNIFIED)
		(void)enable(base, &error); /* without it a limit's file is missing, and its write tells */
	/* The same number from now on means the new directory, for all that borrow the root. */
	return dup3(base, root->fd[i], O_CLOEXEC) < 0 ? -errno : 0;
}
