/* SPDX-License-Identifier: MIT */
/* Options: the rule of sized structures at every size, and each field at the edges of what it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static void every_size_is_judged_by_the_rule(void **state)
{
	struct dsec_sandbox_opts got;
	struct dsec_error e = { 0 };

	(void)state;
	for (size_t sz = 0; sz < sizeof got + 64; sz++) {
		size_t room = sz < sizeof(size_t) ? sizeof(size_t) : sz;
		uint8_t *given = calloc(1, room); /* exactly as large as it says: a sanitizer sees a read beyond */
		int r;

		memcpy(given, &sz, sizeof sz);
		r = dsec__opts_copy(&got, sizeof got, given, "struct x", &e);
		if (sz < sizeof(size_t) + sizeof(uint64_t)) {
			assert_int_equal(r, -EINVAL);
			assert_int_equal(strncmp(e.text, "sz", 2), 0);
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(memcmp((uint8_t *)&got + sizeof(size_t), given + sizeof(size_t),
						(sz < sizeof got ? sz : sizeof got) - sizeof(size_t)), 0);
		}
		free(given);
	}
}

/* A byte that is set anywhere in the part that the library does not know. */
static void a_newer_callers_field_is_refused_wherever_it_is(void **state)
{
	uint8_t given[sizeof(struct dsec_exec_opts) + 40];
	struct dsec_exec_opts got;
	struct dsec_error e = { 0 };
	size_t sz = sizeof given;

	(void)state;
	for (size_t at = sizeof got; at < sizeof given; at++) {
		memset(given, 0, sizeof given);
		memcpy(given, &sz, sizeof sz);
		given[at] = 1;
		assert_int_equal(dsec__opts_copy(&got, sizeof got, given, "struct x", &e), -E2BIG);
		assert_int_equal(e.step, DSEC_STEP_OPTIONS);
		assert_int_equal(strncmp(e.text, "sz", 2), 0);
	}
}

static void what_an_older_caller_does_not_know_is_default(void **state)
{
	struct dsec_exec_opts o, got;
	struct dsec_error e;
	const char *argv[] = { "x", NULL };

	(void)state;
	memset(&o, 0xff, sizeof o);
	o.sz = offsetof(struct dsec_exec_opts, kind);
	o.flags = DSEC_EXEC_STDIN;
	assert_int_equal(dsec__exec_opts_check(&got, argv, &o, &e), 0);
	assert_int_equal(got.flags, DSEC_EXEC_STDIN);
	assert_int_equal(got.kind, 0);
	assert_null(got.env);
	assert_int_equal(got.timeout_ms, 0);
}

static int check(struct dsec_sandbox_opts o, struct dsec_error *e)
{
	struct dsec_sandbox_opts got;

	o.sz = sizeof o;
	memset(e, 0, sizeof *e);
	return dsec__sandbox_opts_check(&got, &o, e);
}

static void judge(struct dsec_sandbox_opts o, int expect, const char *field, int line)
{
	struct dsec_error e;
	int r = check(o, &e);

	if (r == expect && (r == 0 || (e.step == DSEC_STEP_OPTIONS && e.code == r && strncmp(e.text, field, strlen(field)) == 0)))
		return;
	print_error("line %d: %d, expected %d of \"%s\": [%s] %s\n", line, r, expect, field, dsec_step_name(e.step), e.text);
	_fail(__FILE__, line);
}

#define TAKEN(...) judge((struct dsec_sandbox_opts){ __VA_ARGS__ }, 0, "", __LINE__)
#define REFUSED(field, ...) judge((struct dsec_sandbox_opts){ __VA_ARGS__ }, -EINVAL, field, __LINE__)

static void unknown_flags_are_refused_one_by_one(void **state)
{
	const uint64_t sandbox = DSEC_SANDBOX_RETAIN | DSEC_SANDBOX_NOWAIT | DSEC_SANDBOX_LIMITS_OPTIONAL;
	const uint64_t exec = DSEC_EXEC_STDIN | DSEC_EXEC_TTY | DSEC_EXEC_STREAM | DSEC_EXEC_LIMIT_KILLS | DSEC_EXEC_CLEAN_ENV;
	const char *argv[] = { "x", NULL };
	struct dsec_exec_opts got;
	struct dsec_error e;

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		struct dsec_exec_opts o = { .sz = sizeof o, .flags = 1ull << bit };

		judge((struct dsec_sandbox_opts){ .flags = 1ull << bit }, sandbox >> bit & 1 ? 0 : -EINVAL, "flags", __LINE__);
		assert_int_equal(dsec__exec_opts_check(&got, argv, &o, &e), exec >> bit & 1 ? 0 : -EINVAL);
	}
}

static void names_at_their_edges(void **state)
{
	char name[80];

	(void)state;
	memset(name, 'a', sizeof name);
	name[63] = 0;
	TAKEN(.name = name);
	TAKEN(.run = name);
	name[63] = 'a';
	name[64] = 0;
	REFUSED("name", .name = name);
	REFUSED("run", .run = name);
	TAKEN(.name = "0");
	TAKEN(.name = "a.b_c-d..");
	for (int c = 1; c < 256; c++) { /* every byte in the second place */
		char two[3] = { 'a', (char)c, 0 };
		int ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';

		judge((struct dsec_sandbox_opts){ .name = two }, ok ? 0 : -EINVAL, "name", __LINE__);
		judge((struct dsec_sandbox_opts){ .run = two }, ok ? 0 : -EINVAL, "run", __LINE__);
	}
	for (int c = 1; c < 256; c++) { /* and in the first */
		char one[2] = { (char)c, 0 };
		int ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		judge((struct dsec_sandbox_opts){ .name = one }, ok ? 0 : -EINVAL, "name", __LINE__);
	}
}

static void numbers_at_their_edges(void **state)
{
	(void)state;
	TAKEN(.cpu_millis = 10);
	TAKEN(.cpu_millis = 1000000);
	REFUSED("cpu_millis", .cpu_millis = 9);
	REFUSED("cpu_millis", .cpu_millis = 1000001);
	REFUSED("cpu_millis", .cpu_millis = UINT64_MAX);
	TAKEN(.memory_bytes = 8 << 20);
	REFUSED("memory_bytes", .memory_bytes = (8 << 20) - 1);
	TAKEN(.memory_bytes = INT64_MAX);
	REFUSED("memory_bytes", .memory_bytes = (uint64_t)INT64_MAX + 1);
	TAKEN(.pids = 1);
	TAKEN(.pids = 4194304);
	REFUSED("pids", .pids = 4194305);
	TAKEN(.disk_bytes = 64 << 10);
	REFUSED("disk_bytes", .disk_bytes = (64 << 10) - 1);
	REFUSED("disk_bytes", .disk_bytes = UINT64_MAX);
	TAKEN(.disk_inodes = 32);
	REFUSED("disk_inodes", .disk_inodes = 31);
	TAKEN(.network = DSEC_NETWORK_HOST);
	REFUSED("network", .network = DSEC_NETWORK_HOST + 1);
	REFUSED("network", .network = UINT32_MAX);
	TAKEN(.top = DSEC_TOP_DISK);
	REFUSED("top", .top = DSEC_TOP_DISK + 1);
	judge((struct dsec_sandbox_opts){ .top = DSEC_TOP_DISK, .disk_bytes = 1 << 20 }, -ENOTSUP, "disk_bytes", __LINE__);
	judge((struct dsec_sandbox_opts){ .top = DSEC_TOP_DISK, .disk_inodes = 100 }, -ENOTSUP, "disk_inodes", __LINE__);
	TAKEN(.top = DSEC_TOP_DISK, .disk_inodes = 100, .flags = DSEC_SANDBOX_LIMITS_OPTIONAL);
}

static void paths_users_and_hosts(void **state)
{
	static const char *const users[] = { "", " 0", "0x0", "-1", "1000:abc", "4294967296", "65536", "00", "1:", ":1", "1:2:3", "nobody" };
	static const char *const hosts[] = { "", "a_b", "a b", "a/b", "a\n",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	char *path = malloc(PATH_MAX + 2);

	(void)state;
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
		REFUSED("user", .user = users[i]);
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
		REFUSED("hostname", .hostname = hosts[i]);
	TAKEN(.user = "0");
	TAKEN(.user = "65535:65535");
	TAKEN(.hostname = "A-9.example");
	TAKEN(.workdir = "/");
	REFUSED("workdir", .workdir = "");
	REFUSED("workdir", .workdir = "tmp");
	REFUSED("workdir", .workdir = "/proc");
	REFUSED("workdir", .workdir = "/proc/self/fd/3");
	TAKEN(.workdir = "/processes");
	REFUSED("image", .image = "");
	REFUSED("image", .image = "hosts");
	REFUSED("image", .image = "./host");
	REFUSED("image", .image = "/a/../b");
	TAKEN(.image = "/a..b/..c");
	assert_non_null(path);
	memset(path, 'p', PATH_MAX);
	path[0] = '/';
	path[PATH_MAX] = 0;
	REFUSED("image", .image = path);
	REFUSED("workdir", .workdir = path);
	free(path);
}

static void environments(void **state)
{
	const char **many = calloc(4099, sizeof *many);
	const char *good[] = { "A=", "B=x=y", "C=two\nlines", NULL }, *bad[] = { "A=1", "=x", NULL }, *none[] = { "", NULL };

	(void)state;
	TAKEN(.env = good);
	REFUSED("env", .env = bad);
	REFUSED("env", .env = none);
	assert_non_null(many);
	for (int i = 0; i < 4097; i++)
		many[i] = "A=1";
	REFUSED("env", .env = many);
	many[4096] = NULL;
	TAKEN(.env = many);
	free(many);
}

static void exec_fields_at_their_edges(void **state)
{
	const char *argv[] = { "x", NULL }, *two[] = { "x", "y", NULL }, *empty[] = { NULL }, *bad_env[] = { "novalue", NULL };
	struct dsec_exec_opts got;
	struct dsec_error e;

	(void)state;
#define EXEC(expect, field, words, ...)                                                                  \
	do {                                                                                             \
		struct dsec_exec_opts o_ = { .sz = sizeof o_, __VA_ARGS__ };                             \
		memset(&e, 0, sizeof e);                                                                 \
		assert_int_equal(dsec__exec_opts_check(&got, words, &o_, &e), expect);                   \
		if ((expect) < 0) {                                                                      \
			assert_int_equal(strncmp(e.text, field, strlen(field)), 0);                      \
			assert_int_equal(e.step, DSEC_STEP_OPTIONS);                                     \
		}                                                                                        \
	} while (0)
	EXEC(-EINVAL, "argv", empty, .flags = 0);
	EXEC(-EINVAL, "argv", NULL, .flags = 0);
	EXEC(-EINVAL, "argv", two, .kind = DSEC_EXEC_FILE_WRITE);
	EXEC(0, "", argv, .kind = DSEC_EXEC_FILE_READ);
	EXEC(-EINVAL, "kind", argv, .kind = DSEC_EXEC_FILE_WRITE + 1);
	EXEC(-EINVAL, "flags", argv, .kind = DSEC_EXEC_FILE_READ, .flags = DSEC_EXEC_TTY);
	EXEC(0, "", argv, .mode = 07777);
	EXEC(-EINVAL, "mode", argv, .mode = 010000);
	EXEC(-EINVAL, "stdin_data", argv, .stdin_len = 1);
	EXEC(0, "", argv, .stdin_data = "", .stdin_len = 0);
	EXEC(0, "", argv, .timeout_ms = INT64_MAX / 2);
	EXEC(-EINVAL, "timeout_ms", argv, .timeout_ms = INT64_MAX / 2 + 1ull);
	EXEC(0, "", argv, .output_limit = 1ull << 40);
	EXEC(-EINVAL, "output_limit", argv, .output_limit = (1ull << 40) + 1);
	EXEC(-EINVAL, "reserved", argv, .reserved = 1);
	EXEC(-EINVAL, "env", argv, .env = bad_env);
	EXEC(-EINVAL, "workdir", argv, .workdir = "");
	EXEC(-EINVAL, "user", argv, .user = "");
	EXEC(0, "", argv, .flags = DSEC_EXEC_TTY);
	assert_int_equal(dsec__exec_opts_check(&got, argv, NULL, &e), 0);
	assert_int_equal(got.sz, sizeof got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_is_judged_by_the_rule),
		cmocka_unit_test(a_newer_callers_field_is_refused_wherever_it_is),
		cmocka_unit_test(what_an_older_caller_does_not_know_is_default),
		cmocka_unit_test(unknown_flags_are_refused_one_by_one),
		cmocka_unit_test(names_at_their_edges),
		cmocka_unit_test(numbers_at_their_edges),
		cmocka_unit_test(paths_users_and_hosts),
		cmocka_unit_test(environments),
		cmocka_unit_test(exec_fields_at_their_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
