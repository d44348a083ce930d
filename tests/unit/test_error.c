/* SPDX-License-Identifier: MIT */
/* Errors: filled once, kept whole, cut where they must be, in one line; and the log slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <dsec/dsec.h>

#include "util/error.h"

static void the_structure_is_frozen(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct dsec_error), 256);
	assert_int_equal(offsetof(struct dsec_error, code), 0);
	assert_int_equal(offsetof(struct dsec_error, step), 4);
	assert_int_equal(offsetof(struct dsec_error, flags), 8);
	assert_int_equal(offsetof(struct dsec_error, text), 12);
}

static void every_step_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= DSEC_STEP_MEMORY; i++) {
		const char *name = dsec_step_name(i);

		assert_string_not_equal(name, "unknown");
		for (const char *p = name; *p; p++)
			assert_true(islower((unsigned char)*p));
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(name, dsec_step_name(k));
	}
	assert_string_equal(dsec_step_name(DSEC_STEP_MEMORY + 1), "unknown");
	assert_string_equal(dsec_step_name(UINT32_MAX), "unknown");
}

static void a_failure_fills_all_and_keeps_errno(void **state)
{
	struct dsec_error e;

	(void)state;
	memset(&e, 0xff, sizeof e);
	errno = 7;
	assert_int_equal(dsec__fail(&e, -ENOENT, DSEC_STEP_MOUNT, "mount \"%s\"", "/proc"), -ENOENT);
	assert_int_equal(errno, 7);
	assert_int_equal(e.code, -ENOENT);
	assert_int_equal(e.step, DSEC_STEP_MOUNT);
	assert_int_equal(e.flags, 0);
	assert_string_equal(e.text, "mount \"/proc\"");
	assert_int_equal(dsec__fail_retry(&e, -EAGAIN, DSEC_STEP_IDS, "none"), -EAGAIN);
	assert_int_equal(e.flags, DSEC_ERROR_RETRY);
	assert_int_equal(dsec__wrap(&e, -EAGAIN, "sandbox \"%s\"", "x"), -EAGAIN);
	assert_string_equal(e.text, "sandbox \"x\": none");
	assert_int_equal(e.flags, DSEC_ERROR_RETRY);
	assert_int_equal(e.step, DSEC_STEP_IDS);
	assert_int_equal(dsec__fail(&e, -EIO, DSEC_STEP_FILE, "other"), -EIO);
	assert_int_equal(e.flags, 0); /* a former retry does not stay */
}

static void nobody_has_to_ask(void **state)
{
	(void)state;
	assert_int_equal(dsec__fail(NULL, -EIO, DSEC_STEP_EXEC, "%s", "x"), -EIO);
	assert_int_equal(dsec__fail_retry(NULL, -EIO, DSEC_STEP_EXEC, "%s", "x"), -EIO);
	assert_int_equal(dsec__wrap(NULL, -EIO, "%s", "x"), -EIO);
}

/* At every length around the room that there is: ends with NUL, and the text after the structure is not touched. */
static void long_texts_are_cut_inside(void **state)
{
	struct {
		struct dsec_error e;
		char guard[8];
	} x;
	char text[520], outer[520];

	(void)state;
	memset(text, 'a', sizeof text);
	memset(outer, 'b', sizeof outer);
	for (size_t n = 0; n < 500; n++) {
		memset(&x, 0x5a, sizeof x);
		text[n] = 0;
		(void)dsec__fail(&x.e, -EIO, DSEC_STEP_EXEC, "%s", text);
		assert_int_equal(strlen(x.e.text), n < 243 ? n : 243);
		for (size_t k = 0; k < 500; k += 7) {
			outer[k] = 0;
			(void)dsec__fail(&x.e, -EIO, DSEC_STEP_EXEC, "%s", text);
			(void)dsec__wrap(&x.e, -EIO, "%s", outer);
			outer[k] = 'b';
			assert_true(strlen(x.e.text) <= 243);
			assert_non_null(strstr(x.e.text, ": "));
			if (k + 2 + n <= 243)
				assert_int_equal(strlen(x.e.text), k + 2 + n);
		}
		for (size_t i = 0; i < sizeof x.guard; i++)
			assert_int_equal(x.guard[i], 0x5a);
		text[n] = 'a';
	}
}

static void a_text_stays_one_line(void **state)
{
	struct dsec_error e;

	(void)state;
	(void)dsec__fail(&e, -EIO, DSEC_STEP_FILE, "open \"%s\"", "a\nb\rc\033[1m");
	for (const char *p = e.text; *p; p++)
		assert_false(iscntrl((unsigned char)*p));
	(void)dsec__wrap(&e, -EIO, "\"%s\"", "x\ny");
	for (const char *p = e.text; *p; p++)
		assert_false(iscntrl((unsigned char)*p));
}

static int lines;
static char last[600];

static void on_line(uint32_t level, const char *line, void *data)
{
	lines++;
	assert_int_equal(level, DSEC_LOG_WARNING);
	assert_string_equal(data, "data");
	(void)strncpy(last, line, sizeof last - 1);
	errno = 99; /* a callback may do as it likes */
}

static void the_log_is_silent_until_set_and_after(void **state)
{
	char big[2000];

	(void)state;
	dsec__log(DSEC_LOG_WARNING, "%s", "into nothing");
	dsec_log_set(on_line, (void *)(uintptr_t)"data");
	errno = 3;
	dsec__log(DSEC_LOG_WARNING, "number %d", 5);
	assert_int_equal(errno, 3);
	assert_int_equal(lines, 1);
	assert_string_equal(last, "number 5");
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	dsec__log(DSEC_LOG_WARNING, "%s", big);
	assert_int_equal(lines, 2);
	dsec_log_set(NULL, NULL);
	dsec__log(DSEC_LOG_WARNING, "%s", "into nothing");
	assert_int_equal(lines, 2);
}

static void the_version_is_the_headers(void **state)
{
	(void)state;
	assert_string_equal(dsec_version(), DSEC_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_structure_is_frozen),
		cmocka_unit_test(every_step_has_a_name_of_its_own),
		cmocka_unit_test(a_failure_fills_all_and_keeps_errno),
		cmocka_unit_test(nobody_has_to_ask),
		cmocka_unit_test(long_texts_are_cut_inside),
		cmocka_unit_test(a_text_stays_one_line),
		cmocka_unit_test(the_log_is_silent_until_set_and_after),
		cmocka_unit_test(the_version_is_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
