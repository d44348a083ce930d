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

static void a_request_comes_back_and_cut_anywhere_is_refused(void **state)
{
	char *argv[] = { "cmd", "", "a b\n", NULL }, *env[] = { "A=1", NULL };
	struct dsec__request q = { .kind = 1, .mode = 0755, .flags = 1ull << 40, .timeout_ms = UINT64_MAX, .output_limit = 3,
				   .uid = UINT32_MAX, .gid = 7, .rows = 65535, .cols = 1, .argv = argv, .env = env,
				   .input = (const uint8_t *)"\0\377", .input_len = 2 };
	struct dsec__buf b = { 0 };
	struct dsec__request got;

	(void)state;
	dsec__request_encode(&b, &q);
	assert_int_equal(dsec__request_decode(&got, b.data, b.len), 0);
	assert_int_equal(got.mode, 0755);
	assert_true(got.flags == q.flags && got.timeout_ms == UINT64_MAX && got.output_limit == 3);
	assert_true(got.uid == UINT32_MAX && got.gid == 7 && got.rows == 65535 && got.cols == 1);
	assert_null(got.workdir);
	assert_string_equal(got.argv[2], "a b\n");
	assert_null(got.argv[3]);
	assert_string_equal(got.env[0], "A=1");
	assert_int_equal(got.input_len, 2);
	assert_memory_equal(got.input, "\0\377", 2);
	dsec__request_done(&got);
	dsec__request_done(&got); /* twice is allowed */
	for (size_t n = 0; n <= b.len + 1; n++) {
		uint8_t *copy = calloc(1, n + 1);

		memcpy(copy, b.data, n < b.len ? n : b.len);
		if (n != b.len)
			assert_int_equal(dsec__request_decode(&got, copy, n), -EBADMSG); /* one byte too many too */
		free(copy);
	}
	dsec__buf_done(&b);
	argv[0] = NULL; /* no command is no request */
	dsec__request_encode(&b, &q);
	assert_int_equal(dsec__request_decode(&got, b.data, b.len), -EBADMSG);
	dsec__buf_done(&b);
}

static void the_encoding_is_little_endian_and_fixed(void **state)
{
	static const uint8_t want[] = { 0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0x07,
					0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 'x', 0, 0, 0, 0, 0 };
	struct dsec__buf b = { 0 };

	(void)state;
	dsec__put_u16(&b, 0x0102);
	dsec__put_u32(&b, 0x03040506);
	dsec__put_u64(&b, 0x0708090a0b0c0d0e);
	dsec__put_str(&b, NULL);
	dsec__put_str(&b, "x");
	dsec__put_strv(&b, NULL);
	assert_int_equal(b.len, sizeof want);
	assert_memory_equal(b.data, want, sizeof want);
	dsec__buf_done(&b);
}

static void strings_that_are_none_are_bad_and_stay_bad(void **state)
{
	static const struct {
		uint8_t bytes[9];
		size_t n;
	} cases[] = {
		{ { 0, 0, 0, 0 }, 4 },                         /* without its NUL */
		{ { 2, 0, 0, 0, 'a', 'b' }, 6 },               /* the same */
		{ { 3, 0, 0, 0, 'a', 0, 0 }, 7 },              /* a NUL inside */
		{ { 2, 0, 0, 0, 'a' }, 5 },                    /* cut */
		{ { 0xfe, 0xff, 0xff, 0xff, 'a', 0 }, 6 },     /* longer than there is */
		{ { 1, 0, 0 }, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct dsec__reader r = { .p = cases[i].bytes, .left = cases[i].n };
		size_t n = 99;

		assert_null(dsec__get_str(&r));
		assert_true(r.bad);
		assert_int_equal(dsec__get_u16(&r) + dsec__get_u32(&r) + dsec__get_u64(&r), 0);
		assert_null(dsec__get_bytes(&r, &n));
		assert_int_equal(n, 0);
		assert_null(dsec__get_strv(&r));
	}
}

static void a_buffer_that_failed_stays_failed_and_keeps_its_bytes(void **state)
{
	struct dsec__buf b = { 0 };

	(void)state;
	for (int i = 0; i < 3000; i++)
		dsec__buf_put(&b, &(uint8_t){ (uint8_t)i }, 1);
	dsec__buf_drop_front(&b, 1000);
	assert_int_equal(b.len, 2000);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(b.data[i], (uint8_t)(i + 1000));
	assert_null(dsec__buf_reserve(&b, SIZE_MAX - 10)); /* no overflow, no memory */
	assert_true(b.failed);
	dsec__buf_put(&b, "x", 1);
	dsec__put_str(&b, "x");
	assert_int_equal(b.len, 2000);
	assert_null(dsec__buf_reserve(&b, 1));
	dsec__buf_drop_front(&b, 5000); /* more than there is */
	assert_int_equal(b.len, 0);
	dsec__buf_done(&b);
	assert_false(b.failed);
	dsec__buf_done(&b);
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
		cmocka_unit_test(a_request_comes_back_and_cut_anywhere_is_refused),
		cmocka_unit_test(the_encoding_is_little_endian_and_fixed),
		cmocka_unit_test(strings_that_are_none_are_bad_and_stay_bad),
		cmocka_unit_test(a_buffer_that_failed_stays_failed_and_keeps_its_bytes),
		cmocka_unit_test(shapes_differ_by_what_cannot_be_set_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
