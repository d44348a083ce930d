/* SPDX-License-Identifier: MIT */
#include "leak.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
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

static int entries(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	int n = 0;

	for (struct dirent *e; dir && (e = readdir(dir));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		     strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (dir)
		(void)closedir(dir);
	return n;
}

static size_t slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* The helper's processes keep the environment that the library was used with. */
static bool is_ours(int pid)
{
	static char env[128 << 10];
	char path[64], comm[32], want[300];
	size_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	if (!slurp(path, comm, sizeof comm) || strncmp(comm, "dsec-", 5) != 0)
		return false;
	(void)snprintf(want, sizeof want, "DSEC_ROOT=%s", getenv("DSEC_ROOT"));
	(void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
	n = slurp(path, env, sizeof env);
	for (size_t at = 0; at < n; at += strlen(env + at) + 1)
		if (strcmp(env + at, want) == 0)
			return true;
	return false;
}

static int processes(int *ret_children)
{
	DIR *dir = opendir("/proc");
	int n = 0;

	*ret_children = 0;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[64], stat[512];
		const char *p;
		int parent = 0, pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid <= 0)
			continue;
		n += is_ours(pid);
		(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
		if (slurp(path, stat, sizeof stat) && (p = strrchr(stat, ')')) && sscanf(p + 1, " %*c %d", &parent) == 1)
			*ret_children += parent == getpid();
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

/* Where the base directories can be: at the root of a hierarchy, or in this process's own group of it. */
static int cgroups(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512], path[1200];
	int n = entries("/sys/fs/cgroup/unified/dsec", "dsec-") + entries("/sys/fs/cgroup/dsec", "dsec-");

	while (f && fgets(line, sizeof line, f)) {
		char *controllers = strchr(line, ':'), *own = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!own || own == controllers + 1)
			continue; /* v2: counted above */
		*own++ = 0;
		own[strcspn(own, "\n")] = 0;
		(void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/dsec", controllers + 1, own);
		n += entries(path, "dsec-");
	}
	if (f)
		(void)fclose(f);
	return n;
}

static int lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f)
		(void)fclose(f);
	return n;
}

void leak_count(struct leak *ret)
{
	char path[300];

	ret->descriptors = entries("/proc/self/fd", "");
	ret->processes = processes(&ret->children);
	ret->cgroups = cgroups();
	ret->mounts = lines("/proc/self/mountinfo");
	(void)snprintf(path, sizeof path, "%s/sb", getenv("DSEC_ROOT"));
	ret->entries = entries(path, "");
	(void)snprintf(path, sizeof path, "%s/names", getenv("DSEC_ROOT"));
	ret->entries += entries(path, "");
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool leak_none(const struct leak *before, int wait_ms, char *why, size_t size)
{
	static const char *const names[] = { "descriptors", "children", "processes", "cgroups", "mounts", "entries" };
	int64_t end = now_ms() + wait_ms;

	for (;;) {
		struct leak after;
		const int *a = (const int *)&after, *b = (const int *)before;
		size_t i = 0;

		leak_count(&after);
		while (i < sizeof names / sizeof names[0] && a[i] <= b[i])
			i++;
		if (i == sizeof names / sizeof names[0])
			return true;
		if (now_ms() >= end) {
			(void)snprintf(why, size, "%s: %d before, %d after", names[i], b[i], a[i]);
			return false;
		}
		(void)usleep(10000);
	}
}
