/* SPDX-License-Identifier: MIT */
/* Errors, options, the table of backends, and a backend whose slots fail one after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/core.h"
#include "util/error.h"

static void an_error_is_set_once_and_kept_short(void **state)
{
	struct dsec_error e = { 0 };
	char long_text[600];

	(void)state;
	assert_int_equal(sizeof e, 256);
	errno = 7;
	assert_int_equal(dsec__fail(&e, -ENOENT, DSEC_STEP_MOUNT, "mount \"%s\"", "/proc"), -ENOENT);
	assert_int_equal(errno, 7);
	assert_string_equal(e.text, "mount \"/proc\"");
	assert_int_equal(dsec__wrap(&e, -ENOENT, "sandbox \"%s\"", "x"), -ENOENT);
	assert_string_equal(e.text, "sandbox \"x\": mount \"/proc\"");
	assert_int_equal(e.step, DSEC_STEP_MOUNT);
	memset(long_text, 'a', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	(void)dsec__fail(&e, -EIO, DSEC_STEP_EXEC, "%s", long_text);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	(void)dsec__wrap(&e, -EIO, "%s", long_text);
	assert_int_equal(e.text[sizeof e.text - 1], 0);
	assert_int_equal(dsec__fail(NULL, -EIO, DSEC_STEP_EXEC, "nobody asks"), -EIO);
	assert_string_equal(dsec_step_name(DSEC_STEP_MEMORY), "memory");
	assert_string_equal(dsec_step_name(9999), "unknown");
}

static void sized_options_grow_both_ways(void **state)
{
	struct {
		struct dsec_exec_opts o;
		uint64_t newer;
	} big = { .o = { .sz = sizeof big, .timeout_ms = 5 } };
	struct dsec_exec_opts got;
	struct dsec_error e;

	(void)state;
	assert_int_equal(dsec__opts_copy(&got, sizeof got, &big, "x", &e), 0);
	assert_int_equal(got.timeout_ms, 5);
	big.newer = 1;
	assert_int_equal(dsec__opts_copy(&got, sizeof got, &big, "x", &e), -E2BIG);
	big.o.sz = offsetof(struct dsec_exec_opts, env); /* an older caller: what lies behind is not read */
	assert_int_equal(dsec__opts_copy(&got, sizeof got, &big, "x", &e), 0);
	assert_int_equal(got.timeout_ms, 0);
	big.o.sz = 4;
	assert_int_equal(dsec__opts_copy(&got, sizeof got, &big, "x", &e), -EINVAL);
	assert_int_equal(dsec__opts_copy(&got, sizeof got, NULL, "x", &e), 0);
	assert_int_equal(got.sz, sizeof got);
}

static void refused(const struct dsec_sandbox_opts *o, const char *field)
{
	struct dsec_sandbox_opts got;
	struct dsec_error e = { 0 };
	int r = dsec__sandbox_opts_check(&got, o, &e);

	if (r >= 0 || e.step != DSEC_STEP_OPTIONS || strncmp(e.text, field, strlen(field)) != 0)
		fail_msg("%s: %d, step %u, \"%s\"", field, r, e.step, e.text);
}

static void each_bad_option_is_named(void **state)
{
	static const char *const names[] = { "", "UPPER", "-a", "a/b", "..", "a\nb", ".x",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	const char *no_equals[] = { "A=1", "B", NULL }, *no_name[] = { "=1", NULL };

	(void)state;
#define REFUSED(field, ...) refused(&(struct dsec_sandbox_opts){ .sz = sizeof(struct dsec_sandbox_opts), __VA_ARGS__ }, field)
	REFUSED("flags", .flags = 1u << 30);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		REFUSED("name", .name = names[i]);
		REFUSED("run", .run = names[i]);
	}
	REFUSED("image", .image = "relative");
	REFUSED("image", .image = "/a/../b");
	REFUSED("image", .image = "/a/..");
	REFUSED("hostname", .hostname = "under_score");
	REFUSED("workdir", .workdir = "relative");
	REFUSED("workdir", .workdir = "/proc/self/fd/7");
	REFUSED("user", .user = "0x0");
	REFUSED("env", .env = no_equals);
	REFUSED("env", .env = no_name);
	REFUSED("cpu_millis", .cpu_millis = 1);
	REFUSED("memory_bytes", .memory_bytes = 4096);
	REFUSED("memory_bytes", .memory_bytes = UINT64_MAX);
	REFUSED("pids", .pids = 1u << 30);
	REFUSED("disk_bytes", .disk_bytes = 1);
	REFUSED("disk_inodes", .disk_inodes = 1);
	REFUSED("network", .network = 9);
	REFUSED("top", .top = 9);
	REFUSED("disk_bytes", .top = DSEC_TOP_DISK, .disk_bytes = 1 << 20);
}

static void each_bad_exec_option_is_named(void **state)
{
	const char *argv[] = { "x", "y", NULL }, *empty[] = { NULL }, *blank[] = { "", NULL };
	struct dsec_exec_opts got;
	struct dsec_error e;

	(void)state;
#define EXEC_REFUSED(field, words, ...)                                                                                  \
	do {                                                                                                             \
		struct dsec_exec_opts o_ = { .sz = sizeof o_, __VA_ARGS__ };                                             \
		assert_int_equal(dsec__exec_opts_check(&got, words, &o_, &e), -EINVAL);                                  \
		assert_int_equal(strncmp(e.text, field, strlen(field)), 0);                                              \
	} while (0)
	EXEC_REFUSED("argv", NULL, .flags = 0);
	EXEC_REFUSED("argv", empty, .flags = 0);
	EXEC_REFUSED("argv", blank, .flags = 0);
	EXEC_REFUSED("argv", argv, .kind = DSEC_EXEC_FILE_READ);
	EXEC_REFUSED("flags", argv, .flags = 1u << 20);
	EXEC_REFUSED("flags", argv, .flags = DSEC_EXEC_STREAM | DSEC_EXEC_LIMIT_KILLS);
	EXEC_REFUSED("kind", argv, .kind = 9);
	EXEC_REFUSED("mode", argv, .mode = 0100644);
	EXEC_REFUSED("stdin_data", argv, .stdin_len = 5);
	EXEC_REFUSED("timeout_ms", argv, .timeout_ms = UINT64_MAX);
	EXEC_REFUSED("output_limit", argv, .output_limit = UINT64_MAX);
	EXEC_REFUSED("workdir", argv, .workdir = "x");
	EXEC_REFUSED("user", argv, .user = "-1");
}

/* --- a backend that fails at the n-th call of its slots --- */

static int calls, fail_at, live, destroyed;

static int slot(struct dsec_error *err)
{
	return ++calls == fail_at ? dsec__fail(err, -EIO, DSEC_STEP_KEEPER, "made to fail") : 0;
}

static int f_probe(struct dsec_node *n, struct dsec_error *err)
{
	(void)n;
	return slot(err);
}

static int f_create(struct dsec_sandbox *sb, const struct dsec_sandbox_opts *o, struct dsec_error *err)
{
	int r = slot(err);

	(void)o;
	if (r == 0)
		dsec_backend_set_data(sb, &live);
	live += r == 0;
	return r;
}

static int f_start(struct dsec_sandbox *sb, int64_t t, struct dsec_error *err)
{
	(void)sb;
	(void)t;
	return slot(err);
}

static int f_exec(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *o, int *ret_fd,
		  struct dsec_error *err)
{
	struct dsec_frame f = { .len = sizeof(struct dsec_frame_result), .type = DSEC_FRAME_RESULT };
	struct dsec_frame_result res = { .reason = DSEC_REASON_EXITED, .exit_code = 4, .seq = 1 };
	int pair[2], r = slot(err);

	(void)sb;
	(void)argv;
	(void)o;
	if (r < 0)
		return r;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[1], &f, sizeof f), sizeof f);
	assert_int_equal(write(pair[1], &res, sizeof res), sizeof res);
	(void)close(pair[1]);
	*ret_fd = pair[0];
	return 0;
}

static int f_signal(struct dsec_sandbox *sb, int fd, int32_t s, struct dsec_error *err)
{
	(void)sb;
	(void)fd;
	(void)s;
	return slot(err);
}

static int f_stop(struct dsec_sandbox *sb, int64_t t, struct dsec_error *err)
{
	(void)sb;
	(void)t;
	return slot(err);
}

static void f_destroy(struct dsec_sandbox *sb)
{
	assert_ptr_equal(dsec_backend_data(sb), &live);
	destroyed++;
	live--;
}

static const struct dsec_backend_ops faulty = {
	.sz = sizeof faulty, .name = "faulty", .caps = DSEC_CAP_EXEC, .probe = f_probe, .create = f_create,
	.start = f_start, .exec = f_exec, .signal = f_signal, .stop = f_stop, .destroy = f_destroy,
};

static void a_table_is_checked_before_it_is_taken(void **state)
{
	struct dsec_backend_ops t = faulty;
	struct dsec_error e;

	(void)state;
	t.name = "Bad Name";
	assert_int_equal(dsec_backend_register(&t, &e), -EINVAL);
	t.name = "container";
	assert_int_equal(dsec_backend_register(&t, &e), -EEXIST);
	t.name = "x";
	t.stop = NULL;
	assert_int_equal(dsec_backend_register(&t, &e), -EINVAL);
	assert_string_equal(e.text, "stop: the required slot is NULL");
	t.stop = f_stop;
	t.caps |= DSEC_CAP_STATS;
	assert_int_equal(dsec_backend_register(&t, &e), -EINVAL); /* the bit without the slot */
	t.sz = 24;
	assert_int_equal(dsec_backend_register(&t, &e), -EINVAL);
	assert_int_equal(dsec_backend_register(NULL, &e), -EINVAL);
}

static void each_failing_slot_is_told_and_nothing_stays(void **state)
{
	struct dsec_node node = { .owner = getpid() };
	const char *argv[] = { "x", NULL };
	DSEC_INIT(struct dsec_sandbox_opts, o, .backend = "faulty");
	struct dsec_error e;
	int n;

	(void)state;
	assert_int_equal(dsec_backend_register(&faulty, &e), 0);
	assert_int_equal(dsec_backend_register(&faulty, &e), -EEXIST);
	for (n = 1;; n++) {
		struct dsec_result r = { .sz = sizeof r };
		struct dsec_sandbox *sb = NULL;
		int ret;

		calls = 0;
		fail_at = n;
		ret = dsec_sandbox_create(&node, &o, &sb, &e);
		if (ret == 0)
			ret = dsec_sandbox_exec(sb, argv, NULL, &r, &e);
		if (ret == 0)
			assert_int_equal(r.exit_code, 4);
		if (ret == 0)
			ret = dsec_sandbox_stop(sb, 0, &e);
		dsec_result_clear(&r);
		dsec_sandbox_close(sb);
		assert_int_equal(live, 0);
		if (calls < n)
			break;
		assert_int_equal(ret, -EIO);
		assert_string_equal(e.text, "made to fail");
	}
	assert_int_equal(n, 6); /* probe, create, start, exec, stop */
}

static void what_a_backend_cannot_do_is_refused_before_it_is_asked(void **state)
{
	struct dsec_node node = { .owner = getpid() };
	struct dsec_sandbox *sb;
	struct dsec_sandbox_stats s = { .sz = sizeof s };
	struct dsec_error e;
	void *data;
	size_t n;

	(void)state;
#define CREATE(...) dsec_sandbox_create(&node, &(struct dsec_sandbox_opts){ .sz = sizeof(struct dsec_sandbox_opts), __VA_ARGS__ }, &sb, &e)
	assert_int_equal(CREATE(.backend = "microvm"), -ENOTSUP);
	assert_non_null(strstr(e.text, "microvm"));
	assert_int_equal(CREATE(.backend = "fullvm"), -ENOTSUP);
	assert_int_equal(CREATE(.backend = "function"), -ENOTSUP);
	assert_int_equal(CREATE(.backend = "contain"), -EINVAL); /* no prefix counts */
	assert_int_equal(CREATE(.backend = "null", .memory_bytes = 1 << 30), -ENOTSUP);
	assert_non_null(strstr(e.text, "memory_bytes"));
	assert_int_equal(CREATE(.backend = "null", .flags = DSEC_SANDBOX_RETAIN), -ENOTSUP);
	assert_int_equal(CREATE(.backend = "null", .network = DSEC_NETWORK_HOST), -ENOTSUP);
	assert_int_equal(CREATE(.backend = "null"), 0);
	assert_int_equal(dsec_sandbox_stats(sb, &s, &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_read(sb, "/x", &data, &n, &e), -ENOTSUP);
	assert_int_equal(dsec_sandbox_fd(sb), -EINVAL);
	dsec_sandbox_close(sb);
}

static void the_null_backend_answers(void **state)
{
	struct dsec_node node = { .owner = getpid() };
	const char *echo[] = { "echo", "a", "b", NULL }, *leave[] = { "exit", "9", NULL }, *die[] = { "signal", "11", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_sandbox *sb;
	struct dsec_error e;

	(void)state;
	assert_int_equal(CREATE(.backend = "null"), 0);
	assert_int_equal(dsec_sandbox_exec(sb, echo, NULL, &r, &e), 0);
	assert_string_equal(r.stdout_data, "a b\n");
	assert_int_equal(r.seq, 1);
	dsec_result_clear(&r);
	assert_null(r.stdout_data);
	assert_int_equal(dsec_sandbox_exec(sb, leave, NULL, &r, &e), 0);
	assert_int_equal(r.exit_code, 9);
	dsec_result_clear(&r);
	assert_int_equal(dsec_sandbox_exec(sb, die, NULL, &r, &e), 0);
	assert_int_equal(r.signal, 11);
	dsec_result_clear(&r);
	assert_int_equal(dsec_sandbox_stop(sb, 0, &e), 0);
	assert_int_equal(dsec_sandbox_exec(sb, echo, NULL, &r, &e), -EPIPE);
	assert_int_equal(e.flags, DSEC_ERROR_RETRY);
	dsec_sandbox_close(sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_set_once_and_kept_short),
		cmocka_unit_test(sized_options_grow_both_ways),
		cmocka_unit_test(each_bad_option_is_named),
		cmocka_unit_test(each_bad_exec_option_is_named),
		cmocka_unit_test(a_table_is_checked_before_it_is_taken),
		cmocka_unit_test(each_failing_slot_is_told_and_nothing_stays),
		cmocka_unit_test(what_a_backend_cannot_do_is_refused_before_it_is_asked),
		cmocka_unit_test(the_null_backend_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
