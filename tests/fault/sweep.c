/* SPDX-License-Identifier: MIT */
/*
 * The fault sweep: a sandbox is made, runs a command, takes and gives a file; each time another one of all the calls that
 * library, launcher, keeper and agent make for it fails, from the first to the last. Every time: no crash, no hang, an
 * error with code, step and text or a success that did without, and nothing left behind once the node has been reaped.
 *
 * usage: sweep [first [last]]
 */
#include <dsec/dsec.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../live/leak.h"
#include "fault.h"

#define LIMIT_S 30 /* for one round; a hang ends the program and so the test */

static struct fault *fault;
static int failures;

static void arm(int64_t target)
{
	fault->seen = fault->fired = 0;
	fault->target = target;
	memset(fault->name, 0, sizeof fault->name);
	__atomic_store_n(&fault->armed, 1, __ATOMIC_SEQ_CST);
}

/* create, exec, write, read; the first failure. */
static int work(struct dsec_node *node, struct dsec_sandbox **ret_sb, struct dsec_error *err)
{
	static const char *const argv[] = { "/bin/echo", "hello", NULL };
	struct dsec_result res = { .sz = sizeof res };
	struct dsec_sandbox_opts o = { .sz = sizeof o, .name = "swept", .memory_bytes = 64 << 20, .cpu_millis = 1000 };
	void *data = NULL;
	size_t n = 0;
	int r = dsec_sandbox_create(node, &o, ret_sb, err);

	if (r == 0)
		r = dsec_sandbox_exec(*ret_sb, argv, NULL, &res, err);
	if (r == 0 && res.reason == DSEC_REASON_EXITED && strcmp(res.stdout_data, "hello\n") != 0) {
		(void)printf("%s failed: wrong output \"%s\"\n", fault->name, res.stdout_data);
		exit(1);
	}
	if (r == 0 && res.reason != DSEC_REASON_EXITED)
		r = 1; /* it ended otherwise, and said so */
	dsec_result_clear(&res);
	if (r == 0)
		r = dsec_sandbox_write(*ret_sb, "/root/a/b", "12345", 5, 0, err);
	if (r == 0)
		r = dsec_sandbox_read(*ret_sb, "/root/a/b", &data, &n, err);
	if (r == 0 && (n != 5 || memcmp(data, "12345", 5) != 0)) {
		(void)printf("%s failed: wrong contents, %zu bytes\n", fault->name, n);
		exit(1);
	}
	free(data);
	return r;
}

/* Returns whether the fault was reached. */
static int round_of(int64_t k, int64_t *tolerated)
{
	struct dsec_error err = { 0 }, ignored;
	struct dsec_sandbox *sb = NULL;
	struct dsec_node *node;
	struct leak before;
	char why[128];
	int r, fired;

	(void)alarm(LIMIT_S);
	leak_count(&before);
	r = dsec_node_open(&node, NULL, &err);
	if (r < 0) {
		(void)printf("%ld: node: %s\n", (long)k, err.text);
		exit(1);
	}
	arm(k);
	r = work(node, &sb, &err);
	__atomic_store_n(&fault->armed, 0, __ATOMIC_SEQ_CST);
	fired = fault->fired;
	if (r < 0 && (err.code != r || err.step == DSEC_STEP_NONE || !err.text[0])) {
		(void)printf("%ld: %s failed: %d without a full error (code %d, step %u, \"%s\")\n", (long)k, fault->name, r,
			     err.code, err.step, err.text);
		failures++;
	}
	if (r < 0 && !fired) {
		(void)printf("%ld: failed without a fault: %s: %s\n", (long)k, dsec_step_name(err.step), err.text);
		exit(1);
	}
	if (getenv("VERBOSE"))
		(void)printf("%ld %s -> %d %s: %s\n", (long)k, fired ? fault->name : "-", r,
			     r < 0 ? dsec_step_name(err.step) : "", r < 0 ? err.text : "");
	*tolerated += fired && r == 0;
	if (sb && dsec_sandbox_stop(sb, 0, &err) < 0)
		(void)printf("%ld: stop: %s\n", (long)k, err.text);
	dsec_sandbox_close(sb);
	/* A removal that failed once is finished by a reap, when the keeper that failed is gone. */
	for (int i = 0; i < 300 && !leak_none(&before, 0, why, sizeof why); i++) {
		if (dsec_node_reap(node, &ignored) < 0 || i == 20) {
			dsec_node_close(node);
			node = NULL;
		}
		if (!node && dsec_node_open(&node, NULL, &err) < 0)
			exit(1);
		if (i > 20)
			break;
		(void)usleep(5000);
	}
	dsec_node_close(node);
	if (!leak_none(&before, 5000, why, sizeof why)) {
		(void)printf("%ld: %s failed: left behind: %s\n", (long)k, fault->name, why);
		failures++;
	}
	return fired;
}

int main(int argc, char **argv)
{
	int64_t first = argc > 1 ? atol(argv[1]) : 1, last = argc > 2 ? atol(argv[2]) : INT64_MAX, k, tolerated = 0;
	char path[300];
	int fd;

	leak_setup_dirs(argv[0]);
	(void)snprintf(path, sizeof path, "%s.fault", getenv("DSEC_ROOT"));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *fault) < 0)
		return 1;
	fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	(void)setenv("DSEC_FAULT_FILE", path, 1);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)round_of(0, &tolerated); /* the image is made once, without faults */
	for (k = first; k <= last && round_of(k, &tolerated); k++)
		;
	leak_remove_dirs();
	(void)printf("swept %ld calls, %ld of them were done without\n", (long)(k - first), (long)tolerated);
	(void)printf("%ld passed, %d failed\n", (long)(k - first) - failures, failures);
	return failures || (last == INT64_MAX && k - first < 100); /* fewer cannot be all */
}
