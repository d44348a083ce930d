/* SPDX-License-Identifier: MIT */
/* Files in and out of a sandbox, and paths that try to lead elsewhere. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void what_is_written_is_read(void **state)
{
	struct live *l = *state;
	static const char *const names[] = { "/root/plain", "/root/with space", "/root/new\nline", "/root/\377\376",
					     "/root/a/b/c/deep", "relative/to/workdir" };
	struct dsec_error err;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		static const char data[] = "a\0b\377\n";
		void *back;
		size_t n;

		OK(dsec_sandbox_write(l->sb, names[i], data, sizeof data, 0, &err));
		OK(dsec_sandbox_read(l->sb, names[i], &back, &n, &err));
		assert_int_equal(n, sizeof data);
		assert_memory_equal(back, data, n);
		free(back);
	}
	SAYS(l->sb, "cat relative/to/workdir | wc -c", "6\n");
}

static void an_empty_file_and_a_long_name(void **state)
{
	struct live *l = *state;
	char name[5 + 257] = "/tmp/";
	struct dsec_error err;
	void *back;
	size_t n;

	OK(dsec_sandbox_write(l->sb, "/tmp/empty", NULL, 0, 0, &err));
	OK(dsec_sandbox_read(l->sb, "/tmp/empty", &back, &n, &err));
	assert_int_equal(n, 0);
	free(back);
	memset(name + 5, 'n', 255);
	OK(dsec_sandbox_write(l->sb, name, "x", 1, 0, &err));
	name[5 + 255] = 'n';
	FAILS(dsec_sandbox_write(l->sb, name, "x", 1, 0, &err), -ENAMETOOLONG, DSEC_STEP_FILE);
}

static void modes_are_of_new_files_only(void **state)
{
	struct live *l = *state;
	struct dsec_error err;

	OK(dsec_sandbox_write(l->sb, "/root/new", "long contents", 13, 0, &err));
	OK(dsec_sandbox_write(l->sb, "/root/tool", "#!/bin/sh\necho ran\n", 19, 0755, &err));
	SAYS(l->sb, "chmod 600 new; stat -c %a new tool; ./tool", "600\n755\nran\n");
	OK(dsec_sandbox_write(l->sb, "/root/new", "short", 5, 0644, &err));
	SAYS(l->sb, "stat -c %a new; cat new", "600\nshort");
}

static void each_failure_has_its_error(void **state)
{
	struct live *l = *state;
	struct dsec_error err;
	void *back;
	size_t n;

	FAILS(dsec_sandbox_read(l->sb, "/root/none", &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "/root", &back, &n, &err), -EISDIR, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "/root", "x", 1, 0, &err), -EISDIR, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "/proc/sys/kernel/hostname", "x", 1, 0, &err), -EROFS, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "", &back, &n, &err), -EINVAL, DSEC_STEP_OPTIONS);
	SAYS(l->sb, "mkfifo /tmp/fifo; echo made", "made\n");
	FAILS(dsec_sandbox_read(l->sb, "/tmp/fifo", &back, &n, &err), -EINVAL, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "/tmp/fifo", "x", 1, 0, &err), -EINVAL, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "/dev/zero", &back, &n, &err), -EINVAL, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "/proc/self/root/etc/passwd", &back, &n, &err), -ELOOP, DSEC_STEP_FILE);
}

static void links_and_dots_stay_inside(void **state)
{
	struct live *l = *state;
	char secret[300], line[1000];
	struct dsec_error err;
	void *back;
	size_t n;
	FILE *f;

	(void)snprintf(secret, sizeof secret, "%s.secret", getenv("DSEC_ROOT"));
	f = fopen(secret, "w");
	assert_non_null(f);
	(void)fputs("host", f);
	(void)fclose(f);
	(void)snprintf(line, sizeof line, "ln -s %s /root/link; ln -s ../../../../../..%s /root/up; echo ok", secret, secret);
	SAYS(l->sb, line, "ok\n");
	FAILS(dsec_sandbox_read(l->sb, "/root/link", &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "/root/up", &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	(void)snprintf(line, sizeof line, "/root/../../../../../..%s", secret);
	FAILS(dsec_sandbox_read(l->sb, line, &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	OK(dsec_sandbox_write(l->sb, line, "sandbox", 7, 0, &err)); /* makes it inside */
	f = fopen(secret, "r");
	assert_int_equal(fgetc(f), 'h');
	(void)fclose(f);
}

static void put_and_get_keep_bytes_and_mode(void **state)
{
	struct live *l = *state;
	char from[300], to[300], cmd[1400];
	struct dsec_error err;
	struct stat st;

	(void)snprintf(from, sizeof from, "%s.from", getenv("DSEC_ROOT"));
	(void)snprintf(to, sizeof to, "%s.to", getenv("DSEC_ROOT"));
	(void)snprintf(cmd, sizeof cmd, "head -c 20000001 /dev/urandom > %s && chmod 750 %s", from, from);
	assert_int_equal(system(cmd), 0);
	OK(dsec_sandbox_put(l->sb, from, "/root/there", &err));
	SAYS(l->sb, "stat -c '%a %s' there", "750 20000001\n");
	OK(dsec_sandbox_get(l->sb, "/root/there", to, &err));
	(void)snprintf(cmd, sizeof cmd, "cmp %s %s", from, to);
	assert_int_equal(system(cmd), 0);
	/* A failed get leaves neither a part nor the former file changed. */
	FAILS(dsec_sandbox_get(l->sb, "/root/none", to, &err), -ENOENT, DSEC_STEP_FILE);
	assert_int_equal(stat(to, &st), 0);
	assert_int_equal(st.st_size, 20000001);
	FAILS(dsec_sandbox_put(l->sb, "/no/such", "/root/x", &err), -ENOENT, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_put(l->sb, "/tmp", "/root/x", &err), -EISDIR, DSEC_STEP_FILE);
}

static void a_full_disk_is_told(void **state)
{
	struct live *l = *state;
	DSEC_INIT(struct dsec_sandbox_opts, o, .disk_bytes = 5 << 20);
	char *big = calloc(1, 10 << 20);
	struct dsec_error err;

	OK(dsec_sandbox_create(l->node, &o, &l->sb, &err));
	FAILS(dsec_sandbox_write(l->sb, "/root/big", big, 10 << 20, 0, &err), -ENOSPC, DSEC_STEP_FILE);
	SAYS(l->sb, "rm big; echo usable", "usable\n");
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE(what_is_written_is_read),
		LIVE(an_empty_file_and_a_long_name),
		LIVE(modes_are_of_new_files_only),
		LIVE(each_failure_has_its_error),
		LIVE(links_and_dots_stay_inside),
		LIVE(put_and_get_keep_bytes_and_mode),
		LIVE_NODE(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
