/* SPDX-License-Identifier: MIT */
/* The encoding: what is put is got, and bytes that are none are refused, whatever they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/spec.h"
#include "util/wire.h"

static void what_is_put_is_got(void **state)
{
	const char *const v[] = { "a", "", "ccc", NULL };
	struct dsec__buf b = { 0 };
	struct dsec__reader r;
	const uint8_t *bytes;
	size_t n;
	char **got;

	(void)state;
	dsec__put_u16(&b, 0xabcd);
	dsec__put_u32(&b, 0xdeadbeef);
	dsec__put_u64(&b, UINT64_MAX - 1);
	dsec__put_str(&b, NULL);
	dsec__put_str(&b, "");
	dsec__put_str(&b, "text");
	dsec__put_bytes(&b, "\0\1", 2);
	dsec__put_strv(&b, v);
	assert_false(b.failed);
	r = (struct dsec__reader){ .p = b.data, .left = b.len };
	assert_int_equal(dsec__get_u16(&r), 0xabcd);
	assert_int_equal(dsec__get_u32(&r), 0xdeadbeef);
	assert_true(dsec__get_u64(&r) == UINT64_MAX - 1);
	assert_null(dsec__get_str(&r));
	assert_string_equal(dsec__get_str(&r), "");
	assert_string_equal(dsec__get_str(&r), "text");
	bytes = dsec__get_bytes(&r, &n);
	assert_int_equal(n, 2);
	assert_memory_equal(bytes, "\0\1", 2);
	got = dsec__get_strv(&r);
	assert_string_equal(got[0], "a");
	assert_string_equal(got[1], "");
	assert_string_equal(got[2], "ccc");
	assert_null(got[3]);
	assert_false(r.bad);
	assert_int_equal(r.left, 0);
	free(got);
	dsec__buf_done(&b);
}

static void encode_spec(struct dsec__buf *b)
{
	char *env[] = { "A=1", "B=2", NULL };
	struct dsec__spec s = { .id = "dsec-abcdefghijklmnopqrst", .backend = "container", .image = "host", .name = "n",
				.hostname = "h", .workdir = "/root", .env = env, .memory_bytes = 1u << 30 };

	dsec__spec_encode(b, &s);
}

static void a_spec_cut_anywhere_is_refused(void **state)
{
	struct dsec__buf b = { 0 };
	struct dsec__spec s;

	(void)state;
	encode_spec(&b);
	assert_int_equal(dsec__spec_decode(&s, b.data, b.len), 0);
	assert_string_equal(s.env[1], "B=2");
	dsec__spec_done(&s);
	for (size_t n = 0; n < b.len; n++) {
		uint8_t *copy = malloc(n + 1); /* of this size, so that a read past the end is one past the memory */

		memcpy(copy, b.data, n);
		assert_int_equal(dsec__spec_decode(&s, copy, n), -EBADMSG);
		free(copy);
	}
	dsec__buf_done(&b);
}

static void a_spec_with_any_bit_flipped_is_decoded_or_refused(void **state)
{
	struct dsec__buf b = { 0 };
	struct dsec__spec s;
	size_t refused = 0;

	(void)state;
	encode_spec(&b);
	for (size_t bit = 0; bit < b.len * 8; bit++) {
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (dsec__spec_decode(&s, b.data, b.len) == 0)
			dsec__spec_done(&s);
		else
			refused++;
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(refused > 100);
	dsec__buf_done(&b);
}

static void random_bytes_are_no_request(void **state)
{
	unsigned int seed = 20260101;
	uint8_t noise[300];
	struct dsec__request q;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t n = (size_t)rand_r(&seed) % sizeof noise;

		for (size_t k = 0; k < n; k++)
			noise[k] = (uint8_t)(rand_r(&seed) % (i % 2 ? 256 : 4));
		if (dsec__request_decode(&q, noise, n) == 0)
			dsec__request_done(&q);
	}
}

static void a_length_does_not_make_us_allocate(void **state)
{
	struct dsec__buf b = { 0 };
	struct dsec__reader r;

	(void)state;
	dsec__put_u32(&b, 0x7fffffff);
	r = (struct dsec__reader){ .p = b.data, .left = b.len };
	assert_null(dsec__get_strv(&r));
	assert_true(r.bad);
	dsec__buf_done(&b);
}

static void users_are_exact_or_refused(void **state)
{
	static const char *const bad[] = { "", " 0", "0x0", "-1", "1000:abc", "4294967296", "65536", "00", "1:", ":1", "1:2:3",
					   "+1", "nobody", "0 ", "1000:-1", "roott" };
	uint32_t uid = 7, gid = 7;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(dsec__user_parse(bad[i], &uid, &gid), -EINVAL);
	assert_int_equal(uid, 7);
	assert_int_equal(dsec__user_parse("root", &uid, &gid), 0);
	assert_int_equal(uid + gid, 0);
	assert_int_equal(dsec__user_parse("65535", &uid, &gid), 0);
	assert_int_equal(uid, 65535);
	assert_int_equal(gid, 65535);
	assert_int_equal(dsec__user_parse("0:5", &uid, &gid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 5);
}

static void shapes_differ_by_what_cannot_be_set_later(void **state)
{
	char *one[] = { "A=1", NULL }, *two[] = { "A=1", "B=2", NULL };
	struct dsec__spec a = { .backend = "container", .image = "host", .hostname = "h", .workdir = "/", .env = one };
	struct dsec__spec b = a;

	(void)state;
	b.name = "n";
	b.id = "other";
	assert_true(dsec__spec_same_shape(&a, &b));
	b.env = two;
	assert_false(dsec__spec_same_shape(&a, &b));
	assert_false(dsec__spec_same_shape(&b, &a));
	b = a;
	b.memory_bytes = 1 << 30;
	assert_false(dsec__spec_same_shape(&a, &b)); /* needs a group that the other lacks */
	a.memory_bytes = 1 << 29;
	assert_true(dsec__spec_same_shape(&a, &b));
	b.image = "/x";
	assert_false(dsec__spec_same_shape(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_got),
		cmocka_unit_test(a_spec_cut_anywhere_is_refused),
		cmocka_unit_test(a_spec_with_any_bit_flipped_is_decoded_or_refused),
		cmocka_unit_test(random_bytes_are_no_request),
		cmocka_unit_test(a_length_does_not_make_us_allocate),
		cmocka_unit_test(users_are_exact_or_refused),
		cmocka_unit_test(shapes_differ_by_what_cannot_be_set_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
