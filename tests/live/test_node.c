/* SPDX-License-Identifier: MIT */
/* The node: opening, listing, counting, probing; directories that it must bear and those that it must leave alone. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void opening_is_quick(void **state)
{
	double best = 1e9;

	(void)state;
	for (int i = 0; i < 20 && best >= 20; i++) {
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

static void a_second_open_sees_the_same_node(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "of-second");
	struct dsec_sandbox_info info;
	struct dsec_sandbox *again;
	struct dsec_node *second;
	struct dsec_error err;

	OK(dsec_node_open(&second, NULL, &err));
	OK(dsec_sandbox_create(second, &o, &l->sb, &err));
	assert_int_equal(dsec_node_list(l->node, &info, 1, sizeof info, &err), 1);
	assert_string_equal(info.id, dsec_sandbox_id(l->sb));
	OK(dsec_sandbox_attach(l->node, "of-second", &again, &err));
	SAYS(again, "echo seen", "seen\n");
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	dsec_node_close(second);
	dsec_sandbox_close(again);
	assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
}

static void what_is_no_node_is_left_alone(void **state)
{
	char dir[300];
	DSEC_INIT(struct dsec_node_opts, o, .root = dir);
	struct dsec_node *node;
	struct dsec_error err;

	(void)state;
	(void)snprintf(dir, sizeof dir, "%s.foreign", getenv("DSEC_ROOT"));
	assert_int_equal(system("mkdir $DSEC_ROOT.foreign && echo precious > $DSEC_ROOT.foreign/file"), 0);
	FAILS(dsec_node_open(&node, &o, &err), -EUCLEAN, DSEC_STEP_NODE);
	assert_non_null(strstr(err.text, dir));
	assert_int_equal(system("[ \"$(ls -A $DSEC_ROOT.foreign)\" = file ] && rm -r $DSEC_ROOT.foreign"), 0);
	assert_int_equal(system("mkdir $DSEC_ROOT.foreign && echo other version > $DSEC_ROOT.foreign/node"), 0);
	FAILS(dsec_node_open(&node, &o, &err), -EUCLEAN, DSEC_STEP_NODE);
	assert_int_equal(system("rm -r $DSEC_ROOT.foreign && ln -s /nowhere $DSEC_ROOT.foreign"), 0);
	assert_true(dsec_node_open(&node, &o, &err) < 0);
	assert_int_equal(system("rm $DSEC_ROOT.foreign"), 0);
}

static void structures_of_older_and_newer_callers_are_taken(void **state)
{
	struct live *l = *state;
	struct {
		struct dsec_node_opts o;
		uint64_t newer;
	} big = { .o = { .sz = sizeof big } };
	struct {
		struct dsec_sandbox_info info;
		char newer[24];
	} wide[2];
	struct dsec_node_stats s = { .sz = offsetof(struct dsec_node_stats, created), .created = 77 };
	struct dsec_probe_item items[2];
	struct dsec_node *node;
	struct dsec_error err;
	char id[32];

	OK(dsec_node_open(&node, &big.o, &err));
	dsec_node_close(node);
	big.newer = 1;
	FAILS(dsec_node_open(&node, &big.o, &err), -E2BIG, DSEC_STEP_OPTIONS);
	big.o.sz = 8;
	FAILS(dsec_node_open(&node, &big.o, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_node_open(NULL, NULL, &err), -EINVAL, DSEC_STEP_OPTIONS);
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	OK(dsec_node_stats(l->node, &s, &err));
	assert_int_equal(s.live, 1);
	assert_int_equal(s.created, 77); /* beyond what the caller knows */
	s.sz = 3;
	FAILS(dsec_node_stats(l->node, &s, &err), -EINVAL, DSEC_STEP_OPTIONS);
	memset(wide, 0x5a, sizeof wide);
	assert_int_equal(dsec_node_list(l->node, &wide[0].info, 2, sizeof wide[0], &err), 1);
	assert_string_equal(wide[0].info.id, dsec_sandbox_id(l->sb));
	for (size_t i = 0; i < sizeof wide[0].newer; i++)
		assert_int_equal(wide[0].newer[i], 0);
	assert_int_equal(((char *)&wide[1])[0], 0x5a); /* not touched */
	assert_int_equal(dsec_node_list(l->node, (struct dsec_sandbox_info *)(void *)id, 1, sizeof id, &err), 1);
	assert_string_equal(id, dsec_sandbox_id(l->sb));
	FAILS(dsec_node_list(l->node, NULL, 1, sizeof wide[0].info, &err), -EINVAL, DSEC_STEP_OPTIONS);
	assert_true(dsec_node_probe(l->node, items, 2, sizeof items[0], &err) > 2);
	assert_true(items[1].name[0]);
	FAILS(dsec_node_probe(l->node, items, 2, 0, &err), -EINVAL, DSEC_STEP_OPTIONS);
}

/* In a mount namespace of a child's own: a file system below the root directory that is as a user may have it. */
static int on_a_mount(const char *options, bool read_only, int expect, uint32_t step)
{
	char dir[300];
	DSEC_INIT(struct dsec_node_opts, o, .root = dir);
	const char *argv[] = { "/bin/echo", "fine", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_node *node = NULL;
	struct dsec_sandbox *sb = NULL;
	struct dsec_error err = { 0 };
	int ret;

	(void)snprintf(dir, sizeof dir, "%s.mount", getenv("DSEC_ROOT"));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mkdir(dir, 0755) < 0 ||
	    mount("none", dir, "tmpfs", MS_NOEXEC | MS_NOSUID | MS_NODEV | (read_only ? MS_RDONLY : 0), options) < 0)
		return 2;
	ret = dsec_node_open(&node, &o, &err);
	if (ret == 0)
		ret = dsec_sandbox_create(node, NULL, &sb, &err);
	if (ret == 0)
		ret = dsec_sandbox_exec(sb, argv, NULL, &r, &err);
	if (ret == 0)
		ret = dsec_sandbox_stop(sb, 0, &err);
	dsec_result_clear(&r);
	dsec_sandbox_close(sb);
	dsec_node_close(node);
	if (ret == expect && (ret == 0 || (err.code == ret && err.step == step && strstr(err.text, dir))))
		return 0;
	print_error("%s: %d [%s] %s\n", options, ret, dsec_step_name(err.step), err.text);
	return 1;
}

static void mounts_that_people_have(void **state)
{
	static const struct {
		const char *options;
		bool read_only;
		int expect;
	} cases[] = {
		{ "size=64m,mode=755", false, 0 }, /* noexec, nodev, nosuid */
		{ "size=64m,mode=755", true, -EROFS },
		{ "size=4k,mode=755", false, -ENOSPC },
	};

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can mount");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(on_a_mount(cases[i].options, cases[i].read_only, cases[i].expect, DSEC_STEP_NODE));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(system("rmdir $DSEC_ROOT.mount"), 0);
		assert_int_equal(status, 0);
	}
}

/* With no descriptor to spare the boot id cannot be read: that is no reason to take the node for one of a former boot and to
   give ranges of ids out again. At each number of free descriptors the open fails or works; the node stays. */
static void a_node_survives_an_open_short_of_descriptors(void **state)
{
	struct live *l = *state;
	struct dsec_node_stats before = { .sz = sizeof before }, after = { .sz = sizeof after };
	struct rlimit old, few;
	struct dsec_error err;
	int failed = 0;

	OK(dsec_node_stats(l->node, &before, &err));
	assert_true(before.created >= 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	for (few.rlim_cur = 4; few.rlim_cur < 40; few.rlim_cur++) {
		struct dsec_node *node = NULL;
		int r;

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		r = dsec_node_open(&node, NULL, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		dsec_node_close(node);
		failed += r == -EMFILE;
		if (r != 0 && r != -EMFILE)
			fail_msg("%d descriptors: %d [%s] %s", (int)few.rlim_cur, r, dsec_step_name(err.step), err.text);
		OK(dsec_node_stats(l->node, &after, &err));
		if (after.created < before.created || after.ids_free != before.ids_free)
			fail_msg("%d descriptors: created %d, ids free %d", (int)few.rlim_cur, (int)after.created,
				 (int)after.ids_free);
	}
	assert_true(failed > 0);
}

static void a_fresh_directory_is_opened_by_many_at_once(void **state)
{
	char dir[300];
	DSEC_INIT(struct dsec_node_opts, o, .root = dir);
	int go[2], bad = 0;

	(void)state;
	(void)snprintf(dir, sizeof dir, "%s.race/deep/er", getenv("DSEC_ROOT"));
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < 6; i++) {
		if (fork() == 0) {
			struct dsec_node *node = NULL;
			struct dsec_error err;
			char c;
			int r;

			(void)close(go[1]);
			(void)!read(go[0], &c, 1);
			r = dsec_node_open(&node, &o, &err);
			dsec_node_close(node);
			_exit(r != 0);
		}
	}
	(void)close(go[0]);
	(void)close(go[1]);
	for (int i = 0, status; i < 6; i++) {
		(void)wait(&status);
		bad += status != 0;
	}
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_NODE(opening_is_quick),
		LIVE_NODE(bad_directories_are_named),
		LIVE_NODE(a_path_of_200_characters_works),
		LIVE_NODE(counters_and_list_agree),
		LIVE_NODE(probe_tells_reasons),
		LIVE_NODE(a_second_open_sees_the_same_node),
		LIVE_NODE(what_is_no_node_is_left_alone),
		LIVE_NODE(structures_of_older_and_newer_callers_are_taken),
		LIVE_NODE(mounts_that_people_have),
		LIVE(a_node_survives_an_open_short_of_descriptors),
		LIVE_NODE(a_fresh_directory_is_opened_by_many_at_once),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
