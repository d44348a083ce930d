/* SPDX-License-Identifier: MIT */
/*
 * What a living sandbox costs in memory: `memory run --n N` makes N sandboxes, runs a command in each, and compares the
 * machine before and after. "used" is all memory but what is free and the page cache of files, so that slabs, page
 * tables, kernel stacks and tmpfs count in full; "available" is the fall of MemAvailable, which takes reclaimable slabs
 * for free although those of a living sandbox are held. Both are of the whole machine: let nothing else run. "keeper"
 * and "agent" are the sums of the proportional set sizes of their processes. All numbers are MiB for one sandbox.
 */
#include "bench.h"

#include <sys/resource.h>

#define SETTLE_MS 1500
#define READINGS 5

struct reading {
	double used, available, slab, kernel; /* MiB */
};

/* The number behind "key:" in a file of such lines, in MiB; 0 where there is none. */
static double field(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? (double)strtoull(p + strlen(key), NULL, 10) / 1024 : 0;
}

/* False when the file cannot be read, as that of a process that ended. */
static bool slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 0;
	size_t have = 0;

	while (fd >= 0 && have < size - 1 && (n = read(fd, buf + have, size - 1 - have)) > 0)
		have += (size_t)n;
	buf[have] = 0;
	if (fd >= 0)
		(void)close(fd);
	return n >= 0;
}

static struct reading read_once(void)
{
	static char text[16384];
	struct reading r;

	if (!slurp("/proc/meminfo", text, sizeof text))
		bench_die("read \"/proc/meminfo\"");
	r.available = field(text, "MemAvailable:");
	r.slab = field(text, "Slab:");
	r.kernel = field(text, "PageTables:") + field(text, "KernelStack:") + field(text, "Percpu:");
	r.used = field(text, "MemTotal:") - field(text, "MemFree:") - field(text, "Buffers:") -
		 (field(text, "Cached:") - field(text, "Shmem:"));
	return r;
}

/* The mean of a few readings when things have settled. */
static struct reading read_memory(void)
{
	struct reading sum = { 0 };

	bench_sleep(SETTLE_MS);
	for (int i = 0; i < READINGS; i++) {
		struct reading r = read_once();

		sum.used += r.used / READINGS;
		sum.available += r.available / READINGS;
		sum.slab += r.slab / READINGS;
		sum.kernel += r.kernel / READINGS;
		bench_sleep(100);
	}
	return sum;
}

static double pss(long pid)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", pid);
	if (!slurp(path, text, sizeof text))
		bench_die("read \"%s\": %s", path, strerror(errno));
	return field(text, "Pss:");
}

/* The keeper's children and what is below them. */
static double pss_below(long pid)
{
	char path[64], text[4096], *next = text;
	double sum = 0;

	(void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
	if (!slurp(path, text, sizeof text))
		bench_die("read \"%s\": %s", path, strerror(errno));
	for (;;) {
		char *end;
		long child = strtol(next, &end, 10);

		if (end == next)
			return sum;
		sum += pss(child) + pss_below(child);
		next = end;
	}
}

static void print_processes(struct dsec_node *node, unsigned int n)
{
	struct dsec_sandbox_info *infos = calloc(n, sizeof *infos);
	struct dsec_error err;
	double keeper = 0, agent = 0;
	int have;

	if (!infos)
		bench_die("out of memory");
	have = dsec_node_list(node, infos, n, sizeof *infos, &err);
	bench_check(have, "dsec_node_list", &err);
	if ((unsigned int)have != n)
		bench_die("%d sandboxes are listed, %u were made", have, n);
	for (unsigned int i = 0; i < n; i++) {
		keeper += pss(infos[i].keeper_pid);
		agent += pss_below(infos[i].keeper_pid);
	}
	if (agent == 0) /* nothing is that small: we looked in the wrong place */
		bench_die("no agents were found below the keepers");
	printf("dsec\tkeeper\t%.4f\ndsec\tagent\t%.4f\n", keeper / n, agent / n);
	free(infos);
}

static struct dsec_sandbox *make_one(struct dsec_node *node)
{
	struct dsec_sandbox *sandbox;
	struct dsec_error err;

	bench_check(dsec_sandbox_create(node, NULL, &sandbox, &err), "dsec_sandbox_create", &err);
	bench_exec(sandbox);
	return sandbox;
}

static void stop_one(struct dsec_sandbox *sandbox)
{
	struct dsec_error err;

	bench_check(dsec_sandbox_stop(sandbox, 0, &err), "dsec_sandbox_stop", &err);
	dsec_sandbox_close(sandbox);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .n = 1000 };
	struct dsec_sandbox **sandboxes;
	struct reading before, after;
	struct rlimit files;
	struct dsec_node *node;
	struct dsec_error err;

	bench_parse(&o, argc, argv);
	if (o.n == 0 || !(sandboxes = calloc(o.n, sizeof *sandboxes)))
		bench_die("--n: not a number of sandboxes");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max; /* a few descriptors for each sandbox */
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	bench_check(dsec_node_open(&node, NULL, &err), "dsec_node_open", &err);
	for (int i = 0; i < 3; i++)
		stop_one(make_one(node)); /* what is made once, or made ahead, is not charged to the sandboxes */
	before = read_memory();
	for (unsigned int i = 0; i < o.n; i++)
		sandboxes[i] = make_one(node);
	after = read_memory();
	printf("dsec\tused\t%.4f\n", (after.used - before.used) / o.n);
	printf("dsec\tavailable\t%.4f\n", (before.available - after.available) / o.n);
	printf("dsec\tslab\t%.4f\n", (after.slab - before.slab) / o.n);
	printf("dsec\tkernel\t%.4f\n", (after.kernel - before.kernel) / o.n);
	print_processes(node, o.n);
	for (unsigned int i = 0; i < o.n; i++)
		stop_one(sandboxes[i]);
	dsec_node_close(node);
	free(sandboxes);
	return fflush(stdout) == 0 ? 0 : 1;
}
