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

/* Not only of each of its users: root inside can become all of them. */
static void processes_of_all_its_users_together_are_bounded(void **state)
{
	struct live *l = *state;

	if (geteuid() != 0)
		SKIP("an ordinary user's sandbox has one user id");
	SAYS(l->sb,
	     "perl -e 'for my $u (1001..1004) { for (1..400) { my $p = fork; if (!defined $p) { print \"bounded\\n\"; exit }"
	     "if (!$p) { $> = $< = $u; sleep 60; exit } } } print \"all\\n\"'", "bounded\n");
}

/* The kernel counts some things per user of the machine: one sandbox must not use up what others need. */
static void what_the_machine_has_few_of_is_counted_per_sandbox(void **state)
{
	struct live *l = *state;
	struct dsec_sandbox *other;
	struct dsec_error err;
	static const char take[] = "python3 -c 'import ctypes; c = ctypes.CDLL(None); n = 0\n"
				   "while n < 10000 and c.inotify_init() >= 0: n += 1\n"
				   "print(\"took\" if n > 50 else n, flush=True); import time; time.sleep(60)' & sleep 1";

	if (geteuid() != 0)
		SKIP("an ordinary user's sandboxes are all of one user");
	OK(dsec_sandbox_create(l->node, NULL, &other, &err));
	SAYS(l->sb, take, "took\n");
	SAYS(other, take, "took\n");
	OK(dsec_sandbox_stop(other, 0, &err));
	dsec_sandbox_close(other);
}

static void a_tree_of_any_depth_on_disk_is_removed(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .top = DSEC_TOP_DISK);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "cd /tmp && perl -e 'for (1..4000) { mkdir q(d) or die; chdir q(d) or die } print qq(deep\\n)'", "deep\n");
	SAYS(l->sb, "mkdir -p /tmp/ro/a && touch /tmp/ro/a/x && chmod 555 /tmp/ro/a /tmp/ro && echo set", "set\n");
}

static void a_working_directory_is_its_users_whatever_its_slashes(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .workdir = "/work/x//", .user = "1000");
	struct dsec_error err;

	if (geteuid() != 0)
		SKIP("an ordinary user's sandbox has one user id");
	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "touch mine && stat -c %u /work/x && pwd", "1000\n/work/x\n");
}

/* Success leaves the caller's structure alone. */
static void a_stop_that_is_not_waited_for_reports_no_error(void **state)
{
	struct live *l = *state;
	struct dsec_error err = { .code = 42 };

	assert_int_equal(dsec_sandbox_stop(l->sb, DSEC_SANDBOX_NOWAIT, &err), 0);
	assert_int_equal(err.code, 42);
	OK(dsec_sandbox_wait(l->sb, 10000, &err));
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

static void an_earlier_kill_by_the_kernel_is_not_blamed_on_a_later_command(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .memory_bytes = 64 << 20);
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	struct dsec_error err;
	struct dsec_result r;

	if (!create_limited(l, &o))
		skip();
	r = sh(l->sb, "python3 -c 'x = bytearray(300_000_000)' & wait; exit 0", NULL);
	assert_int_equal(r.reason, DSEC_REASON_EXITED);
	dsec_result_clear(&r);
	OK(dsec_sandbox_stats(l->sb, &s, &err));
	assert_int_equal(s.oom_kills, 1);
	r = sh(l->sb, "kill -9 $$", NULL);
	assert_int_equal(r.signal, SIGKILL);
	assert_int_equal(r.reason, DSEC_REASON_SIGNALED);
	dsec_result_clear(&r);
}

static void a_bomb_leaves_its_neighbour_alone(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .memory_bytes = 64 << 20, .pids = 64);
	DSEC_INIT(struct dsec_exec_opts, t, .timeout_ms = 1500);
	const char *argv[] = { "sh", "-c", "while :; do python3 -c 'x = bytearray(300_000_000)'; (sleep 1 &); done", NULL };
	struct dsec_sandbox *neighbour;
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;

	if (!create_limited(l, &o))
		skip();
	OK(dsec_sandbox_create(l->node, &o, &neighbour, &err));
	OK(dsec_exec_start(l->sb, argv, &t, &e, &err));
	for (int i = 0; i < 50; i++)
		SAYS(neighbour, "echo well", "well\n");
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	dsec_result_clear(&r);
	dsec_exec_close(e);
	SAYS(l->sb, "echo usable", "usable\n");
	SAYS(neighbour, "python3 -c 'x = bytearray(30_000_000); print(len(x))'", "30000000\n");
	OK(dsec_sandbox_stop(neighbour, 0, &err));
	dsec_sandbox_close(neighbour);
}

static void full_file_systems_and_tables_leave_it_usable(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .disk_bytes = 20 << 20, .disk_inodes = 1000);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "head -c 100000000 /dev/zero > /dev/shm/x 2>/dev/null || echo full; rm -f /dev/shm/x", "full\n");
	SAYS(l->sb, "head -c 100000000 /dev/zero > /root/x 2>/dev/null || echo full; echo still works; cat /root/x | wc -c > /dev/null", "full\nstill works\n");
	FAILS(dsec_sandbox_write(l->sb, "/root/y", "more than nothing", 17, 0, &err), -ENOSPC, DSEC_STEP_FILE);
	SAYS(l->sb, "rm /root/x /root/y; echo y > /root/y; cat /root/y", "y\n");
	SAYS(l->sb, "python3 -c '\nimport os\nn = 0\ntry:\n    while n < 10_000_000: os.dup(0); n += 1\nexcept OSError as e: print(e.strerror)'",
	     "Too many open files\n");
}

static void what_was_asked_for_at_create_holds(void **state)
{
	struct live *l = *state;
	const char *env[] = { "TOKEN=a b=c", "LANG=C", NULL };
	DSEC_INIT(struct dsec_sandbox_opts, o, .hostname = "box-7.example", .workdir = "/srv/new/dir", .env = env,
		  .user = geteuid() ? NULL : "1234:77");
	struct dsec_error err;
	const char *id;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	id = dsec_sandbox_id(l->sb);
	assert_int_equal(strlen(id), 25);
	assert_int_equal(strncmp(id, "dsec-", 5), 0);
	assert_int_equal(strspn(id + 5, "abcdefghijklmnopqrstuvwxyz234567"), 20);
	SAYS(l->sb, "hostname; pwd; echo $TOKEN $LANG; touch here && echo mine", "box-7.example\n/srv/new/dir\na b=c C\nmine\n");
	if (geteuid() == 0)
		SAYS(l->sb, "id -u; id -g; id -G; echo $HOME", "1234\n77\n77\n/tmp\n");
}

static void a_failed_create_shows_on_the_descriptor_and_its_name_is_free(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .flags = DSEC_SANDBOX_NOWAIT, .image = "/no/such", .name = "again");
	struct pollfd p = { .events = POLLIN };
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	p.fd = dsec_sandbox_fd(l->sb);
	assert_int_equal(poll(&p, 1, 10000), 1);
	FAILS(dsec_sandbox_wait(l->sb, 1000, &err), -ENOENT, DSEC_STEP_IMAGE);
	FAILS(dsec_sandbox_wait(l->sb, 0, &err), -EPIPE, DSEC_STEP_KEEPER);
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	o.image = NULL;
	o.flags = 0;
	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	OK(dsec_sandbox_wait(l->sb, 0, &err)); /* nothing to wait for */
}

static void many_are_made_at_once(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .flags = DSEC_SANDBOX_NOWAIT);
	struct dsec_sandbox *sb[40];
	struct dsec_error err;

	for (int i = 0; i < 40; i++)
		OK(dsec_sandbox_create(l->node, &o, &sb[i], &err));
	for (int i = 0; i < 40; i++)
		OK(dsec_sandbox_wait(sb[i], 30000, &err));
	for (int i = 0; i < 40; i++)
		SAYS(sb[i], "echo up", "up\n");
	for (int i = 0; i < 40; i++)
		OK(dsec_sandbox_stop(sb[i], DSEC_SANDBOX_NOWAIT, &err));
	for (int i = 0; i < 40; i++) {
		OK(dsec_sandbox_wait(sb[i], 30000, &err));
		dsec_sandbox_close(sb[i]);
	}
}

static void a_name_in_the_form_of_an_id_does_not_hide_that_id(void **state)
{
	struct live *l = *state;
	char id[32];
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = id);
	struct dsec_sandbox *thief = NULL, *found;
	struct dsec_error err;
	bool same;

	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	(void)snprintf(id, sizeof id, "%s", dsec_sandbox_id(l->sb));
	if (dsec_sandbox_create(l->node, &o, &thief, &err) < 0)
		return; /* refusing such a name is as good */
	OK(dsec_sandbox_attach(l->node, id, &found, &err));
	same = strcmp(dsec_sandbox_id(found), id) == 0;
	dsec_sandbox_close(found);
	OK(dsec_sandbox_stop(thief, 0, &err));
	dsec_sandbox_close(thief);
	assert_true(same);
}

/* Runs in a process that did not make it. */
static int use_from_elsewhere(const char *name, bool stop)
{
	const char *argv[] = { "cat", "/tmp/left", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_node *node = NULL;
	struct dsec_sandbox *sb = NULL;
	struct dsec_error err;
	int bad = dsec_node_open(&node, NULL, &err) < 0 || dsec_sandbox_attach(node, name, &sb, &err) < 0 ||
		  dsec_sandbox_exec(sb, argv, NULL, &r, &err) < 0 || strcmp(r.stdout_data, "word\n") != 0;

	dsec_result_clear(&r);
	if (!bad && stop)
		bad = dsec_sandbox_stop(sb, 0, &err) < 0;
	dsec_sandbox_close(sb);
	dsec_node_close(node);
	return bad;
}

static void a_retained_one_outlives_handles_and_is_stopped_from_elsewhere(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .name = "shared", .flags = DSEC_SANDBOX_RETAIN);
	struct dsec_sandbox *gone;
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	SAYS(l->sb, "echo word > /tmp/left; echo ok", "ok\n");
	dsec_sandbox_close(l->sb);
	l->sb = NULL;
	dsec_node_close(l->node); /* its launcher ends too */
	OK(dsec_node_open(&l->node, NULL, &err));
	for (int i = 0, status; i < 3; i++) {
		if (fork() == 0)
			_exit(use_from_elsewhere("shared", i == 2));
		(void)wait(&status);
		assert_int_equal(status, 0);
	}
	FAILS(dsec_sandbox_attach(l->node, "shared", &gone, &err), -ENOENT, DSEC_STEP_NAME);
}

/* A process of this node, found as the leak check finds it. */
static pid_t pid_of(const char *comm)
{
	struct leak l;
	int pid = -1;

	leak_take(&l);
	for (size_t i = 0; i < l.n; i++)
		if (strncmp(l.items[i], "process ", 8) == 0 && strstr(l.items[i], comm))
			pid = atoi(l.items[i] + 8);
	leak_done(&l);
	return pid;
}

static void a_killed_agent_is_told_and_nothing_stays(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sleep", "60", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;
	pid_t agent = pid_of("dsec-agent");

	assert_true(agent > 1);
	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	assert_int_equal(kill(agent, SIGKILL), 0);
	if (dsec_exec_wait(e, 5000, &r, &err) == 0)
		assert_int_equal(r.reason, DSEC_REASON_LOST);
	else
		assert_int_equal(err.code, -EPIPE);
	dsec_result_clear(&r);
	dsec_exec_close(e);
	FAILS(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err), -EPIPE, DSEC_STEP_KEEPER);
	OK(dsec_sandbox_stop(l->sb, 0, &err));
	assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
}

static void stop_after_the_keepers_death_leaves_nothing_when_it_returns(void **state)
{
	struct live *l = *state;
	struct dsec_sandbox_info info;
	struct dsec_error err;

	for (int i = 0; i < 10; i++) {
		OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
		assert_int_equal(dsec_node_list(l->node, &info, 1, sizeof info, &err), 1);
		assert_int_equal(kill(info.keeper_pid, SIGKILL), 0);
		OK(dsec_sandbox_stop(l->sb, 0, &err));
		assert_int_equal(dsec_node_list(l->node, NULL, 0, 0, &err), 0);
		dsec_sandbox_close(l->sb);
		l->sb = NULL;
	}
}

static void a_lost_sandbox_is_not_counted_as_live(void **state)
{
	struct live *l = *state;
	struct dsec_node_stats s = { .sz = sizeof s };
	struct dsec_sandbox_info info = { .state = 0 };
	struct dsec_error err;

	assert_int_equal(dsec_node_list(l->node, &info, 1, sizeof info, &err), 1);
	assert_int_equal(kill(info.keeper_pid, SIGKILL), 0);
	for (int i = 0; i < 500 && info.state != DSEC_STATE_LOST; i++) {
		(void)usleep(2000); /* the kernel closes its descriptors one after another, the lock's after the socket's */
		assert_int_equal(dsec_node_list(l->node, &info, 1, sizeof info, &err), 1);
	}
	OK(dsec_node_stats(l->node, &s, &err));
	assert_int_equal(s.live, 0);
	assert_int_equal(dsec_node_reap(l->node, &err), 1);
	assert_int_equal(dsec_node_reap(l->node, &err), 0);
}

static void a_killed_launcher_refuses_new_ones_and_keeps_the_old(void **state)
{
	struct live *l = *state;
	struct dsec_sandbox *second;
	struct dsec_error err;
	pid_t pid = pid_of("dsec-launcher");

	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (int r = 0, i = 0; i < 500 && r != -EPIPE; i++) { /* until its socket is closed */
		r = dsec_sandbox_create(l->node, NULL, &second, &err);
		assert_true(r < 0);
	}
	FAILS(dsec_sandbox_create(l->node, NULL, &second, &err), -EPIPE, DSEC_STEP_LAUNCHER);
	assert_int_equal(err.flags, DSEC_ERROR_RETRY);
	SAYS(l->sb, "echo alive", "alive\n");
	OK(dsec_sandbox_stop(l->sb, 0, &err));
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
		LIVE(processes_of_all_its_users_together_are_bounded),
		LIVE(what_the_machine_has_few_of_is_counted_per_sandbox),
		LIVE_NODE(a_tree_of_any_depth_on_disk_is_removed),
		LIVE_NODE(a_working_directory_is_its_users_whatever_its_slashes),
		LIVE(a_stop_that_is_not_waited_for_reports_no_error),
		LIVE_NODE(the_disk_is_limited),
		LIVE_NODE(the_top_may_lie_on_disk),
		LIVE_NODE(an_earlier_kill_by_the_kernel_is_not_blamed_on_a_later_command),
		LIVE_NODE(a_bomb_leaves_its_neighbour_alone),
		LIVE_NODE(full_file_systems_and_tables_leave_it_usable),
		LIVE_NODE(what_was_asked_for_at_create_holds),
		LIVE_NODE(a_failed_create_shows_on_the_descriptor_and_its_name_is_free),
		LIVE_NODE(many_are_made_at_once),
		LIVE_NODE(a_name_in_the_form_of_an_id_does_not_hide_that_id),
		LIVE_NODE(a_retained_one_outlives_handles_and_is_stopped_from_elsewhere),
		LIVE(a_killed_agent_is_told_and_nothing_stays),
		LIVE_NODE(stop_after_the_keepers_death_leaves_nothing_when_it_returns),
		LIVE(a_lost_sandbox_is_not_counted_as_live),
		LIVE(a_killed_launcher_refuses_new_ones_and_keeps_the_old),
		LIVE_NODE(a_thousand_come_and_go),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
