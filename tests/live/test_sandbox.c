/* SPDX-License-Identifier: MIT */
/* Sandboxes: making, finding, limiting, ending them; what happens when a process of ours is killed. */
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_name_is_used_once_at_a_time(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "only-one");
	struct dsec_sandbox *second;
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	FAILS(dsec_sandbox_create(l->node, &o, &second, &err), -EEXIST, DSEC_STEP_NAME);
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
}

static void of_two_processes_one_gets_the_name(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "contended");
	int go[2], won = 0, lost = 0;

	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			struct dsec_node *node;
			struct dsec_sandbox *sb = NULL;
			struct dsec_error err;
			char c;
			int r = dsec_node_open(&node, NULL, &err);

			(void)close(go[1]);
			(void)!read(go[0], &c, 1);
			r = r < 0 ? r : dsec_sandbox_create(node, &o, &sb, &err);
			if (r == 0)
				(void)usleep(300000); /* holds the name while the others try */
			dsec_sandbox_close(sb);
			dsec_node_close(node);
			_exit(r == 0 ? 1 : r == -EEXIST ? 2 : 3);
		}
	}
	(void)close(go[0]);
	(void)close(go[1]);
	for (int i = 0, status; i < 4; i++) {
		(void)wait(&status);
		won += WEXITSTATUS(status) == 1;
		lost += WEXITSTATUS(status) == 2;
	}
	assert_int_equal(won, 1);
	assert_int_equal(lost, 3);
	(void)l;
}

static void bad_images_are_named(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .image = "/no/such/image");
	struct dsec_error err;

	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -ENOENT, DSEC_STEP_IMAGE);
	o.image = "/etc/passwd";
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -ENOTDIR, DSEC_STEP_IMAGE);
	o.image = "debian";
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -EINVAL, DSEC_STEP_OPTIONS);
	o.image = "/tmp/../etc";
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -EINVAL, DSEC_STEP_OPTIONS);
}

static void a_directory_is_an_image_and_stays_as_it_was(void **state)
{
	struct live *l = *state;
	char dir[300], cmd[1600];
	DSEC_INIT(struct dsec_sandbox_opts, o, .image = dir, .workdir = "/");
	const char *argv[] = { "/bin/program", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;

	(void)snprintf(dir, sizeof dir, "%s.image", getenv("DSEC_ROOT"));
	(void)snprintf(cmd, sizeof cmd,
		       "mkdir -p %s/bin && printf '#include <stdio.h>\\n#include <unistd.h>\\nint main(void) { return "
		       "puts(\"static\") < 0 || access(\"/bin/program\", R_OK) || !fopen(\"/new\", \"w\"); }' > %s.c && "
		       "gcc -static -o %s/bin/program %s.c", dir, dir, dir, dir);
	assert_int_equal(system(cmd), 0);
	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
	assert_string_equal(r.stdout_data, "static\n");
	assert_int_equal(r.exit_code, 0);
	dsec_result_clear(&r);
	assert_int_equal(system("test \"$(ls $DSEC_ROOT.image)\" = bin"), 0); /* no /new, no mount points */
}

static void a_link_for_proc_or_dev_is_not_followed(void **state)
{
	struct live *l = *state;
	char dir[300];
	DSEC_INIT(struct dsec_sandbox_opts, o, .image = dir);
	struct dsec_error err;

	(void)snprintf(dir, sizeof dir, "%s.links", getenv("DSEC_ROOT"));
	assert_int_equal(system("mkdir -p $DSEC_ROOT.links && ln -sfn /tmp $DSEC_ROOT.links/proc"), 0);
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -ELOOP, DSEC_STEP_MOUNT);
	assert_int_equal(system("rm $DSEC_ROOT.links/proc && ln -sfn / $DSEC_ROOT.links/dev"), 0);
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -ELOOP, DSEC_STEP_MOUNT);
}

static void nowait_shows_on_a_descriptor(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .flags = DSEC_SANDBOX_NOWAIT);
	struct pollfd p = { .events = POLLIN };
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	p.fd = dsec_sandbox_fd(l->sb);
	assert_int_equal(poll(&p, 1, 10000), 1);
	OK(dsec_sandbox_wait(l->sb, 0, &err));
	SAYS(l->sb, "echo up", "up\n");
	OK(dsec_sandbox_stop(l->sb, DSEC_SANDBOX_NOWAIT, &err));
	assert_int_equal(poll(&p, 1, 10000), 1);
	OK(dsec_sandbox_wait(l->sb, 5000, &err));
	OK(dsec_sandbox_stop(l->sb, 0, &err));
}

static void stop_in_every_state(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .flags = DSEC_SANDBOX_NOWAIT);
	const char *argv[] = { "sleep", "60", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_exec *e;
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err)); /* while it starts */
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err)); /* while a command runs */
	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	SAYS(l->sb, "until pgrep sleep >/dev/null; do :; done; echo runs", "runs\n");
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.reason, DSEC_REASON_LOST);
	dsec_result_clear(&r);
	dsec_exec_close(e);
	dsec_sandbox_close(l->sb);
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err)); /* while one is asked for: it ran, or surely did not */
	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	if (dsec_exec_wait(e, 5000, &r, &err) < 0)
		assert_int_equal(err.flags, DSEC_ERROR_RETRY);
	else
		assert_int_equal(r.reason, DSEC_REASON_LOST);
	dsec_result_clear(&r);
	dsec_exec_close(e);
	OK(dsec_sandbox_stop(l->sb, 0, &err)); /* twice */
	FAILS(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err), -EPIPE, DSEC_STEP_KEEPER);
	assert_int_equal(err.flags, DSEC_ERROR_RETRY);
}

static void attach_finds_by_id_and_name_and_close_leaves_it(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "found");
	struct dsec_sandbox *again;
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	OK(dsec_sandbox_attach(l->node, "found", &again, &err));
	SAYS(again, "echo hello > /tmp/x; echo done", "done\n");
	dsec_sandbox_close(again);
	OK(dsec_sandbox_attach(l->node, dsec_sandbox_id(l->sb), &again, &err));
	SAYS(again, "cat /tmp/x", "hello\n");
	dsec_sandbox_close(again);
	SAYS(l->sb, "cat /tmp/x", "hello\n");
	FAILS(dsec_sandbox_attach(l->node, "lost", &again, &err), -ENOENT, DSEC_STEP_NAME);
	FAILS(dsec_sandbox_attach(l->node, "../sb", &again, &err), -EINVAL, DSEC_STEP_NAME);
	FAILS(dsec_sandbox_attach(l->node, "dsec-aaaaaaaaaaaaaaaaaaaa", &again, &err), -ENOENT, DSEC_STEP_NAME);
}

/* Makes a sandbox in a child process and kills that; -1 if it could not be made. */
static void create_and_die(uint64_t flags, const char *name)
{
	int up[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (pid == 0) {
		DSEC_INIT(struct dsec_sandbox_opts, o, .name = name, .flags = flags);
		struct dsec_node *node;
		struct dsec_sandbox *sb;
		struct dsec_error err;

		if (dsec_node_open(&node, NULL, &err) == 0 && dsec_sandbox_create(node, &o, &sb, &err) == 0)
			(void)!write(up[1], "x", 1);
		(void)pause();
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(up[0]);
	(void)close(up[1]);
}

static void a_killed_trainer_takes_its_sandboxes_but_not_retained_ones(void **state)
{
	struct live *l = *state;
	struct dsec_error err;
	struct dsec_sandbox *gone;
	int r = 0;

	create_and_die(DSEC_SANDBOX_RETAIN, "kept");
	create_and_die(0, "taken");
	OK(dsec_sandbox_attach(l->node, "kept", &l->sb, &err));
	SAYS(l->sb, "echo alive", "alive\n");
	for (int i = 0; i < 500 && (r = dsec_sandbox_attach(l->node, "taken", &gone, &err)) == 0; i++) {
		dsec_sandbox_close(gone);
		(void)usleep(10000); /* it is being ended by its keeper */
	}
	assert_true(r == -ENOENT || r == -EPIPE);
}

static void a_killed_keeper_takes_its_sandbox_and_reap_the_rest(void **state)
{
	struct live *l = *state;
	struct dsec_sandbox_info info;
	struct dsec_error err;
	struct dsec_result r = { .sz = sizeof r };
	const char *argv[] = { "sleep", "60", NULL };
	struct dsec_exec *e;
	int n;

	OK(dsec_sandbox_create(l->node, &(struct dsec_sandbox_opts){ .sz = sizeof(struct dsec_sandbox_opts), .name = "orphan" },
			       &l->sb, &err));
	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	n = dsec_node_list(l->node, &info, 1, sizeof info, &err);
	assert_int_equal(n, 1);
	assert_string_equal(info.name, "orphan");
	assert_int_equal(info.state, DSEC_STATE_RUNNING);
	assert_int_equal(kill(info.keeper_pid, SIGKILL), 0);
	FAILS(dsec_exec_wait(e, 5000, &r, &err), -EPIPE, DSEC_STEP_KEEPER);
	dsec_exec_close(e);
	for (int i = 0; i < 500 && n == 1 && info.state != DSEC_STATE_LOST; i++) {
		(void)usleep(2000); /* the kernel closes its descriptors one after another, the lock's after the socket's */
		n = dsec_node_list(l->node, &info, 1, sizeof info, &err);
	}
	assert_int_equal(info.state, DSEC_STATE_LOST);
	assert_int_equal(dsec_node_reap(l->node, &err), 1);
	assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
}

static void closing_the_creators_handle_ends_it(void **state)
{
	struct live *l = *state;
	struct dsec_error err;

	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	for (int i = 0; i < 500 && dsec_node_list(l->node, NULL, 0, 0, &err) > 0; i++)
		(void)usleep(10000); /* close does not wait for it */
	assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
}

/* What a machine cannot limit it refuses by field; a test then has nothing to measure. */
static bool create_limited(struct live *l, const struct dsec_sandbox_opts *o)
{
	struct dsec_error err;
	int r = dsec_sandbox_create(l->node, o, &l->sb, &err);

	if (r == -ENOTSUP && !getenv("DSEC_TEST_STRICT")) {
		print_message("skipped: limits: %s\n", err.text);
		return false;
	}
	OK(r);
	return true;
}

static void out_of_memory_is_told_and_survived(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .memory_bytes = 64 << 20);
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	const char *argv[] = { "python3", "-c", "x = bytearray(300_000_000)", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;

	if (!create_limited(l, &o))
		skip();
	OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
	assert_int_equal(r.reason, DSEC_REASON_OOM);
	dsec_result_clear(&r);
	SAYS(l->sb, "echo usable", "usable\n");
	OK(dsec_sandbox_stats(l->sb, &s, &err));
	assert_true(s.memory_peak <= 64 << 20 && s.memory_peak > 32 << 20);
	assert_true(s.oom_kills >= 1);
	assert_int_equal(s.execs, 2);
}

static void processes_and_cpu_are_limited(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .pids = 20, .cpu_millis = 200);
	DSEC_INIT(struct dsec_exec_opts, t, .timeout_ms = 1000);
	struct dsec_result r;

	if (!create_limited(l, &o))
		skip();
	SAYS(l->sb, "n=0; for i in $(seq 60); do (sleep 2 &) 2>/dev/null; done; n=$(pgrep -c sleep); [ $n -lt 20 ] && echo few", "few\n");
	r = sh(l->sb, "while :; do :; done", &t);
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	assert_true(r.cpu_ns < 500000000);
	dsec_result_clear(&r);
}

static void a_fork_bomb_is_held_without_a_limit_asked_for(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, t, .timeout_ms = 1500);
	struct dsec_result r = sh(l->sb, "bomb() { bomb | bomb & }; bomb; sleep 60", &t);

	dsec_result_clear(&r);
	SAYS(l->sb, "echo usable", "usable\n");
}

static void the_disk_is_limited(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .disk_bytes = 10 << 20, .disk_inodes = 500);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "head -c 20000000 /dev/zero > /tmp/big 2>/dev/null || echo full; rm /tmp/big", "full\n");
	SAYS(l->sb, "cd /tmp; for i in $(seq 600); do touch f$i || break; done 2>/dev/null; ls | wc -l | xargs test 500 -gt && echo few", "few\n");
	o.top = DSEC_TOP_DISK;
	FAILS(dsec_sandbox_create(l->node, &o, &l->sb, &err), -ENOTSUP, DSEC_STEP_OPTIONS);
	assert_non_null(strstr(err.text, "disk_bytes"));
}

static void the_top_may_lie_on_disk(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .top = DSEC_TOP_DISK);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	if (geteuid() != 0) { /* directories of the host's root are not its own to remove */
		SAYS(l->sb, "echo x > /usr/new; mkdir -p /root/a/b/c; cat /usr/new", "x\n");
		return;
	}
	SAYS(l->sb, "echo x > /usr/new; mkdir -p /root/a/b/c; rm -rf /usr/share/doc; cat /usr/new; ls /usr/share/doc 2>/dev/null || :", "x\n");
}

static void a_thousand_come_and_go(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "/bin/true", NULL };
	struct dsec_error err;
	int n = getenv("DSEC_TEST_LONG") ? 10000 : 300;

	for (int i = 0; i < n; i++) {
		struct dsec_result r = { .sz = sizeof r };

		OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
		OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
		assert_int_equal(r.exit_code, 0);
		dsec_result_clear(&r);
		OK(dsec_sandbox_stop(l->sb, 0, &err));
		dsec_sandbox_close(l->sb);
		l->sb = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_NODE(a_name_is_used_once_at_a_time),
		LIVE_NODE(of_two_processes_one_gets_the_name),
		LIVE_NODE(bad_images_are_named),
		LIVE_NODE(a_directory_is_an_image_and_stays_as_it_was),
		LIVE_NODE(a_link_for_proc_or_dev_is_not_followed),
		LIVE_NODE(nowait_shows_on_a_descriptor),
		LIVE_NODE(stop_in_every_state),
		LIVE_NODE(attach_finds_by_id_and_name_and_close_leaves_it),
		LIVE_NODE(a_killed_trainer_takes_its_sandboxes_but_not_retained_ones),
		LIVE_NODE(a_killed_keeper_takes_its_sandbox_and_reap_the_rest),
		LIVE(closing_the_creators_handle_ends_it),
		LIVE_NODE(out_of_memory_is_told_and_survived),
		LIVE_NODE(processes_and_cpu_are_limited),
		LIVE(a_fork_bomb_is_held_without_a_limit_asked_for),
		LIVE_NODE(the_disk_is_limited),
		LIVE_NODE(the_top_may_lie_on_disk),
		LIVE_NODE(a_thousand_come_and_go),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
