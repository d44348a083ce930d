/* SPDX-License-Identifier: MIT */
/*
 * The groups of a sandbox and of its commands. Works on descriptors of the directories that cgroot.c found, so that a
 * create costs little more than its mkdirs; must not read /proc.
 *
 * v2 kills a whole group in one write. On v1, and on v2 before 5.14, processes are signalled one by one until none is
 * left, with forks forbidden meanwhile.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "attr.h"
#include "cgroot.h"
#include "cgroup.h"

#define BASE_TRIES 16       /* the base is lost only to processes that end: not this often in a row */
#define CPU_PERIOD_US 100000 /* the kernel's default; the quota of 1/1000 CPU is then 100 us */
#define KILL_ROUNDS 200     /* of at least a scan each; a group that outlives them is left to remove's timeout */
#define KILL_BATCH 64       /* descriptors held at once */

static void init(struct dsec__cgroup *cg, const struct dsec__cgroot *root, const char *name)
{
	*cg = (struct dsec__cgroup){ .root = root };
	for (int i = 0; i < DSEC__CG_MAX; i++)
		cg->fd[i] = -EBADF;
	assert(strlen(name) < sizeof cg->name);
	(void)strcpy(cg->name, name); /* fits */
}

/* A name that stays below the base. */
static bool plain(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < sizeof((struct dsec__cgroup *)0)->name && name[0] != '.' && !strchr(name, '/');
}

static void seq_name(char buf[32], uint64_t seq)
{
	(void)snprintf(buf, 32, "x%" PRIu64, seq); /* fits: 21 digits at most */
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	(void)nanosleep(&t, NULL); /* too short is fine: callers look again */
}

/* Makes one directory, again if its base was removed under us. A descriptor or -errno. */
static int make_group(const struct dsec__cgroot *root, int i, const char *name)
{
	int r = 0;

	for (int n = 0; n < BASE_TRIES; n++) {
		int fd;

		if (mkdirat(root->fd[i], name, 0755) == 0) {
			fd = openat(root->fd[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
			r = -errno;
			(void)unlinkat(root->fd[i], name, AT_REMOVEDIR); /* empty: it cannot be busy */
			return r;
		}
		r = -errno;
		if (r != -ENOENT)
			return r;
		r = dsec__cgroot_again(root, i);
		if (r < 0)
			return r;
	}
	return r ? r : -ENOENT;
}

/* One limit of one hierarchy. */
struct limit {
	const char *field; /* option of dsec_sandbox_opts */
	int hierarchy;     /* -1: none limits it */
	int v1;            /* the v1 hierarchy that would */
	uint64_t value;    /* 0: not asked for */
};

static int set(const struct dsec__cgroup *cg, const struct limit *l, const char *file, const char *text,
	       struct dsec_error *err)
{
	int r = dsec__attr_write(cg->fd[l->hierarchy], file, text);

	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_CGROUP, "%s: write \"%s\" of \"%.100s/%s\"", l->field, file,
				  cg->root->path[l->hierarchy], cg->name);
	return 0;
}

static int set_cpu(const struct dsec__cgroup *cg, const struct limit *l, struct dsec_error *err)
{
	char text[64];
	uint64_t quota = l->value * (CPU_PERIOD_US / 1000);
	int r;

	if (l->hierarchy == DSEC__CG_UNIFIED) {
		(void)snprintf(text, sizeof text, "%" PRIu64 " %d", quota, CPU_PERIOD_US); /* fits */
		return set(cg, l, "cpu.max", text, err);
	}
	(void)snprintf(text, sizeof text, "%" PRIu64, quota); /* fits */
	r = dsec__attr_write(cg->fd[l->hierarchy], "cpu.cfs_quota_us", text);
	/* v1 refuses more than a group above has (the kernel's least is 1 ms); then that one bounds us already. */
	if (r == 0 || (r == -EINVAL && quota >= 1000))
		return 0;
	return dsec__fail(err, r, DSEC_STEP_CGROUP, "%s: write \"cpu.cfs_quota_us\" of \"%.100s/%s\"", l->field,
			  cg->root->path[l->hierarchy], cg->name);
}

/* Without the bound on swap a sandbox would trade its memory limit for the machine's swap. */
static int set_memory(const struct dsec__cgroup *cg, const struct limit *l, struct dsec_error *err)
{
	bool v2 = l->hierarchy == DSEC__CG_UNIFIED;
	const char *swap = v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
	char text[32];
	int r;

	(void)snprintf(text, sizeof text, "%" PRIu64, l->value); /* fits */
	r = set(cg, l, v2 ? "memory.max" : "memory.limit_in_bytes", text, err);
	if (r < 0 || faccessat(cg->fd[l->hierarchy], swap, F_OK, 0) < 0)
		return r; /* a kernel that does not count swap has no such file */
	return set(cg, l, swap, v2 ? "0" : text, err);
}

static int set_pids(const struct dsec__cgroup *cg, const struct limit *l, struct dsec_error *err)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%" PRIu64, l->value); /* fits */
	return set(cg, l, "pids.max", text, err);
}

/* Whether to set it: 1 yes, 0 no, or the error of a limit that nothing enforces. */
static int wanted(const struct dsec__cgroup *cg, const struct limit *l, bool optional, struct dsec_error *err)
{
	const char *unified = cg->root->why[DSEC__CG_UNIFIED];

	if (l->value == 0 || l->hierarchy >= 0 || optional)
		return l->value != 0 && l->hierarchy >= 0;
	return dsec__fail(err, -ENOTSUP, DSEC_STEP_CGROUP, "%s: no control group limits it (v1: %.80s; v2: %.80s)",
			  l->field, cg->root->fd[l->v1] >= 0 ? "built without it" : cg->root->why[l->v1],
			  unified[0] ? unified : "controller not in this tree");
}

static int set_limits(const struct dsec__cgroup *cg, const struct dsec__cglimits *limits, bool optional,
		      struct dsec_error *err)
{
	const struct dsec__cgroot *root = cg->root;
	const struct limit cpu = { "cpu_millis", root->cpu, DSEC__CG_CPU, limits->cpu_millis };
	const struct limit memory = { "memory_bytes", root->memory, DSEC__CG_MEMORY, limits->memory_bytes };
	const struct limit pids = { "pids", root->pids, DSEC__CG_PIDS, limits->pids };
	int r = wanted(cg, &cpu, optional, err);

	if (r > 0)
		r = set_cpu(cg, &cpu, err);
	if (r == 0)
		r = wanted(cg, &memory, optional, err);
	if (r > 0)
		r = set_memory(cg, &memory, err);
	if (r == 0)
		r = wanted(cg, &pids, optional, err);
	if (r > 0)
		r = set_pids(cg, &pids, err);
	return r;
}

/* A v1 hierarchy is used for its limit, or for command groups where there is no v2. */
static bool needed(const struct dsec__cgroot *root, int i, const struct dsec__cglimits *limits)
{
	return i == DSEC__CG_UNIFIED || i == root->exec || i == DSEC__CG_CPUACCT ||
	       (i == root->cpu && limits->cpu_millis) || (i == root->memory && limits->memory_bytes) ||
	       (i == root->pids && limits->pids);
}

int dsec__cgroup_make(struct dsec__cgroup *cg, const struct dsec__cgroot *root, const char *name,
		      const struct dsec__cglimits *limits, struct dsec_error *err)
{
	int r = 0;

	assert(plain(name));
	init(cg, root, name);
	for (int i = 0; i < DSEC__CG_MAX && r == 0; i++) {
		if (root->fd[i] < 0 || !needed(root, i, limits))
			continue;
		cg->fd[i] = make_group(root, i, name);
		if (cg->fd[i] < 0)
			r = dsec__fail(err, cg->fd[i], DSEC_STEP_CGROUP, "mkdir \"%.150s/%s\"", root->path[i], name);
	}
	if (r < 0)
		(void)dsec__cgroup_remove(cg, 0); /* empty, so it cannot be busy */
	return r;
}

int dsec__cgroup_create(struct dsec__cgroup *cg, const struct dsec__cgroot *root, const char *name,
			const struct dsec__cglimits *limits, bool optional, struct dsec_error *err)
{
	int r = dsec__cgroup_make(cg, root, name, limits, err);

	if (r == 0)
		r = set_limits(cg, limits, optional, err);
	if (r < 0)
		(void)dsec__cgroup_remove(cg, 0);
	return r;
}

int dsec__cgroup_limit(const struct dsec__cgroup *cg, const struct dsec__cglimits *limits, bool optional,
		       struct dsec_error *err)
{
	return set_limits(cg, limits, optional, err);
}

int dsec__cgroup_add(const struct dsec__cgroup *cg, pid_t pid, bool born, struct dsec_error *err)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%d", pid); /* fits */
	for (int i = born ? DSEC__CG_UNIFIED + 1 : 0; i < DSEC__CG_MAX; i++) {
		int r = cg->fd[i] < 0 ? 0 : dsec__attr_write(cg->fd[i], "cgroup.procs", text);

		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_CGROUP, "write %s to \"%.150s/%s/cgroup.procs\"", text,
					  cg->root->path[i], cg->name);
	}
	return 0;
}

/* The processes of a group, at most n; those that our pid namespace does not show are 0 and left out. */
static size_t read_procs(int dir, pid_t *pids, size_t n)
{
	AUTO_CLOSE int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[KILL_BATCH * 12];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	size_t count = 0;
	char *end;

	if (len <= 0)
		return 0;
	text[len] = '\0';
	for (char *p = text; count < n; p = end + 1) {
		long pid = strtol(p, &end, 10);

		if (*end != '\n')
			break; /* the end, or a number that was cut */
		if (pid > 0)
			pids[count++] = (pid_t)pid;
	}
	return count;
}

/*
 * Signals one batch. A process is signalled only if the group still has its pid after the descriptor was opened: the
 * descriptor is then of a member, or of one that is dead, and never of a stranger with a recycled pid.
 */
static size_t kill_batch(int dir)
{
	pid_t before[KILL_BATCH];
	pid_t after[KILL_BATCH];
	int fds[KILL_BATCH];
	size_t n = read_procs(dir, before, KILL_BATCH);
	size_t m;

	for (size_t i = 0; i < n; i++)
		fds[i] = (int)syscall(SYS_pidfd_open, before[i], 0);
	m = n ? read_procs(dir, after, KILL_BATCH) : 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m && fds[i] >= 0; j++)
			if (before[i] == after[j]) {
				(void)syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0); /* or already dead */
				break;
			}
	for (size_t i = 0; i < n; i++)
		dsec__closep(&fds[i]);
	return n;
}

static void kill_procs(int dir)
{
	for (int round = 0; round < KILL_ROUNDS && kill_batch(dir) > 0; round++)
		sleep_ms(round < 10 ? 0 : 1);
}

typedef void (*group_fn)(int dir, const char *name);

/* Calls fn for each command group. */
static void each_exec(int dir, group_fn fn)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		dsec__closep(&fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] == 'x' && e->d_type == DT_DIR)
			fn(dir, e->d_name);
}

static void kill_named(int dir, const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		kill_procs(fd);
}

/* Kills a group and what is below. */
static void kill_group(int dir)
{
	if (dsec__attr_write(dir, "cgroup.kill", "1") == 0)
		return;
	(void)dsec__attr_write(dir, "pids.max", "0"); /* where there is none, the rounds have to win the race */
	each_exec(dir, kill_named);
	kill_procs(dir);
}

void dsec__cgroup_kill(const struct dsec__cgroup *cg)
{
	static const int order[] = { DSEC__CG_UNIFIED, DSEC__CG_PIDS, DSEC__CG_MEMORY, DSEC__CG_CPU, DSEC__CG_CPUACCT };

	/* All groups hold the same processes: the one that kills best is enough. */
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (cg->fd[order[i]] >= 0) {
			kill_group(cg->fd[order[i]]);
			return;
		}
}

static void remove_named(int dir, const char *name)
{
	(void)unlinkat(dir, name, AT_REMOVEDIR); /* if busy, the parent is too, and is tried again */
}

/* Sleeps until a v2 group and all below it are empty, or until about `ms` have passed. False where it cannot tell. */
static bool wait_empty(int dir, int ms)
{
	AUTO_CLOSE int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	if (!strstr(text, "populated 1"))
		return false;
	(void)poll(&p, 1, ms); /* woken by a change after the read; callers look again */
	return true;
}

/* Removes one hierarchy's group through its base, which need not be root's own. */
static int remove_group(int dir, const char *name, int64_t deadline)
{
	AUTO_CLOSE int base = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (base < 0)
		return errno == ENOENT ? 0 : -errno; /* a removed directory has no parent to open */
	for (int pause = 1;; pause = pause < 10 ? pause * 2 : 20) {
		int64_t left;

		if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		each_exec(dir, remove_named);
		if (unlinkat(base, name, AT_REMOVEDIR) == 0)
			return 0;
		left = deadline - now_ms();
		if (left <= 0)
			return -EBUSY;
		if (!wait_empty(dir, (int)left))
			sleep_ms(left < pause ? (int)left : pause);
	}
}

int dsec__cgroup_remove(struct dsec__cgroup *cg, int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;
	int result = 0;

	/* v2 first: it can be waited for, and the others are empty as soon as it is. */
	for (int i = 0; i < DSEC__CG_MAX; i++)
		if (cg->fd[i] >= 0 && remove_group(cg->fd[i], cg->name, deadline) < 0)
			result = -EBUSY;
	dsec__cgroup_close(cg);
	return result;
}

void dsec__cgroup_close(struct dsec__cgroup *cg)
{
	for (int i = 0; i < DSEC__CG_MAX; i++)
		dsec__closep(&cg->fd[i]);
}

static uint64_t cpu_v2(int dir)
{
	uint64_t us = dsec__attr_field(dir, "cpu.stat", "usage_usec");

	return us == UINT64_MAX ? us : us * 1000;
}

uint64_t dsec__cgroup_oom_kills(const struct dsec__cgroup *cg)
{
	int i = cg->root->memory;

	if (i < 0 || cg->fd[i] < 0)
		return UINT64_MAX;
	return dsec__attr_field(cg->fd[i], i == DSEC__CG_UNIFIED ? "memory.events" : "memory.oom_control", "oom_kill");
}

static uint64_t sandbox_cpu(const struct dsec__cgroup *cg)
{
	if (cg->fd[DSEC__CG_UNIFIED] >= 0)
		return cpu_v2(cg->fd[DSEC__CG_UNIFIED]);
	if (cg->fd[DSEC__CG_CPUACCT] >= 0)
		return dsec__attr_u64(cg->fd[DSEC__CG_CPUACCT], "cpuacct.usage");
	/* cpu and cpuacct may be one hierarchy */
	return cg->fd[DSEC__CG_CPU] >= 0 ? dsec__attr_u64(cg->fd[DSEC__CG_CPU], "cpuacct.usage") : UINT64_MAX;
}

void dsec__cgroup_stats(const struct dsec__cgroup *cg, struct dsec__cgstats *ret)
{
	int m = cg->root->memory;
	int p = cg->root->pids;

	*ret = (struct dsec__cgstats){ sandbox_cpu(cg), UINT64_MAX, UINT64_MAX, UINT64_MAX,
				       dsec__cgroup_oom_kills(cg) };
	if (m >= 0 && cg->fd[m] >= 0) {
		bool v2 = m == DSEC__CG_UNIFIED;

		ret->memory_bytes = dsec__attr_u64(cg->fd[m], v2 ? "memory.current" : "memory.usage_in_bytes");
		ret->memory_peak = dsec__attr_u64(cg->fd[m], v2 ? "memory.peak" : "memory.max_usage_in_bytes");
	}
	if (p >= 0 && cg->fd[p] >= 0)
		ret->pids = dsec__attr_u64(cg->fd[p], "pids.current");
}

/* Directory that holds the command groups, -1 if none. */
static int exec_dir(const struct dsec__cgroup *cg)
{
	return cg->root->exec < 0 ? -1 : cg->fd[cg->root->exec];
}

int dsec__cgroup_delegate(const struct dsec__cgroup *cg, uid_t owner, struct dsec_error *err)
{
	if (cg->root->exec == DSEC__CG_UNIFIED && owner &&
	    fchownat(cg->fd[DSEC__CG_UNIFIED], "cgroup.procs", owner, (gid_t)-1, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_CGROUP, "give \"%.150s/%s/cgroup.procs\" to %u",
				  cg->root->path[DSEC__CG_UNIFIED], cg->name, owner);
	return 0;
}

/* v2: the directory, for a birth in it. v1: cgroup.procs, to be written. */
static int open_for_child(int dir, const char *name, bool v2, uid_t owner)
{
	AUTO_CLOSE int group = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (group < 0)
		return -errno;
	if (!v2) {
		int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);

		return fd < 0 ? -errno : fd;
	}
	if (owner && fchownat(group, "cgroup.procs", owner, (gid_t)-1, 0) < 0)
		return -errno;
	return TAKE_FD(group);
}

int dsec__cgroup_exec_open(const struct dsec__cgroup *cg, uint64_t seq, uid_t owner, bool *ret_birth,
			   struct dsec_error *err)
{
	int dir = exec_dir(cg);
	char name[32];
	int fd;

	*ret_birth = cg->root->exec == DSEC__CG_UNIFIED;
	if (dir < 0)
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_CGROUP,
				  "no control group for commands (v1: %.80s; v2: %.80s)", cg->root->why[DSEC__CG_PIDS],
				  cg->root->why[DSEC__CG_UNIFIED]);
	seq_name(name, seq);
	if (mkdirat(dir, name, 0755) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_CGROUP, "mkdir \"%s\" in control group \"%s\"", name,
				  cg->name);
	fd = open_for_child(dir, name, *ret_birth, owner);
	if (fd < 0) {
		remove_named(dir, name);
		return dsec__fail(err, fd, DSEC_STEP_CGROUP, "open \"%s\" of control group \"%s\"", name, cg->name);
	}
	return fd;
}

static int exec_group(const struct dsec__cgroup *cg, uint64_t seq)
{
	int dir = exec_dir(cg);
	char name[32];

	seq_name(name, seq);
	return dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool dsec__cgroup_exec_kill(const struct dsec__cgroup *cg, uint64_t seq)
{
	AUTO_CLOSE int fd = exec_group(cg, seq);

	if (fd < 0)
		return false;
	kill_group(fd);
	return true;
}

uint64_t dsec__cgroup_exec_cpu(const struct dsec__cgroup *cg, uint64_t seq)
{
	AUTO_CLOSE int fd = cg->root->exec == DSEC__CG_UNIFIED ? exec_group(cg, seq) : -EBADF;

	return fd < 0 ? UINT64_MAX : cpu_v2(fd);
}

int dsec__cgroup_exec_remove(const struct dsec__cgroup *cg, uint64_t seq)
{
	int dir = exec_dir(cg);
	char name[32];

	seq_name(name, seq);
	if (dir < 0)
		return -ENOENT;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int dsec__cgroup_reap(const struct dsec__cgroot *root, const char *name, int timeout_ms)
{
	struct dsec__cgroup cg;

	if (!plain(name))
		return 0; /* no sandbox ever had that name */
	init(&cg, root, name);
	for (int i = 0; i < DSEC__CG_MAX; i++)
		if (root->fd[i] >= 0)
			cg.fd[i] = openat(root->fd[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Not just in the best group: a keeper that died half way through add left them unequal. */
	for (int i = 0; i < DSEC__CG_MAX; i++)
		if (cg.fd[i] >= 0)
			kill_group(cg.fd[i]);
	return dsec__cgroup_remove(&cg, timeout_ms);
}
