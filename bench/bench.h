/* SPDX-License-Identifier: MIT */
/*
 * What the measuring programs share: the clock, options, peers, and how a failure ends a run. A program prints one line
 * a sample, "who TAB what TAB number", after the last sample was taken; statistics are run.py's part. Every failure
 * ends the program with status 1: a sample of something that failed is no sample.
 */
#ifndef BENCH_H
#define BENCH_H

#include <dsec/dsec.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_PEERS_MAX 8
#define BENCH_TRUE "/bin/true"

extern char **environ;

/* Another way to run a command in isolation, as a program to start. */
struct bench_peer {
	const char *name;
	unsigned int every; /* takes part in every so-manieth round */
	int ns;             /* mount namespace to start it in, -1: ours */
	char **argv;        /* argv[0] is an absolute path */
};

struct bench_opts {
	const char *mode; /* first argument */
	unsigned int n, warmup, gap_ms, workers, slice_ms;
	struct bench_peer peers[BENCH_PEERS_MAX];
	size_t n_peers;
};

static inline __attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("bench: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* Ends the program unless r, which a call of the library returned, is a success. */
static inline void bench_check(int64_t r, const char *call, const struct dsec_error *err)
{
	if (r < 0)
		bench_die("%s: %s: %s: %s", call, dsec_step_name(err->step), err->text, strerror((int)-r));
}

static inline double bench_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void bench_sleep(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/*
 * A mount namespace like ours without the mount at `path`. crun refuses to start where a version-2 tree with a
 * controller lies beside version-1 ones, even when told to use no control groups; not seeing the tree, it starts.
 */
static inline int bench_ns_without(const char *path)
{
	char name[64], byte = 0;
	int up[2], down[2], ns;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC) < 0 || pipe2(down, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0) {
		(void)close(down[1]);
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    umount2(path, MNT_DETACH) < 0 || write(up[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(down[0], &byte, 1) != 0); /* until the parent closes its end */
	}
	(void)close(up[1]);
	if (read(up[0], &byte, 1) != 1)
		bench_die("a mount namespace without \"%s\" could not be made", path);
	(void)snprintf(name, sizeof name, "/proc/%d/ns/mnt", (int)pid);
	ns = open(name, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		bench_die("open \"%s\": %s", name, strerror(errno));
	(void)close(down[1]);
	(void)close(up[0]);
	(void)close(down[0]);
	(void)waitpid(pid, NULL, 0); /* the descriptor keeps the namespace */
	return ns;
}

/* NAME EVERY HIDE ARG... ";" from argv[i] on; returns the index of what follows. HIDE: a mount, or "-" for none. */
static inline int bench_peer_parse(struct bench_opts *o, int argc, char **argv, int i)
{
	struct bench_peer *p = &o->peers[o->n_peers];
	int end = i;

	while (end < argc && strcmp(argv[end], ";") != 0)
		end++;
	if (o->n_peers == BENCH_PEERS_MAX || end == argc || end - i < 4 || atoi(argv[i + 1]) < 1)
		bench_die("--peer NAME EVERY HIDE ARG... \";\"");
	argv[end] = NULL;
	*p = (struct bench_peer){ argv[i], (unsigned int)atoi(argv[i + 1]), -1, argv + i + 3 };
	if (strcmp(argv[i + 2], "-") != 0)
		p->ns = bench_ns_without(argv[i + 2]);
	o->n_peers++;
	return end + 1;
}

static inline void bench_parse(struct bench_opts *o, int argc, char **argv)
{
	const struct {
		const char *name;
		unsigned int *value;
	} numbers[] = {
		{ "--n", &o->n },
		{ "--warmup", &o->warmup },
		{ "--gap-ms", &o->gap_ms },
		{ "--workers", &o->workers },
		{ "--slice-ms", &o->slice_ms },
	};

	/* Whoever started us and died will not take the samples; the library's processes end with us. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (argc < 2)
		bench_die("usage: %s MODE [--n N] [--warmup N] [--gap-ms N] [--workers N] [--slice-ms N] [--peer ...]",
			  argv[0]);
	o->mode = argv[1];
	for (int i = 2; i < argc;) {
		size_t k = 0;

		if (strcmp(argv[i], "--peer") == 0) {
			i = bench_peer_parse(o, argc, argv, i + 1);
			continue;
		}
		while (k < sizeof numbers / sizeof numbers[0] && strcmp(argv[i], numbers[k].name) != 0)
			k++;
		if (k == sizeof numbers / sizeof numbers[0] || i + 1 == argc)
			bench_die("option \"%s\" is unknown or lacks its value", argv[i]);
		*numbers[k].value = (unsigned int)strtoul(argv[i + 1], NULL, 10);
		i += 2;
	}
}

/* Makes "%w" in the peers' arguments the number of the worker: names of containers must differ. */
static inline void bench_name_worker(struct bench_opts *o, unsigned int worker)
{
	for (size_t i = 0; i < o->n_peers; i++) {
		for (char **a = o->peers[i].argv; *a; a++) {
			char *mark = strstr(*a, "%w"), *text;

			if (!mark)
				continue;
			if (asprintf(&text, "%.*s%u%s", (int)(mark - *a), *a, worker, mark + 2) < 0)
				bench_die("out of memory");
			*a = text; /* lives as long as the program */
		}
	}
}

static inline void bench_enter(int ns)
{
	if (setns(ns, CLONE_NEWNS) < 0)
		bench_die("setns: %s", strerror(errno));
}

/* The floor is bare fork and exec; the other peers are started the cheapest way there is. */
static inline pid_t bench_peer_start(const struct bench_peer *p, const posix_spawn_file_actions_t *actions)
{
	pid_t pid;
	int r;

	if (strcmp(p->name, "floor") == 0) {
		pid = fork();
		if (pid == 0) {
			(void)execv(p->argv[0], p->argv);
			_exit(127);
		}
		r = pid < 0 ? errno : 0;
	} else {
		r = posix_spawn(&pid, p->argv[0], actions, NULL, p->argv, environ);
	}
	if (r != 0)
		bench_die("%s: start \"%s\": %s", p->name, p->argv[0], strerror(r));
	return pid;
}

/* Runs a peer once with an empty stdin; returns its milliseconds. The change of namespace is not counted. */
static inline double bench_peer_run(const struct bench_peer *p, int own_ns)
{
	posix_spawn_file_actions_t actions;
	double start, end;
	int status;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0)
		bench_die("out of memory");
	if (p->ns >= 0)
		bench_enter(p->ns);
	start = bench_ms();
	pid = bench_peer_start(p, &actions);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			bench_die("%s: wait: %s", p->name, strerror(errno));
	end = bench_ms();
	if (p->ns >= 0)
		bench_enter(own_ns);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		bench_die("%s: ended with wait status 0x%x", p->name, (unsigned int)status);
	return end - start;
}

static inline int bench_own_ns(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		bench_die("open \"/proc/self/ns/mnt\": %s", strerror(errno));
	return fd;
}

/* Runs BENCH_TRUE in the sandbox; anything but exit code 0 ends the program. */
static inline void bench_exec(struct dsec_sandbox *sandbox)
{
	const char *const argv[] = { BENCH_TRUE, NULL };
	DSEC_INIT(struct dsec_result, result, .reason = 0);
	struct dsec_error err;

	bench_check(dsec_sandbox_exec(sandbox, argv, NULL, &result, &err), "dsec_sandbox_exec", &err);
	if (result.reason != DSEC_REASON_EXITED || result.exit_code != 0)
		bench_die("dsec: %s: reason %u, exit code %d, signal %d", argv[0], result.reason, result.exit_code,
			  result.signal);
	dsec_result_clear(&result);
}

#endif
