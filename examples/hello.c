/* SPDX-License-Identifier: MIT */
/* The smallest use of dsec: one sandbox, one file, one command. Build: cc hello.c -ldsec */
#include <dsec/dsec.h>

#include <stdio.h>
#include <string.h>

static int fail(const struct dsec_error *err)
{
	fprintf(stderr, "hello: %s: %s: %s\n", dsec_step_name(err->step), err->text, strerror(-err->code));
	return 1;
}

int main(void)
{
	static const char program[] = "print(6 * 7)\n";
	const char *const argv[] = { "/usr/bin/python3", "/root/answer.py", NULL };
	struct dsec_error err;
	struct dsec_node *node;
	struct dsec_sandbox *sandbox;
	DSEC_INIT(struct dsec_exec_opts, opts, .timeout_ms = 10000);
	struct dsec_result result = { .sz = sizeof result };

	if (dsec_node_open(&node, NULL, &err) < 0) /* this machine: no daemon, nothing to install */
		return fail(&err);
	if (dsec_sandbox_create(node, NULL, &sandbox, &err) < 0) /* NULL: a container over this machine's files */
		return fail(&err);
	if (dsec_sandbox_write(sandbox, "/root/answer.py", program, strlen(program), 0, &err) < 0)
		return fail(&err);
	if (dsec_sandbox_exec(sandbox, argv, &opts, &result, &err) < 0)
		return fail(&err);
	printf("exit code %d, said: %s", result.exit_code, result.stdout_data);
	dsec_result_clear(&result);
	dsec_sandbox_close(sandbox); /* the sandbox ends with its creator's handle */
	dsec_node_close(node);
	return 0;
}
