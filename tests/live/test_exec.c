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

	for (int code = 0; code < 256; code += code < 3 || code > 250 ? 1 : 31) {
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

	for (int i = 0; i < 300; i++) {
		struct dsec_result r = { .sz = sizeof r };
		struct dsec_error err;
		double t = now_ms();

		OK(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err));
		slow += now_ms() - t > 9;
		assert_int_equal(r.seq, i + 1);
		dsec_result_clear(&r);
	}
	assert_true(slow < 150);
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
	struct dsec_exec *e[32];
	struct dsec_error err;

	for (int i = 0; i < 32; i++) {
		char line[64];
		const char *argv[] = { "sh", "-c", line, NULL };

		(void)snprintf(line, sizeof line, "sleep 0.2; echo %d", i);
		OK(dsec_exec_start(l->sb, argv, NULL, &e[i], &err));
	}
	for (int i = 31; i >= 0; i--) {
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
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
