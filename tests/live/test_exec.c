/* SPDX-License-Identifier: MIT */
/* Commands: what comes back, when it comes back, and what is left of them. */
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void every_exit_code_and_signal_comes_back(void **state)
{
	struct live *l = *state;
	char line[64];

	for (int code = 0; code < 256; code++) {
		struct dsec_result r;

		(void)snprintf(line, sizeof line, "exit %d", code);
		r = sh(l->sb, line, NULL);
		assert_int_equal(r.reason, DSEC_REASON_EXITED);
		assert_int_equal(r.exit_code, code);
		assert_int_equal(r.signal, 0);
		dsec_result_clear(&r);
	}
	for (int s = 1; s <= 64; s++) {
		struct dsec_result r;

		if (s == SIGCHLD || s == SIGCONT || s == SIGURG || s == SIGWINCH || s == SIGSTOP || s == SIGTSTP ||
		    s == SIGTTIN || s == SIGTTOU || s == 32 || s == 33)
			continue; /* these do not kill, or libc keeps them for itself */
		(void)snprintf(line, sizeof line, "kill -%d $$; sleep 5", s);
		r = sh(l->sb, line, NULL);
		if (r.signal != s)
			print_error("signal %d: reason %u, code %d, %s\n", s, r.reason, r.exit_code, r.stderr_data);
		assert_int_equal(r.reason, DSEC_REASON_SIGNALED);
		assert_int_equal(r.signal, s);
		assert_int_equal(r.exit_code, -1);
		dsec_result_clear(&r);
	}
}

static void timeout_ends_the_tree_at_the_deadline_though_orphans_hold_the_pipes(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 400);
	double t = now_ms();
	struct dsec_result r = sh(l->sb,
				  "beat() { while :; do echo x >> /tmp/beat; sleep 0.02; done; }\n"
				  "beat & (setsid sh -c 'while :; do echo x >> /tmp/beat; sleep 0.02; done' &) ; sleep 100", &o);

	t = now_ms() - t;
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	assert_int_equal(r.signal, SIGKILL);
	assert_true(t >= 399 && t < 500);
	dsec_result_clear(&r);
	SAYS(l->sb, "a=$(wc -c < /tmp/beat); sleep 0.3; b=$(wc -c < /tmp/beat); [ $a -gt 4 ] && [ $a = $b ] && echo still", "still\n");
}

static void timeout_of_one_command_leaves_another_alone(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "sleep 0.6; echo done", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 200);
	struct dsec_result r, other = { .sz = sizeof other };
	struct dsec_exec *e;
	struct dsec_error err;

	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	r = sh(l->sb, "sleep 10", &o);
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	dsec_result_clear(&r);
	OK(dsec_exec_wait(e, 5000, &other, &err));
	assert_int_equal(other.reason, DSEC_REASON_EXITED);
	assert_string_equal(other.stdout_data, "done\n");
	dsec_result_clear(&other);
	dsec_exec_close(e);
}

static void a_background_child_with_the_pipes_does_not_hold_up_the_result(void **state)
{
	struct live *l = *state;
	double t = now_ms();
	struct dsec_result r = sh(l->sb, "sleep 30 & echo started", NULL);

	assert_true(now_ms() - t < 2000);
	assert_int_equal(r.exit_code, 0);
	assert_string_equal(r.stdout_data, "started\n");
	dsec_result_clear(&r);
	SAYS(l->sb, "pgrep -c sleep", "1\n"); /* it lives on: a server may be started so */
}

static void stdin_is_at_its_end_unless_given_and_100_mb_arrive(void **state)
{
	struct live *l = *state;
	size_t n = 100u << 20;
	char *big = malloc(n);
	struct dsec_result r;
	DSEC_INIT(struct dsec_exec_opts, o, .stdin_data = big, .stdin_len = n);

	SAYS(l->sb, "cat; echo end", "end\n");
	memset(big, 'q', n);
	r = sh(l->sb, "wc -c", &o);
	assert_string_equal(r.stdout_data, "104857600\n");
	dsec_result_clear(&r);
	/* A command that does not read its input does not hang anything. */
	r = sh(l->sb, "echo no thanks", &o);
	assert_string_equal(r.stdout_data, "no thanks\n");
	dsec_result_clear(&r);
	free(big);
}

static void bytes_come_back_as_they_were_and_streams_apart(void **state)
{
	struct live *l = *state;
	struct dsec_result r = sh(l->sb, "printf 'a\\000b\\377\\r\\n'; printf 'e\\000' >&2", NULL);

	assert_int_equal(r.stdout_len, 6);
	assert_memory_equal(r.stdout_data, "a\0b\377\r\n", 6);
	assert_int_equal(r.stderr_len, 2);
	assert_memory_equal(r.stderr_data, "e\0", 2);
	dsec_result_clear(&r);
}

static void output_over_the_limit_keeps_head_and_tail_and_counts_all(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .output_limit = 1000);
	struct dsec_result r = sh(l->sb, "seq 1 300000", &o);

	assert_int_equal(r.stdout_bytes, 1988895);
	assert_int_equal(r.flags, DSEC_RESULT_STDOUT_CUT);
	assert_int_equal(r.stdout_len, 1000);
	assert_int_equal(r.stdout_head, 500);
	assert_memory_equal(r.stdout_data, "1\n2\n3\n", 6);
	assert_memory_equal(r.stdout_data + 1000 - 14, "299999\n300000\n", 14);
	dsec_result_clear(&r);
	r = sh(l->sb, "head -c 1000 /dev/zero", &o);
	assert_int_equal(r.flags, 0);
	assert_int_equal(r.stdout_len, 1000);
	dsec_result_clear(&r);
	o.flags = DSEC_EXEC_LIMIT_KILLS;
	r = sh(l->sb, "yes", &o);
	assert_int_equal(r.reason, DSEC_REASON_OUTPUT_LIMIT);
	dsec_result_clear(&r);
}

static void a_short_command_has_no_polling_floor(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "/bin/true", NULL };
	int slow = 0;

	for (int i = 0; i < 1000; i++) {
		struct dsec_result r = { .sz = sizeof r };
		struct dsec_error err;
		double t = now_ms();

		OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
		slow += now_ms() - t > 9;
		assert_int_equal(r.seq, i + 1);
		dsec_result_clear(&r);
	}
	assert_true(slow < 500); /* a floor of 10 ms would be under each of them */
}

static void what_cannot_be_executed_says_why(void **state)
{
	struct live *l = *state;
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	const char *absent[] = { "no-such-command", NULL }, *denied[] = { "/etc/passwd", NULL }, *script[] = { "/tmp/x", NULL };
	char *long_arg = malloc(3u << 20);
	const char *big[] = { "/bin/true", long_arg, NULL };
	DSEC_INIT(struct dsec_exec_opts, nowhere, .workdir = "/no/where");

	FAILS(dsec_sandbox_exec(l->sb, absent, NULL, &r, &err), -ENOENT, DSEC_STEP_EXEC);
	FAILS(dsec_sandbox_exec(l->sb, denied, NULL, &r, &err), -EACCES, DSEC_STEP_EXEC);
	OK(dsec_sandbox_write(l->sb, "/tmp/x", "no program", 10, 0755, &err));
	FAILS(dsec_sandbox_exec(l->sb, script, NULL, &r, &err), -ENOEXEC, DSEC_STEP_EXEC);
	memset(long_arg, 'a', (3u << 20) - 1);
	long_arg[(3u << 20) - 1] = 0;
	FAILS(dsec_sandbox_exec(l->sb, big, NULL, &r, &err), -E2BIG, DSEC_STEP_EXEC);
	free(long_arg);
	FAILS(dsec_sandbox_exec(l->sb, denied, &nowhere, &r, &err), -ENOENT, DSEC_STEP_SPAWN);
	SAYS(l->sb, "echo usable", "usable\n");
}

static void user_environment_and_directory_are_those_asked_for(void **state)
{
	struct live *l = *state;
	const char *env[] = { "A=1", "PATH=/bin", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .env = env, .workdir = "/tmp", .user = "1000:1001");
	struct dsec_result r;
	struct dsec_error err;

	if (geteuid() != 0) {
		const char *argv[] = { "true", NULL };

		r.sz = sizeof r;
		FAILS(dsec_sandbox_exec(l->sb, argv, &o, &r, &err), -ENOTSUP, DSEC_STEP_OPTIONS);
		SKIP("an ordinary user's sandbox has one user id");
	}
	r = sh(l->sb, "id -u; id -g; pwd; echo $A $PATH $HOME", &o);

	assert_string_equal(r.stdout_data, "1000\n1001\n/tmp\n1 /bin /tmp\n");
	dsec_result_clear(&r);
	o.flags = DSEC_EXEC_CLEAN_ENV;
	o.user = NULL;
	r = sh(l->sb, "env | grep -v -e PWD= -e _=", &o);
	assert_string_equal(r.stdout_data, "A=1\nPATH=/bin\n");
	dsec_result_clear(&r);
}

static void many_commands_run_at_once(void **state)
{
	struct live *l = *state;
	struct dsec_exec *e[64];
	struct dsec_error err;

	for (int i = 0; i < 64; i++) {
		char line[64];
		const char *argv[] = { "sh", "-c", line, NULL };

		(void)snprintf(line, sizeof line, "sleep 0.2; echo %d", i);
		OK(dsec_exec_start(l->sb, argv, NULL, &e[i], &err));
	}
	for (int i = 63; i >= 0; i--) {
		struct dsec_result r = { .sz = sizeof r };

		OK(dsec_exec_wait(e[i], 20000, &r, &err));
		assert_int_equal(atoi(r.stdout_data), i);
		dsec_result_clear(&r);
		dsec_exec_close(e[i]);
	}
}

static int64_t read_some(struct dsec_exec *e, char *buf, size_t n)
{
	struct dsec_error err;

	for (;;) {
		int64_t got = dsec_exec_read(e, DSEC_STREAM_STDOUT, buf, n, &err);
		struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };

		if (got != -EAGAIN)
			return got;
		assert_int_equal(poll(&p, 1, 10000), 1);
	}
}

static void a_stream_is_held_back_while_nobody_reads(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "head -c 30000000 /dev/zero; touch /tmp/finished", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;
	static char buf[1 << 16];
	uint64_t total = 0;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	SAYS(l->sb, "sleep 0.3; [ -e /tmp/finished ] || echo held", "held\n");
	for (int64_t n; (n = read_some(e, buf, sizeof buf)) > 0;)
		total += (uint64_t)n;
	assert_int_equal(total, 30000000);
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.exit_code, 0);
	assert_int_equal(r.stdout_bytes, 30000000);
	assert_null(r.stdout_data);
	dsec_exec_close(e);
}

static void give(struct dsec_exec *e, const char *text)
{
	struct dsec_error err;

	OK(dsec_exec_write(e, text, strlen(text), &err));
}

static void expect_text(struct dsec_exec *e, const char *text)
{
	char seen[8192] = "";
	size_t n = 0;

	while (!strstr(seen, text)) {
		int64_t got = read_some(e, seen + n, sizeof seen - 1 - n);

		if (got <= 0)
			fail_msg("\"%s\" did not come; came: \"%s\"", text, seen);
		n += (size_t)got;
		seen[n] = 0;
	}
}

static void a_terminal_has_size_signals_and_last_bytes(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "stty size; trap 'stty size' WINCH; while ! read x; do :; done; echo got $x;"
			       "trap 'echo interrupted; exit 5' INT; while :; do sleep 0.1; done", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_TTY | DSEC_EXEC_STREAM, .tty_rows = 33, .tty_cols = 99);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	expect_text(e, "33 99");
	(void)usleep(200000); /* the shell sets its trap after stty has spoken; there is no sign of it to wait for */
	OK(dsec_exec_resize(e, 10, 20, &err));
	expect_text(e, "10 20");
	give(e, "word\n");
	expect_text(e, "got word");
	(void)usleep(200000); /* as above */
	give(e, "\003");
	expect_text(e, "interrupted");
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.exit_code, 5);
	dsec_exec_close(e);
}

static void a_signal_reaches_the_group_and_kill_the_tree(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done", NULL };
	const char *tree[] = { "sh", "-c", "setsid sleep 77 & echo up; sleep 78", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	expect_text(e, "up");
	OK(dsec_exec_signal(e, SIGTERM, &err));
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.exit_code, 7);
	FAILS(dsec_exec_signal(e, SIGTERM, &err), -EPIPE, DSEC_STEP_SIGNAL);
	FAILS(dsec_exec_signal(e, 65, &err), -EINVAL, DSEC_STEP_OPTIONS);
	dsec_exec_close(e);
	OK(dsec_exec_start(l->sb, tree, &o, &e, &err));
	expect_text(e, "up");
	OK(dsec_exec_signal(e, SIGKILL, &err));
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.reason, DSEC_REASON_SIGNALED);
	assert_int_equal(r.signal, SIGKILL);
	dsec_exec_close(e);
	SAYS(l->sb, "pgrep sleep || echo none", "none\n");
}

static void closing_the_handle_ends_the_command(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "setsid sleep 66 & echo up; sleep 67", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM);
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	expect_text(e, "up");
	dsec_exec_close(e);
	SAYS(l->sb, "for i in 1 2 3 4 5 6 7 8 9 10; do pgrep sleep >/dev/null || break; done; pgrep sleep || echo none", "none\n");
}

static void times_and_memory_are_measured(void **state)
{
	struct live *l = *state;
	struct dsec_result r = sh(l->sb, "python3 -c 'x = bytearray(50_000_000)\nfor i in range(2_000_000): pass'", NULL);

	assert_int_equal(r.exit_code, 0);
	assert_true(r.cpu_ns > 10000000 && r.cpu_ns < 20000000000ull);
	assert_true(r.wall_ns >= r.cpu_ns / 4);
	assert_true(r.memory_peak > 50000000 && r.memory_peak < 200000000);
	dsec_result_clear(&r);
}

static void output_limits_are_kept_to_the_byte(void **state)
{
	struct live *l = *state;
	static const uint64_t limits[] = { 1, 2, 3, 999, 1001 };

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		DSEC_INIT(struct dsec_exec_opts, o, .output_limit = limits[i]);
		struct dsec_result r = sh(l->sb, "seq 1 5000; seq 1 5000 >&2", &o);

		assert_int_equal(r.stdout_bytes, 23893);
		assert_int_equal(r.stderr_bytes, 23893);
		assert_int_equal(r.flags, DSEC_RESULT_STDOUT_CUT | DSEC_RESULT_STDERR_CUT);
		if (r.stdout_len > limits[i] || r.stderr_len > limits[i])
			fail_msg("output_limit %d kept %zu and %zu bytes", (int)limits[i], r.stdout_len, r.stderr_len);
		dsec_result_clear(&r);
	}
}

static void floods_are_bounded_and_counted(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, t, .timeout_ms = 700);
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	struct dsec_error err;
	double start = now_ms();
	struct dsec_result r = sh(l->sb, "yes", &t);

	assert_true(now_ms() - start < 900);
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	assert_int_equal(r.flags, DSEC_RESULT_STDOUT_CUT);
	assert_int_equal(r.stdout_len, 8 << 20);
	assert_true(r.stdout_bytes > r.stdout_len);
	for (size_t i = 0; i < r.stdout_len; i += 2)
		assert_int_equal(r.stdout_data[i], i < r.stdout_head || r.stdout_head % 2 == 0 ? 'y' : r.stdout_data[i]);
	dsec_result_clear(&r);
	r = sh(l->sb, "head -c 200000000 /dev/zero | tr '\\0' x", NULL); /* one line */
	assert_int_equal(r.stdout_bytes, 200000000);
	assert_int_equal(r.stdout_len, 8 << 20);
	dsec_result_clear(&r);
	r = sh(l->sb, "yes '' | head -n 10000000", NULL);
	assert_int_equal(r.stdout_bytes, 10000000);
	dsec_result_clear(&r);
	OK(dsec_sandbox_stats(l->sb, &s, &err));
	assert_true(s.keeper_memory < 64 << 20); /* a few limits' worth, not what was written */
}

/* Runs a Python program whose path of escape is known to work on plain process groups and sessions. */
static void timeout_finds_double_forks_and_the_stopped(void **state)
{
	struct live *l = *state;
	static const char program[] =
		"import os, signal, time\n"
		"def beat():\n"
		"    while True:\n"
		"        open('/tmp/beat', 'a').write('x')\n"
		"        time.sleep(0.02)\n"
		"if os.fork() == 0:\n"
		"    os.setsid()\n"
		"    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n"
		"    if os.fork() > 0: os._exit(0)\n"
		"    os.setsid()\n"
		"    beat()\n"
		"if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
		"while not os.path.exists('/tmp/beat'): time.sleep(0.01)\n"
		"open('/tmp/started', 'w')\n"
		"os.kill(os.getpid(), signal.SIGSTOP)\n";
	const char *argv[] = { "python3", "-c", program, NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 800);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	double t = now_ms();

	OK(dsec_sandbox_exec(l->sb, argv, &o, &r, &err));
	t = now_ms() - t;
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	assert_true(t >= 799 && t < 900);
	dsec_result_clear(&r);
	SAYS(l->sb, "[ -e /tmp/started ] && a=$(wc -c < /tmp/beat); sleep 0.3; b=$(wc -c < /tmp/beat); [ $a = $b ] && echo still", "still\n");
	SAYS(l->sb, "pgrep -c python || :", "0\n");
}

static void a_spin_ends_at_its_timeout_and_its_time_is_told(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 500);
	double t = now_ms();
	struct dsec_result r = sh(l->sb, "while :; do :; done", &o);

	t = now_ms() - t;
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	assert_int_equal(r.signal, SIGKILL);
	assert_int_equal(r.exit_code, -1);
	assert_true(t >= 499 && t < 600);
	assert_true(r.wall_ns >= 499000000 && r.wall_ns < 700000000);
	assert_true(r.cpu_ns > 100000000 && r.cpu_ns < 700000000);
	dsec_result_clear(&r);
	o.timeout_ms = 1; /* it may not even have begun */
	r = sh(l->sb, "sleep 5", &o);
	assert_int_equal(r.reason, DSEC_REASON_TIMEOUT);
	dsec_result_clear(&r);
}

static void two_megabytes_of_arguments_run_or_are_refused(void **state)
{
	struct live *l = *state;
	static const char *argv[20001];
	static char word[101];
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	int ret;

	memset(word, 'w', 100);
	argv[0] = "/bin/true";
	for (int i = 1; i < 20000; i++)
		argv[i] = word;
	ret = dsec_sandbox_exec(l->sb, argv, NULL, &r, &err);
	if (ret < 0)
		FAILS(ret, -E2BIG, DSEC_STEP_EXEC);
	else
		assert_int_equal(r.exit_code, 0);
	dsec_result_clear(&r);
	SAYS(l->sb, "echo usable", "usable\n");
	argv[0] = "/bin/echo"; /* what surely fits comes through whole */
	argv[1000] = NULL;
	OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
	assert_int_equal(r.stdout_bytes, 999 * 101);
	dsec_result_clear(&r);
}

static void what_else_cannot_be_executed(void **state)
{
	struct live *l = *state;
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	const char *directory[] = { "/tmp", NULL }, *no_interpreter[] = { "/root/script", NULL }, *here[] = { "./tool", "a", NULL };
	const char *slashed[] = { "/etc/passwd/x", NULL };
	DSEC_INIT(struct dsec_exec_opts, in_file, .workdir = "/etc/passwd");

	FAILS(dsec_sandbox_exec(l->sb, directory, NULL, &r, &err), -EACCES, DSEC_STEP_EXEC);
	FAILS(dsec_sandbox_exec(l->sb, slashed, NULL, &r, &err), -ENOTDIR, DSEC_STEP_EXEC);
	OK(dsec_sandbox_write(l->sb, "/root/script", "#!/no/such/interpreter\n", 23, 0755, &err));
	FAILS(dsec_sandbox_exec(l->sb, no_interpreter, NULL, &r, &err), -ENOENT, DSEC_STEP_EXEC);
	FAILS(dsec_sandbox_exec(l->sb, directory, &in_file, &r, &err), -ENOTDIR, DSEC_STEP_SPAWN);
	OK(dsec_sandbox_write(l->sb, "/root/tool", "#!/bin/sh\necho $0 $1", 20, 0755, &err));
	OK(dsec_sandbox_exec(l->sb, here, NULL, &r, &err)); /* relative to the working directory */
	assert_string_equal(r.stdout_data, "./tool a\n");
	dsec_result_clear(&r);
}

static void a_failed_start_comes_from_wait(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "no-such-command", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
	FAILS(dsec_exec_wait(e, 5000, &r, &err), -ENOENT, DSEC_STEP_EXEC);
	assert_int_equal(dsec_exec_poll(e, &err), 1);
	dsec_exec_close(e);
	OK(dsec_exec_start(l->sb, (const char *[]){ "sleep", "9", NULL }, NULL, &e, &err));
	assert_int_equal(dsec_exec_poll(e, &err), 0);
	FAILS(dsec_exec_wait(e, 0, &r, &err), -ETIMEDOUT, DSEC_STEP_NONE);
	FAILS(dsec_exec_wait(e, 50, &r, &err), -ETIMEDOUT, DSEC_STEP_NONE);
	FAILS(dsec_exec_read(e, DSEC_STREAM_STDOUT, &r, 1, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_exec_write(e, "x", 1, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_exec_resize(e, 1, 1, &err), -EINVAL, DSEC_STEP_SIGNAL);
	dsec_exec_close(e);
}

static void stdin_is_written_read_and_closed_by_hand(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM | DSEC_EXEC_STDIN);
	struct dsec_result r = { .sz = sizeof r };
	static char piece[50000], back[1 << 16];
	size_t sent = 0, got = 0, total = 10u << 20;
	struct dsec_error err;
	struct dsec_exec *e;
	int64_t n;

	OK(dsec_exec_start(l->sb, (const char *[]){ "cat", NULL }, &o, &e, &err));
	while (got < total) {
		struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };
		size_t want = total - sent < sizeof piece ? total - sent : sizeof piece;

		for (size_t i = 0; i < want; i++)
			piece[i] = (char)((sent + i) * 7 % 251);
		n = want ? dsec_exec_write(e, piece, want, &err) : -EAGAIN;
		if (n != -EAGAIN)
			OK(n);
		sent += n > 0 ? (size_t)n : 0;
		if (n == -EAGAIN)
			assert_int_equal(poll(&p, 1, 10000), 1);
		while ((n = dsec_exec_read(e, DSEC_STREAM_STDOUT, back, sizeof back, &err)) > 0) {
			for (int64_t i = 0; i < n; i++)
				if (back[i] != (char)((got + (size_t)i) * 7 % 251))
					fail_msg("byte %zu is another", got + (size_t)i);
			got += (size_t)n;
		}
		assert_int_equal(n, -EAGAIN);
	}
	OK(dsec_exec_write(e, NULL, 0, &err));
	FAILS(dsec_exec_write(e, "x", 1, &err), -EPIPE, DSEC_STEP_SPAWN);
	assert_int_equal(read_some(e, back, sizeof back), 0);
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.exit_code, 0);
	dsec_exec_close(e);
}

static void a_command_that_does_not_read_holds_up_its_input_only(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STDIN);
	static char piece[1 << 16];
	struct dsec_error err;
	struct dsec_exec *e;
	uint64_t taken = 0;
	int64_t n;

	OK(dsec_exec_start(l->sb, (const char *[]){ "sleep", "60", NULL }, &o, &e, &err));
	for (double end = now_ms() + 500; now_ms() < end;) {
		struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };

		n = dsec_exec_write(e, piece, sizeof piece, &err);
		if (n == -EAGAIN)
			(void)poll(&p, 1, 50);
		else
			OK(n);
		taken += n > 0 ? (uint64_t)n : 0;
	}
	assert_true(taken > 0 && taken < 2 << 20);
	SAYS(l->sb, "echo others run", "others run\n");
	dsec_exec_close(e);
}

static void both_streams_flow_apart(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "for i in 1 2 3; do echo out$i; echo err$i >&2; done", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM);
	struct dsec_result r = { .sz = sizeof r };
	char got[2][64] = { "", "" };
	struct dsec_error err;
	struct dsec_exec *e;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	for (int i = 0; i < 2; i++) {
		size_t at = 0;

		for (;;) {
			struct pollfd p = { .fd = dsec_exec_fd(e), .events = POLLIN };
			int64_t n = dsec_exec_read(e, i ? DSEC_STREAM_STDERR : DSEC_STREAM_STDOUT, got[i] + at, 63 - at, &err);

			if (n == 0)
				break;
			if (n == -EAGAIN)
				assert_int_equal(poll(&p, 1, 5000), 1);
			else
				OK(n);
			at += n > 0 ? (size_t)n : 0;
		}
	}
	assert_string_equal(got[0], "out1\nout2\nout3\n");
	assert_string_equal(got[1], "err1\nerr2\nerr3\n");
	FAILS(dsec_exec_read(e, 3, got, 1, &err), -EINVAL, DSEC_STEP_OPTIONS);
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.stdout_bytes, 15);
	assert_int_equal(r.stderr_bytes, 15);
	dsec_exec_close(e);
}

static void a_terminal_loses_no_last_bytes_and_takes_no_forged_input(void **state)
{
	struct live *l = *state;
	const char *last[] = { "sh", "-c", "tty; stty size; head -c 300000 /dev/zero | tr '\\0' z; printf end", NULL };
	static const char forge[] = "import fcntl, termios\n"
		"for name, n, arg in (('sti', termios.TIOCSTI, b'x'), ('linux', 0x541c, b'\\x02')):\n"
		"    try: fcntl.ioctl(0, n, arg); print(name, 'taken')\n"
		"    except OSError: print(name, 'refused')\n";
	const char *forger[] = { "python3", "-c", forge, NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_TTY, .timeout_ms = 20000);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;

	for (int i = 0; i < 20; i++) {
		OK(dsec_sandbox_exec(l->sb, last, &o, &r, &err));
		assert_int_equal(strncmp(r.stdout_data, "/dev/pts/", 9), 0);
		assert_non_null(strstr(r.stdout_data, "24 80\r\n"));
		assert_string_equal(r.stdout_data + r.stdout_len - 5, "zzend");
		assert_true(r.stdout_len > 300003);
		dsec_result_clear(&r);
	}
	OK(dsec_sandbox_exec(l->sb, forger, &o, &r, &err));
	assert_string_equal(r.stdout_data, "sti refused\r\nlinux refused\r\n");
	dsec_result_clear(&r);
}

static void a_command_starts_with_clean_signals_and_descriptors(void **state)
{
	struct live *l = *state;

	SAYS(l->sb, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'", "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
	SAYS(l->sb, "umask; ulimit -c; yes | head -n 1", "0022\n0\ny\n");
	SAYS(l->sb, "echo $PATH $HOME $LANG; env | cut -d= -f1 | grep -v -e '^_$' -e PWD -e DSEC_ | sort | tr '\\n' ' '",
	     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /root C.UTF-8\nHOME LANG PATH ");
}

static void a_short_result_structure_is_filled_as_far_as_it_reaches(void **state)
{
	struct live *l = *state;
	struct {
		struct dsec_result r;
		uint64_t guard;
	} small = { .r = { .sz = offsetof(struct dsec_result, seq) }, .guard = 0x1122334455667788 };
	const char *argv[] = { "sh", "-c", "echo text; exit 3", NULL };
	struct dsec_error err = { 0 };

	memset((char *)&small + small.r.sz, 0x5a, sizeof small - small.r.sz);
	OK(dsec_sandbox_exec(l->sb, argv, NULL, &small.r, &err));
	assert_int_equal(small.r.exit_code, 3);
	assert_int_equal(small.r.reason, DSEC_REASON_EXITED);
	for (size_t i = small.r.sz; i < sizeof small; i++)
		assert_int_equal(((uint8_t *)&small)[i], 0x5a);
	dsec_result_clear(&small.r);
	small.r.sz = 4;
	FAILS(dsec_sandbox_exec(l->sb, argv, NULL, &small.r, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_exec(l->sb, argv, NULL, NULL, &err), -EINVAL, DSEC_STEP_OPTIONS);
}

/* Whoever runs a command in a terminal without typing into it: its input ends, inside a line or after one. */
static void a_terminal_without_a_typist_ends_its_input(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "cat", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_TTY, .timeout_ms = 5000);
	static const char *const inputs[] = { "", "line\n", "no end", "two\nlines" };
	struct dsec_error err;

	for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
		struct dsec_result r = { .sz = sizeof r };

		o.stdin_data = inputs[i];
		o.stdin_len = strlen(inputs[i]);
		OK(dsec_sandbox_exec(l->sb, argv, &o, &r, &err));
		assert_int_equal(r.reason, DSEC_REASON_EXITED);
		dsec_result_clear(&r);
	}
}

/* Typing into a program that ends meanwhile: what it ended with is not lost over it. */
static void what_is_typed_at_a_programs_end_does_no_harm(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "exit 7", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_TTY | DSEC_EXEC_STREAM);
	struct dsec_error err;

	for (int i = 0; i < 50; i++) {
		struct dsec_result r = { .sz = sizeof r };
		struct dsec_exec *e;
		int64_t n = 0;

		OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
		for (int k = 0; k < 40 && n != -EPIPE; k++)
			n = dsec_exec_write(e, "word\n", 5, NULL);
		OK(dsec_exec_wait(e, 5000, &r, &err));
		assert_int_equal(r.reason, DSEC_REASON_EXITED);
		assert_int_equal(r.exit_code, 7);
		dsec_result_clear(&r);
		dsec_exec_close(e);
	}
}

/* Asking whether a command has ended takes nothing from who reads it. */
static void waiting_keeps_what_was_not_read(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "echo first; sleep 0.2; echo second", NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .flags = DSEC_EXEC_STREAM);
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	struct dsec_exec *e;
	char buf[64] = "";
	int rc;

	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	while ((rc = dsec_exec_wait(e, 5, &r, &err)) == -ETIMEDOUT)
		;
	assert_int_equal(rc, 0);
	assert_int_equal(dsec_exec_read(e, DSEC_STREAM_STDOUT, buf, 3, &err), 3);
	assert_int_equal(dsec_exec_read(e, DSEC_STREAM_STDOUT, buf + 3, sizeof buf - 4, &err), 10);
	assert_string_equal(buf, "first\nsecond\n");
	assert_int_equal(dsec_exec_read(e, DSEC_STREAM_STDOUT, buf, sizeof buf, &err), 0);
	dsec_result_clear(&r);
	dsec_exec_close(e);
}

/* A kill may come before there is anything to kill. */
static void what_is_killed_as_it_starts_does_not_live_on(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "sh", "-c", "while :; do echo x >> /tmp/beat; sleep 0.02; done", NULL };
	struct dsec_error err;

	for (int i = 0; i < 100; i++) {
		struct dsec_exec *e;

		OK(dsec_exec_start(l->sb, argv, NULL, &e, &err));
		if (i % 2) {
			struct dsec_result r = { .sz = sizeof r };

			OK(dsec_exec_signal(e, SIGKILL, &err));
			OK(dsec_exec_wait(e, 5000, &r, &err));
			dsec_result_clear(&r);
		}
		dsec_exec_close(e);
	}
	SAYS(l->sb, "sleep 0.5; touch /tmp/beat; a=$(wc -c < /tmp/beat); sleep 0.3; b=$(wc -c < /tmp/beat); [ $a = $b ] && echo still",
	     "still\n");
}

/* It can be, until it executes: the agent must be able to go on. */
static void who_stops_what_is_started_stops_itself_only(void **state)
{
	struct live *l = *state;
	const char *hostile[] = { "perl", "-e", "kill 'STOP', -1 while 1", NULL };
	const char *argv[] = { "true", NULL };
	struct dsec_error err;
	struct dsec_exec *e;
	struct dsec_result r = { .sz = sizeof r };
	double t = now_ms();

	OK(dsec_exec_start(l->sb, hostile, NULL, &e, &err));
	for (int i = 0; i < 3; i++) {
		DSEC_INIT(struct dsec_exec_opts, o, .timeout_ms = 300);
		int rc = dsec_sandbox_exec(l->sb, argv, &o, &r, &err); /* fails, times out, or was quick enough */

		assert_true(rc == 0 || rc == -EAGAIN);
		if (rc == 0)
			dsec_result_clear(&r);
	}
	OK(dsec_exec_signal(e, SIGKILL, &err));
	OK(dsec_exec_wait(e, 5000, &r, &err));
	assert_int_equal(r.reason, DSEC_REASON_SIGNALED);
	dsec_result_clear(&r);
	dsec_exec_close(e);
	SAYS(l->sb, "echo usable", "usable\n");
	assert_true(now_ms() - t < 8000);
}

/* Three descriptors of the agent for each, and those that processes left in the background still hold. */
static void hundreds_of_commands_run_at_once(void **state)
{
	enum { N = 600 };
	struct live *l = *state;
	const char *argv[] = { "sleep", "60", NULL };
	struct dsec_exec *all[N];
	struct dsec_error err;

	for (int i = 0; i < N; i++)
		OK(dsec_exec_start(l->sb, argv, NULL, &all[i], &err));
	SAYS(l->sb, "ulimit -n; echo one more", "1024\none more\n");
	for (int i = 0; i < N; i++)
		dsec_exec_close(all[i]);
	SAYS(l->sb, "echo usable", "usable\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE(every_exit_code_and_signal_comes_back),
		LIVE(timeout_ends_the_tree_at_the_deadline_though_orphans_hold_the_pipes),
		LIVE(timeout_of_one_command_leaves_another_alone),
		LIVE(a_background_child_with_the_pipes_does_not_hold_up_the_result),
		LIVE(stdin_is_at_its_end_unless_given_and_100_mb_arrive),
		LIVE(bytes_come_back_as_they_were_and_streams_apart),
		LIVE(output_over_the_limit_keeps_head_and_tail_and_counts_all),
		LIVE(a_short_command_has_no_polling_floor),
		LIVE(what_cannot_be_executed_says_why),
		LIVE(user_environment_and_directory_are_those_asked_for),
		LIVE(many_commands_run_at_once),
		LIVE(a_stream_is_held_back_while_nobody_reads),
		LIVE(a_terminal_has_size_signals_and_last_bytes),
		LIVE(a_signal_reaches_the_group_and_kill_the_tree),
		LIVE(closing_the_handle_ends_the_command),
		LIVE(times_and_memory_are_measured),
		LIVE(output_limits_are_kept_to_the_byte),
		LIVE(floods_are_bounded_and_counted),
		LIVE(timeout_finds_double_forks_and_the_stopped),
		LIVE(a_spin_ends_at_its_timeout_and_its_time_is_told),
		LIVE(two_megabytes_of_arguments_run_or_are_refused),
		LIVE(what_else_cannot_be_executed),
		LIVE(a_failed_start_comes_from_wait),
		LIVE(stdin_is_written_read_and_closed_by_hand),
		LIVE(a_command_that_does_not_read_holds_up_its_input_only),
		LIVE(both_streams_flow_apart),
		LIVE(a_terminal_loses_no_last_bytes_and_takes_no_forged_input),
		LIVE(a_command_starts_with_clean_signals_and_descriptors),
		LIVE(a_terminal_without_a_typist_ends_its_input),
		LIVE(what_is_typed_at_a_programs_end_does_no_harm),
		LIVE(waiting_keeps_what_was_not_read),
		LIVE(what_is_killed_as_it_starts_does_not_live_on),
		LIVE(who_stops_what_is_started_stops_itself_only),
		LIVE(hundreds_of_commands_run_at_once),
		LIVE(a_short_result_structure_is_filled_as_far_as_it_reaches),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
