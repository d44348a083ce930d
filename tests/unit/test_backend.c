/* SPDX-License-Identifier: MIT */
/*
 * The table of backends and the promises of dsec/backend.h: which tables are refused, which slots are called when, and what
 * the library makes of a channel that says odd things. The backend "fault" writes down each call of its slots and fails at
 * the n-th.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/core.h"
#include "util/error.h"

static char trail[400];            /* "probe create start " */
static int calls, fail_at, fail_with, left_to_time_out;
static int far_end = -1;           /* of the last channel, for tests that speak themselves */
static bool speaks_itself;
static int32_t signalled;

static int slot(const char *name, struct dsec_error *err)
{
	size_t n = strlen(trail);

	(void)snprintf(trail + n, sizeof trail - n, "%s ", name);
	if (++calls != fail_at)
		return 0;
	return dsec__fail(err, fail_with, DSEC_STEP_CLONE, "%s was made to fail", name);
}

static int f_probe(struct dsec_node *node, struct dsec_error *err)
{
	assert_non_null(node);
	return slot("probe", err);
}

static int f_create(struct dsec_sandbox *sb, const struct dsec_sandbox_opts *o, struct dsec_error *err)
{
	assert_null(dsec_backend_data(sb));
	assert_int_equal(o->sz, sizeof *o); /* complete, whatever the caller knew */
	assert_int_equal(strlen(dsec_sandbox_id(sb)), 25);
	dsec_backend_set_data(sb, &calls);
	return slot("create", err);
}

static int f_start(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	assert_ptr_equal(dsec_backend_data(sb), &calls);
	if (left_to_time_out-- > 0) {
		assert_true(timeout_ms >= 0);
		(void)slot("start", NULL);
		return dsec__fail(err, -ETIMEDOUT, DSEC_STEP_CLONE, "not yet");
	}
	return slot("start", err);
}

static void put_frame(int fd, uint16_t type, const void *payload, uint32_t n)
{
	struct dsec_frame f = { .len = n, .type = type };

	assert_int_equal(write(fd, &f, sizeof f), sizeof f);
	assert_int_equal(write(fd, payload, n), n);
}

static int f_exec(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *o, int *ret_fd,
		  struct dsec_error *err)
{
	struct dsec_frame_result res = { .reason = DSEC_REASON_EXITED, .exit_code = 4, .seq = 1 };
	int pair[2], r = slot("exec", err);

	assert_ptr_equal(dsec_backend_data(sb), &calls);
	assert_non_null(argv[0]);
	assert_int_equal(o->sz, sizeof *o);
	if (r < 0)
		return r;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	if (speaks_itself) {
		far_end = pair[1];
	} else {
		put_frame(pair[1], DSEC_FRAME_STDOUT, "out", 3);
		put_frame(pair[1], DSEC_FRAME_RESULT, &res, sizeof res);
		(void)close(pair[1]);
	}
	*ret_fd = pair[0];
	return 0;
}

static int f_signal(struct dsec_sandbox *sb, int fd, int32_t signo, struct dsec_error *err)
{
	(void)sb;
	assert_true(fd >= 0);
	signalled = signo;
	return slot("signal", err);
}

static int f_stop(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	assert_ptr_equal(dsec_backend_data(sb), &calls);
	(void)timeout_ms;
	return slot("stop", err);
}

static void f_destroy(struct dsec_sandbox *sb)
{
	assert_ptr_equal(dsec_backend_data(sb), &calls);
	(void)slot("destroy", NULL);
}

static int f_stats(struct dsec_sandbox *sb, struct dsec_sandbox_stats *ret, struct dsec_error *err)
{
	(void)sb;
	ret->pids = 7;
	return slot("stats", err);
}

static int f_attach(struct dsec_sandbox *sb, const char *id, struct dsec_error *err)
{
	(void)sb;
	(void)id;
	return slot("attach", err);
}

static int f_freeze(struct dsec_sandbox *sb, struct dsec_error *err)
{
	(void)sb;
	return slot("freeze", err);
}

static const struct dsec_backend_ops fault = {
	.sz = sizeof fault, .name = "fault", .caps = DSEC_CAP_EXEC, .probe = f_probe, .create = f_create,
	.start = f_start, .exec = f_exec, .signal = f_signal, .stop = f_stop, .destroy = f_destroy,
};

/* The table ends before its optional slots; what lies behind is not the library's to read. */
static struct {
	struct dsec_backend_ops ops;
} short_table;

static const struct dsec_backend_ops able = {
	.sz = sizeof able, .name = "able", .caps = DSEC_CAP_EXEC | DSEC_CAP_STATS, .probe = f_probe, .create = f_create,
	.start = f_start, .exec = f_exec, .signal = f_signal, .stop = f_stop, .destroy = f_destroy, .stats = f_stats,
};

static struct dsec_node node;

static int setup(void **state)
{
	(void)state;
	trail[0] = 0;
	calls = fail_at = left_to_time_out = 0;
	fail_with = -EIO;
	speaks_itself = false;
	far_end = -1;
	node = (struct dsec_node){ .owner = getpid() };
	return 0;
}

static int create(const char *backend, uint64_t flags, struct dsec_sandbox **ret, struct dsec_error *e)
{
	struct dsec_sandbox_opts o = { .sz = sizeof o, .backend = backend, .flags = flags };

	return dsec_sandbox_create(&node, &o, ret, e);
}

static void refused_table(const struct dsec_backend_ops *t, int code, const char *names)
{
	struct dsec_error e = { 0 };
	int r = dsec_backend_register(t, &e);

	if (r != code || e.code != code || e.step != DSEC_STEP_OPTIONS || strncmp(e.text, names, strlen(names)) != 0)
		fail_msg("%d [%s] %s; expected %d of \"%s\"", r, dsec_step_name(e.step), e.text, code, names);
}

static void each_missing_slot_is_named(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint64_t caps;
	} slots[] = {
#define SLOT(name, caps) { #name, offsetof(struct dsec_backend_ops, name), caps }
		SLOT(probe, 0), SLOT(create, 0), SLOT(start, 0), SLOT(exec, 0), SLOT(signal, 0), SLOT(stop, 0), SLOT(destroy, 0),
		SLOT(attach, DSEC_CAP_ATTACH), SLOT(stats, DSEC_CAP_STATS), SLOT(freeze, DSEC_CAP_FREEZE),
		SLOT(thaw, DSEC_CAP_FREEZE),
	};

	(void)state;
	for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
		static struct dsec_backend_ops t; /* outlives the test: one that is taken by mistake is looked at later */
		void *none = NULL;

		t = able;
		t.name = "lacks";
		t.attach = f_attach;
		t.freeze = t.thaw = f_freeze;
		t.caps |= slots[i].caps;
		memcpy((char *)&t + slots[i].at, &none, sizeof none);
		refused_table(&t, -EINVAL, slots[i].name);
	}
	assert_null(dsec__backend_find("lacks"));
}

static void bad_tables_are_refused(void **state)
{
	static const char *const names[] = { "", "Upper", "a b", "a_b", "a/b", "a\n", "sixteen-letters-" };
	static struct dsec_backend_ops t;

	(void)state;
	t = fault;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		t.name = names[i];
		refused_table(&t, -EINVAL, "name");
	}
	t.name = NULL;
	refused_table(&t, -EINVAL, "name");
	t.name = "sizes";
	for (t.sz = 0; t.sz < offsetof(struct dsec_backend_ops, attach); t.sz++)
		refused_table(&t, -EINVAL, "sz");
	refused_table(NULL, -EINVAL, "sz");
	t.sz = sizeof t;
	for (int bit = 10; bit < 64; bit++) {
		t.caps = 1ull << bit;
		refused_table(&t, -EINVAL, "caps");
	}
	t.caps = 0;
	t.name = "container";
	refused_table(&t, -EEXIST, "name");
	t.name = "null";
	refused_table(&t, -EEXIST, "name");
	t.name = "microvm"; /* taken, though it cannot be used */
	refused_table(&t, -EEXIST, "name");
}

static void a_name_is_registered_once_and_matched_whole(void **state)
{
	struct dsec_sandbox *sb;
	struct dsec_error e = { 0 };

	(void)state;
	assert_int_equal(create("fault", 0, &sb, &e), -EINVAL); /* not yet */
	assert_int_equal(strncmp(e.text, "backend", 7), 0);
	assert_int_equal(dsec_backend_register(&fault, &e), 0);
	refused_table(&fault, -EEXIST, "name");
	assert_int_equal(create("faul", 0, &sb, &e), -EINVAL);
	assert_int_equal(create("faults", 0, &sb, &e), -EINVAL);
	assert_int_equal(create("", 0, &sb, &e), -EINVAL);
	assert_string_equal(trail, "");
}

/* Create, a command, stop, close; the n-th slot fails. */
static int life(struct dsec_error *e)
{
	struct dsec_result res = { .sz = sizeof res };
	const char *argv[] = { "x", NULL };
	struct dsec_sandbox *sb = NULL;
	int r = create("fault", 0, &sb, e);

	if (r < 0) {
		assert_null(sb); /* outputs are written on success only */
		return r;
	}
	r = dsec_sandbox_exec(sb, argv, NULL, &res, e);
	if (r == 0) {
		assert_int_equal(res.exit_code, 4);
		assert_string_equal(res.stdout_data, "out");
	} else {
		assert_null(res.stdout_data);
		assert_int_equal(res.reason, 0);
	}
	dsec_result_clear(&res);
	if (r == 0)
		r = dsec_sandbox_stop(sb, 0, e);
	dsec_sandbox_close(sb);
	return r;
}

static void each_failing_slot_is_followed_by_what_was_promised(void **state)
{
	static const char *const trails[] = {
		"probe ",
		"probe create ",                            /* on failure destroy is not called */
		"probe create start destroy ",              /* any other failure than a timeout: destroy follows */
		"probe create start exec destroy ",
		"probe create start exec stop destroy ",
		"probe create start exec stop destroy ",    /* none failed */
	};
	static const int codes[] = { -EIO, -ENOMEM, -EACCES, -ENOSPC, -EAGAIN };

	(void)state;
	for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++) {
		for (int n = 1; n <= 6; n++) {
			struct dsec_error e, untouched;
			int r;

			(void)setup(NULL);
			memset(&e, 0x5a, sizeof e);
			untouched = e;
			fail_at = n;
			fail_with = codes[c];
			r = life(&e);
			assert_string_equal(trail, trails[n - 1]);
			if (n == 6) {
				assert_int_equal(r, 0);
				assert_memory_equal(&e, &untouched, sizeof e);
				continue;
			}
			assert_int_equal(r, codes[c]);
			assert_int_equal(e.code, codes[c]);
			assert_int_equal(e.step, DSEC_STEP_CLONE); /* the slot's own words, translated nowhere */
			assert_non_null(strstr(e.text, "was made to fail"));
			(void)setup(NULL);
			fail_at = n;
			fail_with = codes[c];
			assert_int_equal(life(NULL), codes[c]); /* nobody asks why */
			assert_string_equal(trail, trails[n - 1]);
		}
	}
}

static void a_start_that_is_not_waited_for(void **state)
{
	struct dsec_sandbox *sb = NULL;
	const char *argv[] = { "x", NULL };
	struct dsec_result res = { .sz = sizeof res };
	struct dsec_error e = { 0 };

	(void)state;
	left_to_time_out = 2;
	assert_int_equal(create("fault", DSEC_SANDBOX_NOWAIT, &sb, &e), 0);
	assert_string_equal(trail, "probe create ");
	assert_int_equal(dsec_sandbox_exec(sb, argv, NULL, &res, &e), -EPIPE); /* not yet, and no slot is asked */
	assert_int_equal(dsec_sandbox_wait(sb, 0, &e), -ETIMEDOUT);
	assert_int_equal(dsec_sandbox_wait(sb, 10, &e), -ETIMEDOUT);
	assert_int_equal(dsec_sandbox_wait(sb, 0, &e), 0);
	assert_int_equal(dsec_sandbox_wait(sb, 0, &e), 0);
	assert_string_equal(trail, "probe create start start start ");
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0);
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0); /* a second one is a success and asks nobody */
	assert_int_equal(dsec_sandbox_wait(sb, 0, &e), 0);
	dsec_sandbox_close(sb);
	assert_string_equal(trail, "probe create start start start stop destroy ");
	(void)setup(NULL);
	fail_at = 3;
	assert_int_equal(create("fault", DSEC_SANDBOX_NOWAIT, &sb, &e), 0);
	assert_int_equal(dsec_sandbox_wait(sb, -1, &e), -EIO);
	assert_int_equal(dsec_sandbox_wait(sb, -1, &e), -EPIPE); /* it has failed for good */
	dsec_sandbox_close(sb);
	assert_string_equal(trail, "probe create start destroy ");
}

static void a_stop_that_failed_can_be_repeated(void **state)
{
	struct dsec_sandbox *sb = NULL;
	struct dsec_error e = { 0 };

	(void)state;
	fail_at = 4;
	assert_int_equal(create("fault", 0, &sb, &e), 0);
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), -EIO);
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0); /* only because the slot was asked again */
	dsec_sandbox_close(sb);
	assert_string_equal(trail, "probe create start stop stop destroy ");
}

static void what_is_off_is_refused_before_any_slot(void **state)
{
	const char *argv[] = { "x", NULL };
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	struct dsec_result res = { .sz = sizeof res };
	DSEC_INIT(struct dsec_exec_opts, tty, .flags = DSEC_EXEC_TTY);
	struct dsec_sandbox *sb = NULL;
	struct dsec_exec *x = NULL;
	struct dsec_error e = { 0 };
	void *data = NULL;
	size_t n = 0;

	(void)state;
#define LIMITED(field, ...)                                                                                              \
	do {                                                                                                             \
		struct dsec_sandbox_opts o_ = { .sz = sizeof o_, .backend = "fault", __VA_ARGS__ };                      \
		assert_int_equal(dsec_sandbox_create(&node, &o_, &sb, &e), -ENOTSUP);                                    \
		assert_int_equal(strncmp(e.text, field, strlen(field)), 0);                                              \
		assert_non_null(strstr(e.text, "fault"));                                                                \
	} while (0)
	LIMITED("cpu_millis", .cpu_millis = 100);
	LIMITED("memory_bytes", .memory_bytes = 1 << 30);
	LIMITED("pids", .pids = 5);
	LIMITED("disk_bytes", .disk_bytes = 1 << 20);
	LIMITED("disk_inodes", .disk_inodes = 100);
	LIMITED("flags", .flags = DSEC_SANDBOX_RETAIN);
	LIMITED("network", .network = DSEC_NETWORK_HOST);
	assert_null(strstr(trail, "create")); /* asking whether it works at all is allowed */
	(void)setup(NULL);
	assert_int_equal(create("fault", 0, &sb, &e), 0);
	assert_int_equal(dsec_sandbox_caps(sb), DSEC_CAP_EXEC);
	(void)setup(NULL);
	assert_int_equal(dsec_sandbox_stats(sb, &s, &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_read(sb, "/x", &data, &n, &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_write(sb, "/x", "x", 1, 0, &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_put(sb, "/etc/passwd", "/x", &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_get(sb, "/x", "/tmp/no-such-directory/x", &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_exec(sb, argv, &tty, &res, &e), -ENOTSUP);
	assert_int_equal(dsec_exec_start(sb, argv, &tty, &x, &e), -ENOTSUP);
	assert_int_equal(e.step, DSEC_STEP_OPTIONS);
	assert_int_equal(dsec_sandbox_fd(sb), -EINVAL);
	assert_string_equal(trail, "");
	dsec_sandbox_close(sb);
}

static void optional_slots_are_used_where_they_reach(void **state)
{
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	struct dsec_sandbox *sb = NULL;
	struct dsec_error e = { 0 };

	(void)state;
	assert_int_equal(dsec_backend_register(&able, &e), 0);
	assert_int_equal(create("able", 0, &sb, &e), 0);
	assert_int_equal(dsec_sandbox_stats(sb, &s, &e), 0);
	assert_int_equal(s.pids, 7);
	s.pids = 9;
	s.sz = offsetof(struct dsec_sandbox_stats, pids);
	assert_int_equal(dsec_sandbox_stats(sb, &s, &e), 0);
	assert_int_equal(s.pids, 9);
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0);
	assert_int_equal(dsec_sandbox_stats(sb, &s, &e), -EPIPE);
	dsec_sandbox_close(sb);
	assert_string_equal(trail, "probe create start stats stats stop destroy ");

	(void)setup(NULL);
	short_table.ops = fault;
	short_table.ops.name = "short";
	short_table.ops.sz = offsetof(struct dsec_backend_ops, attach);
	memset((char *)&short_table.ops + short_table.ops.sz, 0x5a, sizeof short_table.ops - short_table.ops.sz);
	short_table.ops.caps |= DSEC_CAP_STATS;
	refused_table(&short_table.ops, -EINVAL, "stats");
	short_table.ops.caps = DSEC_CAP_EXEC;
	assert_int_equal(dsec_backend_register(&short_table.ops, &e), 0);
	assert_int_equal(create("short", 0, &sb, &e), 0);
	assert_int_equal(dsec_sandbox_fd(sb), -EINVAL); /* would crash if it were read */
	dsec_sandbox_close(sb);
}

static struct dsec_exec *start(struct dsec_sandbox **ret_sb, uint64_t flags)
{
	struct dsec_exec_opts o = { .sz = sizeof o, .flags = flags };
	const char *argv[] = { "x", NULL };
	struct dsec_exec *x = NULL;
	struct dsec_error e = { 0 };

	(void)setup(NULL);
	speaks_itself = true;
	assert_int_equal(create("fault", 0, ret_sb, &e), 0);
	assert_int_equal(dsec_exec_start(*ret_sb, argv, &o, &x, &e), 0);
	return x;
}

static void done(struct dsec_sandbox *sb, struct dsec_exec *x)
{
	if (far_end >= 0)
		(void)close(far_end);
	far_end = -1;
	dsec_exec_close(x);
	dsec_sandbox_close(sb);
}

static void frames_are_taken_in_any_pieces(void **state)
{
	struct dsec_frame_result res = { .reason = DSEC_REASON_SIGNALED, .exit_code = -1, .signal = 9, .seq = 12, .wall_ns = 5,
					 .stdout_bytes = 4, .stderr_bytes = 1 };
	const struct dsec_frame odd = { .len = 3, .type = 77 };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_sandbox *sb;
	struct dsec_exec *x = start(&sb, 0);
	struct dsec_error e = { 0 };
	uint8_t all[400];
	size_t n = 0;

	(void)state;
#define APPEND(p, len) (memcpy(all + n, (p), (len)), n += (len))
#define APPEND_FRAME(t, p, l) (APPEND((&(struct dsec_frame){ .len = (l), .type = (t) }), sizeof odd), APPEND(p, l))
	APPEND_FRAME(DSEC_FRAME_STDOUT, "ab", 2);
	APPEND(&odd, sizeof odd); /* from a newer backend: skipped */
	APPEND("xyz", 3);
	APPEND_FRAME(DSEC_FRAME_STDOUT, "", 0);
	APPEND_FRAME(DSEC_FRAME_STDERR, "e", 1);
	APPEND_FRAME(DSEC_FRAME_STDOUT, "c\0", 2);
	APPEND_FRAME(DSEC_FRAME_RESULT, &res, sizeof res);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(dsec_exec_poll(x, &e), 0);
		assert_int_equal(write(far_end, all + i, 1), 1);
	}
	assert_int_equal(dsec_exec_poll(x, &e), 1);
	assert_int_equal(dsec_exec_wait(x, 0, &r, &e), 0);
	assert_int_equal(r.stdout_len, 4);
	assert_memory_equal(r.stdout_data, "abc\0", 5);
	assert_string_equal(r.stderr_data, "e");
	assert_int_equal(r.signal, 9);
	assert_int_equal(r.seq, 12);
	dsec_result_clear(&r);
	done(sb, x);
}

static void a_channel_that_breaks_is_an_unknown_outcome(void **state)
{
	static const struct dsec_frame huge = { .len = DSEC_FRAME_MAX + 1, .type = DSEC_FRAME_STDOUT };
	struct dsec_frame_result res = { .reason = DSEC_REASON_EXITED };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error e = { 0 };

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct dsec_sandbox *sb;
		struct dsec_exec *x = start(&sb, how == 3 ? DSEC_EXEC_STREAM : 0);

		if (how == 0)
			put_frame(far_end, DSEC_FRAME_STDOUT, "part", 4);
		else if (how == 1)
			assert_int_equal(write(far_end, &huge, sizeof huge), sizeof huge);
		else if (how == 2)
			put_frame(far_end, DSEC_FRAME_RESULT, &res, sizeof res - 1); /* no result */
		if (how != 1) {
			(void)close(far_end);
			far_end = -1;
		}
		if (how == 3)
			assert_int_equal(dsec_exec_read(x, DSEC_STREAM_STDOUT, &r, 1, &e), -EPIPE);
		assert_int_equal(dsec_exec_wait(x, 1000, &r, &e), -EPIPE);
		assert_int_equal(e.step, DSEC_STEP_KEEPER);
		assert_int_equal(e.flags & DSEC_ERROR_RETRY, 0); /* it may have run */
		assert_int_equal(dsec_exec_poll(x, &e), -EPIPE);
		done(sb, x);
	}
}

static void a_failure_to_execute_is_passed_on(void **state)
{
	struct dsec_error sent = { .code = -ENOEXEC, .step = DSEC_STEP_EXEC, .flags = DSEC_ERROR_RETRY, .text = "execve" }, e = { 0 };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_sandbox *sb;
	struct dsec_exec *x = start(&sb, 0);

	(void)state;
	put_frame(far_end, DSEC_FRAME_FAILED, &sent, sizeof sent);
	assert_int_equal(dsec_exec_wait(x, 1000, &r, &e), -ENOEXEC);
	assert_memory_equal(&e, &sent, sizeof e);
	done(sb, x);
	x = start(&sb, 0); /* one without an end: cut, not read past */
	memset(sent.text, 'a', sizeof sent.text);
	put_frame(far_end, DSEC_FRAME_FAILED, &sent, sizeof sent);
	assert_int_equal(dsec_exec_wait(x, 1000, &r, &e), -ENOEXEC);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	done(sb, x);
	x = start(&sb, 0); /* a "failure" whose code is none is not taken for a success */
	sent.code = 5;
	put_frame(far_end, DSEC_FRAME_FAILED, &sent, sizeof sent);
	assert_true(dsec_exec_wait(x, 1000, &r, &e) < 0);
	done(sb, x);
}

static void input_keeps_to_its_credit(void **state)
{
	static uint8_t piece[64 << 10], got[80 << 10];
	uint32_t more = 1000;
	struct dsec_sandbox *sb;
	struct dsec_exec *x = start(&sb, DSEC_EXEC_STDIN);
	struct dsec_error e = { 0 };
	size_t sent = 0, n = 0;
	int64_t r;

	(void)state;
	while ((r = dsec_exec_write(x, piece, 5000, &e)) > 0)
		sent += (size_t)r;
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(sent, 64 << 10);
	put_frame(far_end, DSEC_FRAME_CREDIT, &more, sizeof more);
	assert_int_equal(dsec_exec_write(x, piece, sizeof piece, &e), 1000);
	assert_int_equal(dsec_exec_write(x, piece, 1, &e), -EAGAIN);
	assert_int_equal(dsec_exec_write(x, NULL, 0, &e), 0); /* its end needs none */
	assert_int_equal(dsec_exec_write(x, piece, 1, &e), -EPIPE);
	while (n < sent + 1000) {
		struct dsec_frame f;

		assert_int_equal(recv(far_end, &f, sizeof f, MSG_WAITALL), sizeof f);
		assert_int_equal(f.type, DSEC_FRAME_STDIN);
		assert_true(f.len > 0 && f.len <= sizeof got);
		assert_int_equal(recv(far_end, got, f.len, MSG_WAITALL), f.len);
		n += f.len;
	}
	done(sb, x);
}

static void a_signal_goes_through_its_slot(void **state)
{
	struct dsec_frame_result res = { .reason = DSEC_REASON_EXITED };
	struct dsec_sandbox *sb;
	struct dsec_exec *x = start(&sb, 0);
	struct dsec_error e = { 0 };

	(void)state;
	assert_int_equal(dsec_exec_signal(x, 15, &e), 0);
	assert_int_equal(signalled, 15);
	for (int32_t bad = -1; bad < 67; bad += bad == 0 ? 65 : 1)
		assert_int_equal(dsec_exec_signal(x, bad, &e), -EINVAL);
	assert_string_equal(trail, "probe create start exec signal ");
	put_frame(far_end, DSEC_FRAME_RESULT, &res, sizeof res);
	assert_int_equal(dsec_exec_poll(x, &e), 1);
	assert_int_equal(dsec_exec_signal(x, 15, &e), -EPIPE);
	assert_string_equal(trail, "probe create start exec signal ");
	done(sb, x);
}

static void the_null_backend_answers(void **state)
{
	static const struct {
		const char *argv[4];
		const char *out;
		int code, signal;
	} cases[] = {
		{ { "echo", "a", "b" }, "a b\n", 0, 0 }, { { "exit", "255" }, "", 255, 0 }, { { "exit", "256" }, "", 0, 0 },
		{ { "signal", "64" }, "", -1, 64 },      { { "anything" }, "", 0, 0 },
	};
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_sandbox *sb;
	struct dsec_error e = { 0 };

	(void)state;
	assert_int_equal(create("null", 0, &sb, &e), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(dsec_sandbox_exec(sb, cases[i].argv, NULL, &r, &e), 0);
		assert_string_equal(r.stdout_data, cases[i].out);
		assert_int_equal(r.stdout_bytes, strlen(cases[i].out));
		assert_int_equal(r.exit_code, cases[i].code);
		assert_int_equal(r.signal, cases[i].signal);
		assert_int_equal(r.reason, cases[i].signal ? DSEC_REASON_SIGNALED : DSEC_REASON_EXITED);
		assert_int_equal(r.seq, i + 1);
		dsec_result_clear(&r);
	}
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0);
	assert_int_equal(dsec_sandbox_exec(sb, cases[0].argv, NULL, &r, &e), -EPIPE);
	assert_int_equal(e.flags, DSEC_ERROR_RETRY);
	dsec_sandbox_close(sb);
	assert_int_equal(create("microvm", 0, &sb, &e), -ENOTSUP); /* named, and not there */
	assert_int_equal(create("fullvm", 0, &sb, &e), -ENOTSUP);
	assert_int_equal(create("function", 0, &sb, &e), -ENOTSUP);
	assert_int_equal(strncmp(e.text, "backend", 7), 0);
}

/* Last: the table is full afterwards. */
static void thirty_two_are_taken_and_no_more(void **state)
{
	static struct dsec_backend_ops many[40];
	static char names[40][8];
	struct dsec_error e = { 0 };
	int taken = 3, r = 0; /* the fault, able and short ones are in it already */

	(void)state;
	for (int i = 0; i < 40 && r == 0; i++) {
		many[i] = fault;
		(void)snprintf(names[i], sizeof names[i], "b-%u", (unsigned int)i % 100);
		many[i].name = names[i];
		r = dsec_backend_register(&many[i], &e);
		taken += r == 0;
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(taken, 32);
	assert_non_null(dsec__backend_find("b-0"));
	assert_ptr_equal(dsec__backend_find("fault"), &fault);
	refused_table(&fault, -EEXIST, "name"); /* still the better answer */
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, setup)
	const struct CMUnitTest tests[] = {
		TEST(each_missing_slot_is_named),
		TEST(bad_tables_are_refused),
		TEST(a_name_is_registered_once_and_matched_whole),
		TEST(each_failing_slot_is_followed_by_what_was_promised),
		TEST(a_start_that_is_not_waited_for),
		TEST(a_stop_that_failed_can_be_repeated),
		TEST(what_is_off_is_refused_before_any_slot),
		TEST(optional_slots_are_used_where_they_reach),
		TEST(frames_are_taken_in_any_pieces),
		TEST(a_channel_that_breaks_is_an_unknown_outcome),
		TEST(a_failure_to_execute_is_passed_on),
		TEST(input_keeps_to_its_credit),
		TEST(a_signal_goes_through_its_slot),
		TEST(the_null_backend_answers),
		TEST(thirty_two_are_taken_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
