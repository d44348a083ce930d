/* SPDX-License-Identifier: MIT */
/* What live tests share: a node and a sandbox around each test, with a leak check after it, and short forms of calls. */
#ifndef TESTS_LIVE_H
#define TESTS_LIVE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dsec/dsec.h>

#include "leak.h"

struct live {
	struct dsec_node *node;
	struct dsec_sandbox *sb;
	struct leak before;
};

int live_group_setup(void **state);
int live_group_teardown(void **state);
/* A node; a node and a sandbox. The teardown stops, closes and fails the test when anything is left. */
int live_node_setup(void **state);
int live_sandbox_setup(void **state);
int live_teardown(void **state);

#define LIVE_NODE(fn) cmocka_unit_test_setup_teardown(fn, live_node_setup, live_teardown)
#define LIVE(fn) cmocka_unit_test_setup_teardown(fn, live_sandbox_setup, live_teardown)

/* A call that must succeed; says the error if it does not. */
#define OK(call) ok_((call), &err, #call, __FILE__, __LINE__)
void ok_(int64_t r, const struct dsec_error *err, const char *call, const char *file, int line);
/* A call that must fail so. */
#define FAILS(call, code, stp) fails_((call), (code), (stp), &err, #call, __FILE__, __LINE__)
void fails_(int64_t r, int code, uint32_t step, const struct dsec_error *err, const char *call, const char *file, int line);

/* Runs a shell line; the result is the caller's to clear. */
struct dsec_result sh(struct dsec_sandbox *sb, const char *line, const struct dsec_exec_opts *opts);
/* Runs a shell line that must exit with 0, and compares its stdout. */
#define SAYS(sb, line, text) says_(sb, line, text, __FILE__, __LINE__)
void says_(struct dsec_sandbox *sb, const char *line, const char *text, const char *file, int line_number);
/* Milliseconds of CLOCK_MONOTONIC. */
double now_ms(void);
/* A skip with its reason, which the runner prints and counts. */
#define SKIP(reason)                                       \
	do {                                               \
		print_message("skipped: %s: %s\n", __func__, reason); \
		skip();                                    \
	} while (0)

#endif
