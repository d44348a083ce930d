/* SPDX-License-Identifier: MIT */
/* The probe: what it says agrees with what the kernel does, and asking leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these four first */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "linux/cgroup.h"
#include "linux/probe.h"
#include "linux/trial.h"
#include "util/cleanup.h"

#define MAX 64

static struct dsec_probe_item items[MAX];
static char dir[] = "/tmp/dsec-test-probe-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* fails if the probe left a file */
}

static int ask(const char *root, const char *images)
{
	struct dsec_error err = { 0 };
	int n;

	memset(items, 0xff, sizeof items);
	n = dsec__probe(root, images, items, MAX, sizeof *items, &err);
	assert_in_range(n, 1, MAX);
	assert_int_equal(err.code, 0);
	return n;
}

static const struct dsec_probe_item *item(int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(items[i].name, name) == 0)
			return &items[i];
	fail_msg("no item \"%s\"", name);
	return NULL;
}

static int entries(const char *path)
{
	AUTO_CLOSEDIR DIR *d = opendir(path);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	return n;
}

static int lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = 0;
	int c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	(void)fclose(f);
	return n;
}

static void each_item_is_complete(void **state)
{
	int n = ask(dir, dir);

	(void)state;
	for (int i = 0; i < n; i++) {
		const struct dsec_probe_item *it = &items[i];

		assert_true(it->name[0] && memchr(it->name, 0, sizeof it->name));
		assert_true(it->why[0] && memchr(it->why, 0, sizeof it->why));
		assert_non_null(memchr(it->effect, 0, sizeof it->effect));
		assert_true(it->available == 0 || it->available == 1);
		assert_int_equal(it->reserved, 0);
		if (!it->available)
			assert_true(it->effect[0]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(it->name, items[k].name);
	}
}

static void texts_are_not_cut(void **state)
{
	int n = ask(dir, dir);

	(void)state;
	for (int i = 0; i < n; i++)
		if (strlen(items[i].effect) >= sizeof items[i].effect - 1)
			fail_msg("%s: effect is cut", items[i].name);
}

static void without_directories_their_items_are_left_out(void **state)
{
	int all = ask(dir, dir);
	int none = ask(NULL, NULL);

	(void)state;
	assert_int_equal(all, none + 3);
	for (int i = 0; i < none; i++)
		assert_true(strcmp(items[i].name, "state_dir") != 0 && strcmp(items[i].name, "image_dir") != 0 &&
			    strcmp(items[i].name, "erofs_files") != 0);
}

static void counting_gives_the_same_number(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	assert_int_equal(dsec__probe(dir, dir, NULL, 0, 0, &err), ask(dir, dir));
	assert_int_equal(dsec__probe(NULL, NULL, NULL, 0, 0, NULL), ask(NULL, NULL));
}

static void small_array_is_filled_and_not_passed(void **state)
{
	struct dsec_probe_item three[4];
	struct dsec_error err = { 0 };

	(void)state;
	memset(three, 0x55, sizeof three);
	assert_int_equal(dsec__probe(NULL, NULL, three, 3, sizeof *three, &err),
			 dsec__probe(NULL, NULL, NULL, 0, 0, NULL));
	assert_string_equal(three[0].name, "kernel");
	assert_true(three[2].name[0]);
	for (size_t i = 0; i < sizeof *three; i++)
		assert_int_equal(((unsigned char *)&three[3])[i], 0x55);
}

static void newer_callers_item_is_longer(void **state)
{
	struct {
		struct dsec_probe_item known;
		char more[40];
	} two[2];
	struct dsec_error err = { 0 };

	(void)state;
	memset(two, 0x55, sizeof two);
	assert_true(dsec__probe(NULL, NULL, &two[0].known, 2, sizeof *two, &err) > 2);
	assert_string_equal(two[1].known.name, "user_namespaces");
	for (size_t i = 0; i < sizeof two[0].more; i++)
		assert_int_equal(two[0].more[i], 0);
}

static void bad_arguments_are_refused(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	assert_int_equal(dsec__probe(NULL, NULL, NULL, 1, sizeof *items, &err), -EINVAL);
	assert_int_equal(err.step, DSEC_STEP_OPTIONS);
	assert_int_equal(dsec__probe(NULL, NULL, items, 1, sizeof *items - 1, &err), -EINVAL);
	assert_int_equal(dsec__probe(NULL, NULL, items, 1, 0, NULL), -EINVAL);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void asking_leaves_nothing_behind(void **state)
{
	struct sigaction act = { .sa_handler = count_signal };
	struct sigaction before;
	sigset_t mask;
	int fds;
	int mounts;
	int files;

	(void)state;
	assert_int_equal(sigaction(SIGCHLD, &act, &before), 0);
	(void)ask(dir, dir);
	fds = entries("/proc/self/fd");
	mounts = lines("/proc/self/mountinfo");
	files = entries(dir);
	for (int i = 0; i < 20; i++) {
		errno = 4711;
		(void)ask(dir, dir);
		assert_int_equal(errno, 4711);
	}
	assert_int_equal(entries("/proc/self/fd"), fds);
	assert_int_equal(lines("/proc/self/mountinfo"), mounts);
	assert_int_equal(entries(dir), files);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(signals, 0); /* the trainer's SIGCHLD handler has nothing to do with it */
	assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

static void it_takes_less_than_50_ms(void **state)
{
	struct timespec a;
	struct timespec b;
	double best = 1e9;

	(void)state;
	for (int i = 0; i < 5; i++) {
		double ms;

		(void)clock_gettime(CLOCK_MONOTONIC, &a);
		(void)ask(dir, dir);
		(void)clock_gettime(CLOCK_MONOTONIC, &b);
		ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	print_message("%.1f ms\n", best);
	assert_true(best < 50);
}

/* A fork of this would fail or take long; the probe shares memory instead. */
static void a_big_caller_is_not_copied(void **state)
{
	size_t n = 256u << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	(void)state;
	assert_true(p != MAP_FAILED);
	it_takes_less_than_50_ms(NULL);
	assert_int_equal(munmap(p, n), 0);
}

static void *thread(void *arg)
{
	static struct dsec_probe_item mine[8][MAX];
	struct dsec_error err = { 0 };
	struct dsec_probe_item *to = mine[(intptr_t)arg];

	for (int i = 0; i < 10; i++)
		if (dsec__probe(dir, dir, to, MAX, sizeof *to, &err) < 1)
			return (void *)1;
	return NULL;
}

static void threads_may_ask_at_the_same_time(void **state)
{
	pthread_t t[8];
	void *result;

	(void)state;
	for (intptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, thread, (void *)i), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(t[i], &result), 0);
		assert_null(result);
	}
}

static void answers_agree_with_the_kernel(void **state)
{
	int n = ask(dir, dir);
	struct dsec__cgroot root;
	struct dsec_error err = { 0 };
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(item(n, "user_namespaces")->available, status == 0);
	assert_int_equal(dsec__cgroot_open(&root, &err), 0);
	assert_int_equal(item(n, "cgroup_memory")->available, root.memory >= 0);
	assert_int_equal(item(n, "cgroup_pids")->available, root.pids >= 0);
	assert_int_equal(item(n, "cgroup_cpu")->available, root.cpu >= 0);
	assert_int_equal(item(n, "cgroup_exec")->available, root.exec >= 0);
	dsec__cgroot_close(&root);
	assert_int_equal(item(n, "kvm")->available, access("/dev/kvm", R_OK | W_OK) == 0);
	assert_int_equal(item(n, "pidfd")->available, 1);
	assert_int_equal(item(n, "state_dir")->available, 1);
}

static void missing_directory_is_said(void **state)
{
	int n = ask("/nonexistent/root", "/nonexistent/images");

	(void)state;
	assert_int_equal(item(n, "state_dir")->available, 0);
	assert_int_equal(item(n, "image_dir")->available, 0);
	assert_int_equal(item(n, "erofs_files")->available, 0);
	assert_non_null(strstr(item(n, "state_dir")->why, "/nonexistent/root"));
}

/* Without any right: every answer still comes, and names what to change. */
static void ordinary_user_is_told_what_is_missing(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		struct dsec_error err = { 0 };
		const char *why = "";
		int n = 0;

		/* As a program that was executed as that user. */
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
		    prctl(PR_SET_DUMPABLE, 1) < 0)
			_exit(2);
		n = dsec__probe("/", "/tmp", items, MAX, sizeof *items, &err);
		for (int i = 0; i < n; i++)
			if (strcmp(items[i].name, "id_ranges") == 0 && !items[i].available && items[i].effect[0])
				why = items[i].why;
		_exit(strcmp(why, "not root") != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_trial_that_cannot_be_made_says_so(void **state)
{
	(void)state;
	assert_int_equal(dsec__trial_erofs("/nonexistent"), -ENOENT);
	assert_true(dsec__trial_idmap("/usr", -1) < 0);
	assert_int_equal(dsec__trial_idmap("/nonexistent", 0), geteuid() == 0 ? -ENOENT : -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item_is_complete),
		cmocka_unit_test(texts_are_not_cut),
		cmocka_unit_test(without_directories_their_items_are_left_out),
		cmocka_unit_test(counting_gives_the_same_number),
		cmocka_unit_test(small_array_is_filled_and_not_passed),
		cmocka_unit_test(newer_callers_item_is_longer),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(asking_leaves_nothing_behind),
		cmocka_unit_test(it_takes_less_than_50_ms),
		cmocka_unit_test(a_big_caller_is_not_copied),
		cmocka_unit_test(threads_may_ask_at_the_same_time),
		cmocka_unit_test(answers_agree_with_the_kernel),
		cmocka_unit_test(missing_directory_is_said),
		cmocka_unit_test(ordinary_user_is_told_what_is_missing),
		cmocka_unit_test(a_trial_that_cannot_be_made_says_so),
	};

	return cmocka_run_group_tests_name("probe", tests, setup, teardown);
}
