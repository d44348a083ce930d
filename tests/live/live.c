/* SPDX-License-Identifier: MIT */
#include "live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int live_group_setup(void **state)
{
	(void)state;
	leak_setup_dirs(program_invocation_name);
	return 0;
}

int live_group_teardown(void **state)
{
	(void)state;
	leak_remove_dirs();
	return 0;
}

int live_node_setup(void **state)
{
	struct live *l = calloc(1, sizeof *l);
	struct dsec_error err;

	leak_take(&l->before);
	*state = l;
	OK(dsec_node_open(&l->node, NULL, &err));
	return 0;
}

int live_sandbox_setup(void **state)
{
	struct live *l;
	struct dsec_error err;

	(void)live_node_setup(state);
	l = *state;
	OK(dsec_sandbox_create(l->node, NULL, &l->sb, &err));
	return 0;
}

int live_teardown(void **state)
{
	struct live *l = *state;
	struct dsec_error err;
	char why[1000];

	if (l->sb)
		OK(dsec_sandbox_stop(l->sb, 0, &err));
	dsec_sandbox_close(l->sb);
	dsec_node_close(l->node);
	if (!leak_none(&l->before, LEAK_WAIT_MS, why, sizeof why))
		fail_msg("left behind: %s", why);
	leak_done(&l->before);
	free(l);
	return 0;
}

void ok_(int64_t r, const struct dsec_error *err, const char *call, const char *file, int line)
{
	if (r >= 0)
		return;
	print_error("%s: %d %s [%s] %s\n", call, (int)r, strerror((int)-r), dsec_step_name(err->step), err->text);
	_fail(file, line);
}

void fails_(int64_t r, int code, uint32_t step, const struct dsec_error *err, const char *call, const char *file, int line)
{
	if (r == code && (r >= 0 || (err->code == code && err->step == step && err->text[0])))
		return;
	print_error("%s: %d, expected %d; [%s] %s, expected step %s\n", call, (int)r, code, dsec_step_name(err->step),
		    err->text, dsec_step_name(step));
	_fail(file, line);
}

struct dsec_result sh(struct dsec_sandbox *sb, const char *line, const struct dsec_exec_opts *opts)
{
	const char *argv[] = { "/bin/sh", "-c", line, NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;

	OK(dsec_sandbox_exec(sb, argv, opts, &r, &err));
	return r;
}

void says_(struct dsec_sandbox *sb, const char *line, const char *text, const char *file, int line_number)
{
	struct dsec_result r = sh(sb, line, NULL);

	if (r.reason != DSEC_REASON_EXITED || r.exit_code != 0 || strcmp(r.stdout_data, text) != 0) {
		print_error("%s: reason %u, code %d, stdout \"%s\", stderr \"%s\", expected \"%s\"\n", line, r.reason,
			    r.exit_code, r.stdout_data, r.stderr_data, text);
		_fail(file, line_number);
	}
	dsec_result_clear(&r);
}

double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
