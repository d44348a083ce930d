/* SPDX-License-Identifier: MIT */
/*
 * The fault sweep. Every call that library, launcher, keeper and agent make of the kernel or the allocator is made to fail
 * once, and each time the same things are checked.
 *
 * How: library and helper are linked a second time with a shim before each call of wrapped.mk (wrap.c). The shims count the
 * calls of all processes in one mapped file while it is armed, and the one whose number is the target fails with an error
 * that it can give. A round does a whole piece of work with target k; rounds go on from k = 1 until one ends without its
 * fault being reached, which then was past the last call. There are two pieces of work:
 *
 *   life  open a node, make a sandbox with a name and limits, run a command, write and read a file, stop
 *   use   on a sandbox that is there: attach, a terminal, a stream with input, put, get, statistics, list
 *
 * Each round has a process of its own. After it: no crash and no hang (LIMIT_S), right results where the calls succeeded (the fault was done without),
 * else an error with code, step and text; and once the node was opened again, nothing is left of it (live/leak.h).
 *
 * usage: sweep [life|use [first [last]]]; with VERBOSE set each round is told
 */
#include <dsec/dsec.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/leak.h"
#include "fault.h"

#define LIMIT_S 5 /* for the work of one round */

static struct fault *fault;
/* What the child of a round tells. */
static struct {
	int failures, tolerated;
} *told;

struct round {
	const char *step; /* the call of the library that is under way */
	struct dsec_node *node;
	struct dsec_sandbox *sb;
	struct dsec_error err;
};

static struct round now;

static void on_alarm(int s)
{
	char text[200];
	int n = snprintf(text, sizeof text, "FAILED: call %ld, %s: %s: hangs\n", (long)fault->target,
			 fault->fired ? fault->name : "(none)", now.step);

	(void)s;
	(void)!write(1, text, (size_t)n);
	fault->armed = 0;
	told->failures++;
	_exit(0);
}

static void arm(int64_t target)
{
	fault->seen = fault->fired = 0;
	fault->target = target;
	memset(fault->name, 0, sizeof fault->name);
	(void)alarm(LIMIT_S);
	__atomic_store_n(&fault->armed, 1, __ATOMIC_SEQ_CST);
}

static void disarm(void)
{
	__atomic_store_n(&fault->armed, 0, __ATOMIC_SEQ_CST);
	(void)alarm(0);
}

static void bad(const char *what)
{
	(void)printf("FAILED: call %ld, %s: %s: %s\n", (long)fault->target, fault->fired ? fault->name : "(none)", now.step, what);
	told->failures++;
}

/* Remembers which call is under way; every failure must be whole. */
#define DO(call) (now.step = #call, checked(call))

static int checked(int64_t r)
{
	char text[400];

	if (r >= 0)
		return 0;
	if (now.err.code == r && now.err.step != DSEC_STEP_NONE && now.err.text[0] && !strchr(now.err.text, '\n'))
		return (int)r;
	(void)snprintf(text, sizeof text, "%d without a full error (code %d, step %u, \"%s\")", (int)r, now.err.code,
		       now.err.step, now.err.text);
	bad(text);
	return (int)r;
}

/* 0; 1 if the command ended otherwise and the result says so, which is the other way to tell a failure. */
static int expect(struct dsec_result *res, const char *text)
{
	int r = res->reason != DSEC_REASON_EXITED;

	if (!r && (res->exit_code != 0 || !res->stdout_data || strcmp(res->stdout_data, text) != 0))
		bad("a command that succeeded has the wrong output");
	if (!res->reason || res->reason > DSEC_REASON_UNKNOWN)
		bad("a result without a reason");
	dsec_result_clear(res);
	return r;
}

static int read_back(struct dsec_sandbox *sb)
{
	void *data = NULL;
	size_t n = 0;
	int r = DO(dsec_sandbox_read(sb, "/root/a/b", &data, &n, &now.err));

	if (r == 0 && (n != 5 || memcmp(data, "12345", 5) != 0))
		bad("wrong contents");
	free(data);
	return r;
}

static int life(void)
{
	static const char *const argv[] = { "/bin/echo", "hello", NULL };
	struct dsec_result res = { .sz = sizeof res };
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "swept", .memory_bytes = 64 << 20, .cpu_millis = 1000);
	int r = DO(dsec_node_open(&now.node, NULL, &now.err));

	if (r == 0)
		r = DO(dsec_sandbox_create(now.node, &o, &now.sb, &now.err));
	if (r == 0)
		r = DO(dsec_sandbox_exec(now.sb, argv, NULL, &res, &now.err));
	if (r == 0)
		r = expect(&res, "hello\n");
	if (r == 0)
		r = DO(dsec_sandbox_write(now.sb, "/root/a/b", "12345", 5, 0, &now.err));
	if (r == 0)
		r = read_back(now.sb);
	if (r == 0)
		r = DO(dsec_sandbox_stop(now.sb, 0, &now.err));
	return r;
}

static int stream(struct dsec_sandbox *sb)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM | DSEC_EXEC_STDIN);
	struct dsec_result res = { .sz = sizeof res };
	struct dsec_exec *e = NULL;
	bool whole = false;
	char got[8] = "";
	int64_t n = 0;
	int r = DO(dsec_exec_start(sb, argv, &o, &e, &now.err));

	if (r == 0)
		r = DO(dsec_exec_write(e, "word", 4, &now.err));
	for (size_t at = 0, dry = 0; r == 0 && at < 4; at += n > 0 ? (size_t)n : 0) {
		struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };

		n = dsec_exec_read(e, DSEC_STREAM_STDOUT, got + at, 4 - at, &now.err);
		if (n == 0)
			break; /* the command ended: its result tells how */
		if (n < 0 && n != -EAGAIN)
			r = DO(n);
		else if (n < 0 && (poll(&p, 1, 500) > 0 || ++dry == 2))
			if (dry == 2)
				break; /* lost on the way: the result must not be a success */
	}
	whole = strcmp(got, "word") == 0;
	if (r == 0 && n != 0)
		r = DO(dsec_exec_write(e, NULL, 0, &now.err));
	if (r == 0)
		r = DO(dsec_exec_wait(e, -1, &res, &now.err));
	if (r == 0)
		r = res.reason != DSEC_REASON_EXITED;
	if (r == 0 && !whole)
		bad("a stream that succeeded has lost bytes");
	dsec_result_clear(&res);
	dsec_exec_close(e);
	return r;
}

static int use(void)
{
	static const char *const argv[] = { "/bin/echo", "hello", NULL };
	DSEC_INIT(struct dsec_exec_opts, tty, .flags = DSEC_EXEC_TTY, .timeout_ms = 3000);
	struct dsec_result res = { .sz = sizeof res };
	struct dsec_sandbox_stats stats = { .sz = sizeof stats };
	struct dsec_sandbox *again = NULL;
	char host[300];
	int r = DO(dsec_sandbox_attach(now.node, "swept", &again, &now.err));

	(void)snprintf(host, sizeof host, "%s.file", getenv("DSEC_ROOT"));
	if (r == 0)
		r = DO(dsec_sandbox_exec(again, argv, &tty, &res, &now.err));
	if (r == 0)
		r = expect(&res, "hello\r\n");
	if (r == 0)
		r = stream(again);
	if (r == 0)
		r = DO(dsec_sandbox_put(now.sb, "/etc/hostname", "/root/put", &now.err));
	if (r == 0)
		r = DO(dsec_sandbox_get(now.sb, "/root/put", host, &now.err));
	if (r == 0 && system("cmp -s /etc/hostname $DSEC_ROOT.file") != 0)
		bad("wrong contents of a file that was got");
	if (r == 0)
		r = DO(dsec_sandbox_stats(again, &stats, &now.err));
	if (r == 0)
		r = DO(dsec_node_list(now.node, NULL, 0, 0, &now.err));
	dsec_sandbox_close(again);
	return r;
}

static void prepare(void)
{
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "swept");

	(void)alarm(60); /* the first one makes the image */
	if (DO(dsec_node_open(&now.node, NULL, &now.err)) < 0 ||
	    DO(dsec_sandbox_create(now.node, &o, &now.sb, &now.err)) < 0)
		bad(now.err.text);
}

/* Ends what the round began. A removal that failed is finished by the next open, when the keeper that failed is gone. */
static void clean_up(const struct leak *before)
{
	char why[600];
	int r;

	(void)alarm(4 * LIMIT_S);
	r = now.sb ? DO(dsec_sandbox_stop(now.sb, 0, &now.err)) : 0;
	dsec_sandbox_close(now.sb);
	dsec_node_close(now.node);
	if (r < 0 && !fault->fired)
		bad("stop failed without a fault");
	for (int i = 0; i < 20 && !leak_none(before, 50, why, sizeof why); i++) {
		now.node = NULL;
		if (DO(dsec_node_open(&now.node, NULL, &now.err)) < 0)
			bad(now.err.text);
		dsec_node_close(now.node);
	}
	now.step = "left behind";
	if (!leak_none(before, LEAK_WAIT_MS, why, sizeof why))
		bad(why);
	(void)alarm(0);
}

static void round_in_child(int (*work)(void), int64_t k)
{
	struct leak before;
	int r;

	now = (struct round){ .step = "" };
	leak_take(&before);
	if (work == use)
		prepare();
	arm(k);
	r = work();
	disarm();
	if (r != 0 && fault->seen < k) {
		char text[300];

		(void)snprintf(text, sizeof text, "failed by itself: %d [%s] %s", r, dsec_step_name(now.err.step), now.err.text);
		bad(text);
	}
	if (getenv("VERBOSE"))
		(void)printf("%ld %s -> %d %s: %s\n", (long)k, fault->fired ? fault->name : "-", r,
			     r < 0 ? dsec_step_name(now.err.step) : "", r < 0 ? now.err.text : "");
	told->tolerated += fault->fired && r == 0;
	clean_up(&before);
	leak_done(&before);
}

/* Returns whether the fault was reached. */
static bool round_of(int (*work)(void), int64_t k)
{
	int status = 0;
	pid_t pid;

	fault->fired = 0;
	fault->target = k;
	pid = fork();
	if (pid == 0) {
		round_in_child(work, k);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		(void)printf("FAILED: call %ld, %s: the process ended with status 0x%x\n", (long)k, fault->name, status);
		told->failures++;
	}
	fault->armed = 0;
	return fault->fired;
}

static void sweep(const char *name, int (*work)(void), int64_t first, int64_t last, int64_t least)
{
	int64_t k = first;

	told->tolerated = 0;
	while (k <= last && round_of(work, k))
		k++;
	(void)printf("%s: %ld calls failed one at a time, %ld of them were done without\n", name, (long)(k - first),
		     (long)told->tolerated);
	if (last == INT64_MAX && first == 1 && k - first < least) {
		(void)printf("FAILED: fewer than %ld cannot be all\n", (long)least);
		told->failures++;
	}
}

static void map_fault_file(void)
{
	char path[300];
	int fd;

	(void)snprintf(path, sizeof path, "%s.fault", getenv("DSEC_ROOT"));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *fault) < 0)
		exit(1);
	fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (fault == MAP_FAILED)
		exit(1);
	(void)setenv("DSEC_FAULT_FILE", path, 1);
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : "";
	int64_t first = argc > 2 ? atol(argv[2]) : 1, last = argc > 3 ? atol(argv[3]) : INT64_MAX;

	leak_setup_dirs(argv[0]);
	map_fault_file();
	(void)signal(SIGALRM, on_alarm);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)round_of(use, 0); /* the image is made once, without faults */
	if (strcmp(only, "use") != 0)
		sweep("life", life, first, last, 400);
	if (strcmp(only, "life") != 0)
		sweep("use", use, first, last, 100);
	leak_remove_dirs();
	(void)printf("%d failed\n", told->failures);
	return told->failures != 0;
}
