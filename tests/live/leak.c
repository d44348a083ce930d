/* SPDX-License-Identifier: MIT */
#include "leak.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char base[256];

void leak_setup_dirs(const char *program)
{
	const char *name = strrchr(program, '/');
	char path[300];

	(void)snprintf(base, sizeof base, "/tmp/dsec-%.60s-%d", name ? name + 1 : program, getpid());
	(void)snprintf(path, sizeof path, "%s/run", base);
	(void)mkdir(base, 0755);
	(void)setenv("DSEC_ROOT", path, 1);
	(void)snprintf(path, sizeof path, "/tmp/dsec-test-images-%u", geteuid()); /* shared: it takes a while to make */
	(void)setenv("DSEC_IMAGES", path, 1);
}

void leak_remove_dirs(void)
{
	char cmd[300];

	(void)snprintf(cmd, sizeof cmd, "rm -rf '%s'", base);
	if (base[0] && system(cmd) != 0)
		(void)fprintf(stderr, "could not remove %s\n", base);
}

static void add(struct leak *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A test program that is out of memory has nothing more to say. */
static void add(struct leak *l, const char *fmt, ...)
{
	va_list ap;

	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->items = realloc(l->items, l->cap * sizeof *l->items);
		if (!l->items)
			abort();
	}
	va_start(ap, fmt);
	if (vasprintf(&l->items[l->n], fmt, ap) < 0)
		abort();
	va_end(ap);
	l->n++;
}

/* Errors are an empty text: what is listed here comes and goes. */
static size_t slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static struct dirent *next(DIR *dir)
{
	struct dirent *e = readdir(dir);

	while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0))
		e = readdir(dir);
	return e;
}

static void add_entries(struct leak *l, const char *dir, const char *with)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = next(d));)
		if (strstr(e->d_name, with))
			add(l, "entry %s/%s", dir, e->d_name);
	if (d)
		(void)closedir(d);
}

static void add_own(struct leak *l)
{
	DIR *d = opendir("/proc/self/fd");
	char line[1024];
	FILE *f;

	for (struct dirent *e; d && (e = next(d));) {
		char target[256];
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target);

		if (atoi(e->d_name) != dirfd(d))
			add(l, "descriptor %s -> %.*s", e->d_name, n < 0 ? 0 : (int)n, target);
	}
	if (d)
		(void)closedir(d);
	d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = next(d));)
		add(l, "thread %s", e->d_name);
	if (d)
		(void)closedir(d);
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "/memfd:"))
			add(l, "mapping of %s", strstr(line, "/memfd:"));
	if (f)
		(void)fclose(f);
}

enum owner { NOBODY, OURS, OTHERS };

/* Whose process it is: the helper's processes keep the environment that the library was used with. */
static enum owner owner_of(int pid, char comm[32])
{
	static char env[128 << 10];
	char path[64];
	struct stat st;
	size_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	if (!slurp(path, comm, 32) || strncmp(comm, "dsec-", 5) != 0)
		return NOBODY;
	comm[strcspn(comm, "\n")] = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
	n = slurp(path, env, sizeof env);
	for (size_t at = 0; at < n; at += strlen(env + at) + 1)
		if (strncmp(env + at, "DSEC_ROOT=", 10) == 0)
			return strcmp(env + at + 10, getenv("DSEC_ROOT")) == 0 ? OURS : OTHERS;
	/* An ordinary user cannot read an agent's; then it is ours if it is this user's. */
	(void)snprintf(path, sizeof path, "/proc/%d/task", pid);
	return n == 0 && stat(path, &st) == 0 && geteuid() != 0 && st.st_uid == geteuid() ? OURS : OTHERS;
}

static void add_processes(struct leak *l)
{
	DIR *dir = opendir("/proc");

	for (struct dirent *e; dir && (e = next(dir));) {
		char path[64], text[512], comm[32];
		const char *p;
		int parent = 0, pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid <= 0)
			continue;
		if (owner_of(pid, comm) == OURS)
			add(l, "process %d %s", pid, comm);
		(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
		if (slurp(path, text, sizeof text) && (p = strrchr(text, ')')) &&
		    sscanf(p + 1, " %*c %d", &parent) == 1 && parent == getpid())
			add(l, "child %.*s", (int)(p + 1 - text), text);
	}
	if (dir)
		(void)closedir(dir);
}

/* Whether a process of another node is in a control group or below it. */
static bool used_by_others(const char *group, int depth)
{
	char path[1200], comm[32];
	DIR *d;
	FILE *f;
	bool found = false;

	(void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
	f = fopen(path, "re");
	for (int pid; f && !found && fscanf(f, "%d", &pid) == 1;)
		found = owner_of(pid, comm) == OTHERS;
	if (f)
		(void)fclose(f);
	d = found || depth > 3 ? NULL : opendir(group);
	for (struct dirent *e; d && !found && (e = next(d));) {
		(void)snprintf(path, sizeof path, "%.900s/%s", group, e->d_name);
		found = e->d_type == DT_DIR && used_by_others(path, depth + 1);
	}
	if (d)
		(void)closedir(d);
	return found;
}

static void add_groups(struct leak *l, const char *pattern)
{
	glob_t g = { 0 };

	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			if (!used_by_others(g.gl_pathv[i], 0))
				add(l, "cgroup %s", g.gl_pathv[i]);
	globfree(&g);
}

/* Where the base directories can be: at the root of a hierarchy, or in this process's own group of it. */
static void add_cgroups(struct leak *l)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512], path[1200];

	add_groups(l, "/sys/fs/cgroup/dsec/dsec-*");
	add_groups(l, "/sys/fs/cgroup/*/dsec/dsec-*");
	while (f && fgets(line, sizeof line, f)) {
		char *controllers = strchr(line, ':'), *own = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!own)
			continue;
		*own++ = 0;
		own[strcspn(own, "\n")] = 0;
		if (strcmp(own, "/") == 0)
			continue; /* listed above */
		(void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/dsec/dsec-*", controllers + 1, own);
		add_groups(l, path);
		if (own == controllers + 2) {
			(void)snprintf(path, sizeof path, "/sys/fs/cgroup/unified%s/dsec/dsec-*", own);
			add_groups(l, path);
		}
	}
	if (f)
		(void)fclose(f);
}

static void add_mounts(struct leak *l)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], where[1024];
	int id;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%d %*d %*s %*s %1023s", &id, where) == 2)
			add(l, "mount %d %s", id, where);
	if (f)
		(void)fclose(f);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void leak_take(struct leak *ret)
{
	char path[300];

	*ret = (struct leak){ 0 };
	add_own(ret);
	add_processes(ret);
	add_cgroups(ret);
	add_mounts(ret);
	add_entries(ret, "/dev/shm", "dsec");
	(void)snprintf(path, sizeof path, "%s/sb", getenv("DSEC_ROOT"));
	add_entries(ret, path, "");
	(void)snprintf(path, sizeof path, "%s/names", getenv("DSEC_ROOT"));
	add_entries(ret, path, "");
	if (ret->n)
		qsort(ret->items, ret->n, sizeof *ret->items, by_text);
}

void leak_done(struct leak *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct leak){ 0 };
}

static bool has(const struct leak *l, const char *item)
{
	return l->n && bsearch(&item, l->items, l->n, sizeof *l->items, by_text);
}

static int64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool leak_none(const struct leak *before, int wait_ms, char *why, size_t size)
{
	int64_t end = now() + wait_ms;
	struct leak last = { 0 };

	for (;;) {
		struct leak after;
		size_t at = 0, fresh = 0;

		leak_take(&after);
		why[0] = 0;
		for (size_t i = 0; i < after.n; i++) {
			if (has(before, after.items[i]))
				continue;
			fresh++;
			/* At the end only what was there a moment before too: another node's sandboxes come and go. */
			if ((wait_ms == 0 || has(&last, after.items[i])) && at < size)
				at += (size_t)snprintf(why + at, size - at, "%s%s", at ? "; " : "", after.items[i]);
		}
		leak_done(&last);
		last = after;
		if (!fresh || now() >= end)
			break;
		(void)usleep(10000);
	}
	leak_done(&last);
	return !why[0];
}
