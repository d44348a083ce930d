/* SPDX-License-Identifier: MIT */
/* The node, and processes that embed the library under conditions of their own. */
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

static void opening_is_quick(void **state)
{
	double best = 1e9;

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct dsec_node *node;
		struct dsec_error err;
		double t = now_ms();

		OK(dsec_node_open(&node, NULL, &err));
		t = now_ms() - t;
		best = t < best ? t : best;
		dsec_node_close(node);
	}
	assert_true(best < 20);
}

static void bad_directories_are_named(void **state)
{
	DSEC_INIT(struct dsec_node_opts, o, .root = "relative");
	struct dsec_node *node;
	struct dsec_error err;

	(void)state;
	FAILS(dsec_node_open(&node, &o, &err), -EINVAL, DSEC_STEP_OPTIONS);
	assert_non_null(strstr(err.text, "root"));
	o.root = "/etc";
	FAILS(dsec_node_open(&node, &o, &err), geteuid() ? -EACCES : -EUCLEAN, DSEC_STEP_NODE);
	o.root = "/proc/dsec";
	FAILS(dsec_node_open(&node, &o, &err), -ENOENT, DSEC_STEP_NODE);
	o.root = "/etc/passwd/x";
	FAILS(dsec_node_open(&node, &o, &err), -ENOTDIR, DSEC_STEP_NODE);
	o.root = NULL;
	o.flags = 1;
	FAILS(dsec_node_open(&node, &o, &err), -EINVAL, DSEC_STEP_OPTIONS);
}

static void a_path_of_200_characters_works(void **state)
{
	struct live *l = *state;
	char root[600];
	DSEC_INIT(struct dsec_node_opts, o, .root = root);
	struct dsec_sandbox *again;
	struct dsec_node *node;
	struct dsec_error err;
	size_t n = (size_t)snprintf(root, sizeof root, "%s.", getenv("DSEC_ROOT"));

	memset(root + n, 'l', 200);
	root[n + 200] = 0;
	OK(dsec_node_open(&node, &o, &err));
	OK(dsec_sandbox_create(node, NULL, &l->sb, &err));
	OK(dsec_sandbox_attach(node, dsec_sandbox_id(l->sb), &again, &err));
	SAYS(again, "echo far", "far\n");
	dsec_sandbox_close(again);
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	dsec_node_close(node);
}

static void counters_and_list_agree(void **state)
{
	struct live *l = *state;
	struct dsec_node_stats s = { .sz = sizeof s };
	struct dsec_sandbox_info infos[3];
	struct dsec_sandbox *sb[2];
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "second", .run = "run-7");
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, NULL, &sb[0], &err));
	OK(dsec_sandbox_create(l->node, &o, &sb[1], &err));
	SAYS(sb[0], "echo", "\n");
	assert_int_equal(dsec_node_list(l->node, infos, 3, sizeof infos[0], &err), 2);
	assert_string_equal(infos[0].id, dsec_sandbox_id(sb[0]));
	assert_string_equal(infos[1].name, "second");
	assert_string_equal(infos[1].run, "run-7");
	assert_string_equal(infos[1].backend, "container");
	assert_int_equal(dsec_node_list(l->node, infos, 1, sizeof infos[0], &err), 2);
	OK(dsec_node_stats(l->node, &s, &err));
	assert_int_equal(s.live, 2);
	assert_true(s.created >= 2 && s.execs >= 1);
	for (int i = 0; i < 2; i++) {
		OK(dsec_sandbox_stop(sb[i], 0, &err));
		dsec_sandbox_close(sb[i]);
	}
}

static void probe_tells_reasons(void **state)
{
	struct live *l = *state;
	struct dsec_probe_item items[64];
	struct dsec_error err;
	int n = dsec_node_probe(l->node, items, 64, sizeof items[0], &err);

	assert_true(n > 15 && n <= 64);
	for (int i = 0; i < n; i++) {
		assert_true(items[i].name[0]);
		assert_true(items[i].why[0]);
		if (!items[i].available)
			assert_true(items[i].effect[0]);
	}
	assert_int_equal(dsec_node_probe(NULL, NULL, 0, 0, &err) > 10, 1);
}

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
	const char *argv[] = { "/bin/echo", "fine", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_node *node = NULL;
	struct dsec_sandbox *sb = NULL;
	struct dsec_error err;
	int bad = 1;

	if (dsec_node_open(&node, NULL, &err) == 0 && dsec_sandbox_create(node, NULL, &sb, &err) == 0 &&
	    dsec_sandbox_exec(sb, argv, NULL, &r, &err) == 0)
		bad = strcmp(r.stdout_data, "fine\n") != 0;
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
	struct rlimit l = { 64, 64 };

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

static void odd_surroundings_are_borne(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_NODE(opening_is_quick),
		LIVE_NODE(bad_directories_are_named),
		LIVE_NODE(a_path_of_200_characters_works),
		LIVE_NODE(counters_and_list_agree),
		LIVE_NODE(probe_tells_reasons),
		LIVE(a_forked_childs_copies_are_refused),
		LIVE_NODE(odd_surroundings_are_borne),
		LIVE_NODE(threads_with_handles_of_their_own),
		LIVE_NODE(the_trainer_gets_no_children_of_ours),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
