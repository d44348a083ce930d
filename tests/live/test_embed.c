/* SPDX-License-Identifier: MIT */
/* Processes that embed the library under conditions of their own: what they have spoilt does not spoil it, and it does not
   spoil what is theirs. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_forked_childs_copies_are_refused(void **state)
{
	struct live *l = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const char *argv[] = { "true", NULL };
		struct dsec_result r = { .sz = sizeof r };
		struct dsec_sandbox *sb;
		struct dsec_error err;
		int bad = dsec_sandbox_exec(l->sb, argv, NULL, &r, &err) != -ECHILD ||
			  dsec_sandbox_create(l->node, NULL, &sb, &err) != -ECHILD ||
			  dsec_sandbox_stop(l->sb, 0, &err) != -ECHILD;

		dsec_sandbox_close(l->sb); /* takes nothing from the parent */
		dsec_node_close(l->node);
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	SAYS(l->sb, "echo unhurt", "unhurt\n");
}

/* Runs in a child whose surroundings were spoilt: 0 when a whole life of a sandbox goes well. */
static int whole_life(void)
{
	/* Signals are as a fresh program expects them, whatever the trainer ignores or blocks. */
	const char *argv[] = { "/bin/sh", "-c", "yes | head -n 1 >/dev/null; sh -c 'kill -TERM $$; echo ignored'; umask; echo fine", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_node *node = NULL;
	struct dsec_sandbox *sb = NULL;
	struct dsec_error err;
	int bad = 1;

	if (dsec_node_open(&node, NULL, &err) == 0 && dsec_sandbox_create(node, NULL, &sb, &err) == 0 &&
	    dsec_sandbox_exec(sb, argv, NULL, &r, &err) == 0)
		bad = strcmp(r.stdout_data, "0022\nfine\n") != 0;
	if (sb)
		bad |= dsec_sandbox_stop(sb, 0, &err) < 0;
	dsec_result_clear(&r);
	dsec_sandbox_close(sb);
	dsec_node_close(node);
	return bad;
}

static void in_child(void (*spoil)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		spoil();
		_exit(whole_life());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void ignore_children(void)
{
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_DFL);
}

static void close_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
}

static void few_descriptors(void)
{
	struct rlimit l = { 256, 256 };

	(void)setrlimit(RLIMIT_NOFILE, &l);
}

static void bare_environment(void)
{
	char root[300], images[300];

	(void)snprintf(root, sizeof root, "%s", getenv("DSEC_ROOT"));
	(void)snprintf(images, sizeof images, "%s", getenv("DSEC_IMAGES"));
	(void)clearenv();
	(void)setenv("DSEC_ROOT", root, 1);
	(void)setenv("DSEC_IMAGES", images, 1);
	(void)umask(077);
	(void)chdir("/");
}

static void all_signals_blocked(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* What interactive shells and Python leave to their children. */
static void signals_ignored(void)
{
	static const int ignored[] = { SIGPIPE, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTTOU, SIGXFSZ, SIGALRM };

	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		(void)signal(ignored[i], SIG_IGN);
}

static void few_resources(void)
{
	struct rlimit none = { 0, 0 }, stack = { 256 << 10, 256 << 10 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_MEMLOCK, &none);
	(void)setrlimit(RLIMIT_STACK, &stack);
}

static void odd_surroundings_are_borne(void **state)
{
	(void)state;
	in_child(signals_ignored);
	in_child(few_resources);
	in_child(ignore_children);
	in_child(close_streams);
	in_child(few_descriptors);
	in_child(bare_environment);
	in_child(all_signals_blocked);
}

static void *own_handles(void *ret)
{
	*(int *)ret = whole_life();
	return NULL;
}

static void threads_with_handles_of_their_own(void **state)
{
	pthread_t t[6];
	int bad[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&t[i], NULL, own_handles, &bad[i]), 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_int_equal(bad[i], 0);
	}
}

static volatile sig_atomic_t child_signals;

static void count_child(int s)
{
	(void)s;
	child_signals++;
}

static void the_trainer_gets_no_children_of_ours(void **state)
{
	struct sigaction old, count = { .sa_handler = count_child, .sa_flags = SA_RESTART };
	struct live *l = *state;
	struct dsec_error err;
	int after_open;

	OK(sigaction(SIGCHLD, &count, &old));
	child_signals = 0;
	dsec_node_close(l->node);
	OK(dsec_node_open(&l->node, NULL, &err));
	after_open = child_signals;
	assert_true(after_open <= 1); /* the program that starts the launcher, reaped by the library */
	for (int i = 0; i < 5; i++) {
		OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
		SAYS(l->sb, "echo x", "x\n");
		OK(dsec_sandbox_stop(l->sb, 0, &err));
		dsec_sandbox_close(l->sb);
	}
	l->sb = NULL;
	assert_int_equal(child_signals, after_open);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	OK(sigaction(SIGCHLD, &old, NULL));
}

/* A trainer's secrets: its environment and its descriptors. */
static void what_the_trainer_holds_stays_with_it(void **state)
{
	struct live *l = *state;
	struct dsec_error err;

	assert_int_equal(setenv("DSEC_TEST_SECRET", "hunter2", 1), 0);
	dsec_node_close(l->node);
	OK(dsec_node_open(&l->node, NULL, &err));
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	assert_int_equal(unsetenv("DSEC_TEST_SECRET"), 0);
	SAYS(l->sb, "env | grep -c hunter2 || :", "0\n");
	SAYS(l->sb, "cat /proc/1/environ /proc/*/environ 2>/dev/null | grep -c -a hunter2 || :", "0\n");
}

/* Descriptors that a fork copied do not keep a sandbox from ending with its creator. */
static void a_forked_child_does_not_keep_a_sandbox_alive(void **state)
{
	struct live *l = *state;
	int hold[2], status;
	struct dsec_error err;
	char c;
	pid_t pid;

	assert_int_equal(pipe(hold), 0);
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	pid = fork();
	if (pid == 0) {
		(void)close(hold[1]);
		(void)!read(hold[0], &c, 1); /* lives, with copies of all */
		_exit(0);
	}
	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	for (int i = 0; i < 500 && dsec_node_list(l->node, NULL, 0, 0, &err) > 0; i++)
		(void)usleep(5000); /* close does not wait for it */
	assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
	(void)close(hold[1]);
	(void)close(hold[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void *signal_soon(void *e)
{
	struct dsec_error err;

	(void)usleep(100000); /* while the other thread waits */
	return (void *)(intptr_t)dsec_exec_signal(e, SIGTERM, &err);
}

static void another_thread_may_signal(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sleep", "60", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;
	pthread_t t;
	void *ret;

	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	assert_int_equal(pthread_create(&t, NULL, signal_soon, e), 0);
	OK(dsec_exec_wait(e, 10000, &r, &err));
	assert_int_equal(pthread_join(t, &ret), 0);
	assert_null(ret);
	assert_int_equal(r.reason, DSEC_REASON_SIGNALED);
	assert_int_equal(r.signal, SIGTERM);
	dsec_result_clear(&r);
	dsec_exec_close(e);
}

/* dsec/types.h: errno itself is never changed. */
#define KEEPS_ERRNO(call)                                                   \
	do {                                                                \
		errno = 4711;                                               \
		OK(call);                                                   \
		if (errno != 4711) {                                        \
			print_error("errno is %d after %s\n", errno, #call); \
			changed++;                                          \
		}                                                           \
	} while (0)

static void errno_is_left_alone(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "true", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_node_stats s = { .sz = sizeof s };
	struct dsec_sandbox_stats b = { .sz = sizeof b };
	struct dsec_node *node;
	struct dsec_error err;
	struct dsec_exec *e;
	void *data = NULL;
	int changed = 0;
	size_t n;

	KEEPS_ERRNO(dsec_node_open(&node, NULL, &err));
	KEEPS_ERRNO((dsec_node_close(node), 0));
	KEEPS_ERRNO(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	KEEPS_ERRNO(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
	dsec_result_clear(&r);
	KEEPS_ERRNO(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	KEEPS_ERRNO(dsec_exec_wait(e, -1, &r, &err));
	dsec_result_clear(&r);
	KEEPS_ERRNO((dsec_exec_close(e), 0));
	KEEPS_ERRNO(dsec_sandbox_write(l->sb, "/root/x", "x", 1, 0, &err));
	KEEPS_ERRNO(dsec_sandbox_read(l->sb, "/root/x", &data, &n, &err));
	free(data);
	KEEPS_ERRNO(dsec_sandbox_stats(l->sb, &b, &err));
	KEEPS_ERRNO(dsec_node_stats(l->node, &s, &err));
	KEEPS_ERRNO(dsec_node_list(l->node, NULL, 0, 0, &err));
	KEEPS_ERRNO(dsec_node_reap(l->node, &err));
	KEEPS_ERRNO(dsec_node_probe(l->node, NULL, 0, 0, &err));
	KEEPS_ERRNO(dsec_sandbox_stop(l->sb, 0, &err));
	KEEPS_ERRNO((dsec_sandbox_close(l->sb), 0));
	l->sb = NULL;
	assert_int_equal(changed, 0);
}

static void signals_masks_and_directory_are_left_as_they_were(void **state)
{
	struct live *l = *state;
	struct sigaction old[65], new;
	sigset_t before, after;
	struct dsec_error err;
	mode_t mask = umask(027);
	char cwd[2][300];

	(void)sigprocmask(SIG_SETMASK, NULL, &before);
	for (int s = 1; s <= 64; s++)
		(void)sigaction(s, NULL, &old[s]);
	assert_non_null(getcwd(cwd[0], sizeof cwd[0]));
	dsec_node_close(l->node);
	OK(dsec_node_open(&l->node, NULL, &err));
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	SAYS(l->sb, "umask", "0022\n");
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	(void)sigprocmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s <= 64; s++) {
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
		if (sigaction(s, NULL, &new) == 0)
			assert_ptr_equal(new.sa_handler, old[s].sa_handler);
	}
	assert_non_null(getcwd(cwd[1], sizeof cwd[1]));
	assert_string_equal(cwd[0], cwd[1]);
	assert_int_equal(umask(mask), 027);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE(a_forked_childs_copies_are_refused),
		LIVE_NODE(odd_surroundings_are_borne),
		LIVE_NODE(threads_with_handles_of_their_own),
		LIVE_NODE(the_trainer_gets_no_children_of_ours),
		LIVE_NODE(what_the_trainer_holds_stays_with_it),
		LIVE_NODE(a_forked_child_does_not_keep_a_sandbox_alive),
		LIVE(another_thread_may_signal),
		LIVE_NODE(errno_is_left_alone),
		LIVE_NODE(signals_masks_and_directory_are_left_as_they_were),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
