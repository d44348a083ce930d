/* SPDX-License-Identifier: MIT */
/* Files in and out of a sandbox, and paths that try to lead elsewhere. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static void more_failures_have_their_errors(void **state)
{
	struct live *l = *state;
	char *endless = malloc(6000);
	struct dsec_error err;
	void *back = NULL;
	size_t n = 0;

	SAYS(l->sb, "ln -s loop2 loop1; ln -s loop1 loop2; ln -s /no/such dangling; mkdir d; chmod 0 d; echo s > plain;"
	     "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/root/sock\")'; echo made", "made\n");
	FAILS(dsec_sandbox_read(l->sb, "loop1", &back, &n, &err), -ELOOP, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "loop1", "x", 1, 0, &err), -ELOOP, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "dangling", &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "plain/x", &back, &n, &err), -ENOTDIR, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "plain/x", "x", 1, 0, &err), -ENOTDIR, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_read(l->sb, "sock", &back, &n, &err), -EINVAL, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "/dev/null", "x", 1, 0, &err), -EINVAL, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, "", "x", 1, 0, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_write(l->sb, NULL, "x", 1, 0, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_read(l->sb, NULL, &back, &n, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_write(l->sb, "/root/x", NULL, 5, 0, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_write(l->sb, "/root/x", "x", 1, 0100777, &err), -EINVAL, DSEC_STEP_OPTIONS);
	assert_non_null(endless);
	memset(endless, '/', 5999);
	endless[5999] = 0;
	memset(endless + 1, 'p', 200);
	FAILS(dsec_sandbox_read(l->sb, endless, &back, &n, &err), -ENAMETOOLONG, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_write(l->sb, endless, "x", 1, 0, &err), -ENAMETOOLONG, DSEC_STEP_FILE);
	free(endless);
	assert_null(back); /* outputs are written on success only */
	SAYS(l->sb, "cat plain; [ -e /no/such ] || echo none", "s\nnone\n");
}

static void an_errors_text_is_one_line_whatever_the_path(void **state)
{
	struct live *l = *state;
	const char *argv[] = { "/bin/no\nsuch", NULL };
	struct dsec_result r = { .sz = sizeof r };
	struct dsec_error err;
	void *back;
	size_t n;

	FAILS(dsec_sandbox_read(l->sb, "/root/two\nlines", &back, &n, &err), -ENOENT, DSEC_STEP_FILE);
	assert_null(strchr(err.text, '\n'));
	FAILS(dsec_sandbox_exec(l->sb, argv, NULL, &r, &err), -ENOENT, DSEC_STEP_EXEC);
	assert_null(strchr(err.text, '\n'));
}

/* A process inside swaps a directory for a link out of it as fast as it can while files are written through it. */
static void a_swapped_link_leads_nowhere_else(void **state)
{
	struct live *l = *state;
	static const char swap[] =
		"import os, shutil\n"
		"def quietly(f, *a):\n"
		"    try: f(*a)\n"
		"    except OSError: pass\n"
		"while True:\n"
		"    quietly(os.rename, 'a', 'b')\n"
		"    quietly(os.symlink, os.environ['OUT'], 'a')\n"
		"    quietly(os.unlink, 'a')\n"
		"    if os.path.isdir('a'): shutil.rmtree('a', ignore_errors=True)\n" /* made by a write meanwhile */
		"    quietly(os.rename, 'b', 'a')\n";
	const char *argv[] = { "python3", "-c", swap, NULL };
	char out[300], var[320];
	const char *env[] = { var, NULL };
	DSEC_INIT(struct dsec_exec_opts, o, .env = env, .workdir = "/root");
	struct dsec_error err;
	struct dsec_exec *e;
	int done = 0;

	(void)snprintf(out, sizeof out, "%s.outside", getenv("DSEC_ROOT"));
	(void)snprintf(var, sizeof var, "OUT=%s", out);
	assert_int_equal(mkdir(out, 0777), 0);
	SAYS(l->sb, "mkdir a; echo ok", "ok\n");
	OK(dsec_exec_start(l->sb, argv, &o, &e, &err));
	for (int i = 0; i < 150; i++) {
		void *back;
		size_t n;

		done += dsec_sandbox_write(l->sb, "/root/a/file", "inside", 6, 0666, &err) == 0;
		if (dsec_sandbox_read(l->sb, "/root/a/file", &back, &n, &err) == 0) {
			assert_int_equal(n, 6);
			free(back);
		}
	}
	assert_true(done > 0);
	assert_int_equal(dsec_exec_poll(e, &err), 0); /* it swapped to the end */
	dsec_exec_close(e);
	assert_int_equal(rmdir(out), 0); /* empty: nothing was made there */
}

static void a_large_directory_is_no_obstacle(void **state)
{
	struct live *l = *state;
	struct dsec_error err;
	void *back;
	size_t n;

	SAYS(l->sb, "mkdir many; cd many; python3 -c '\nfor i in range(100000): open(str(i), \"w\").close()'; ls -U | wc -l", "100000\n");
	OK(dsec_sandbox_write(l->sb, "many/one more", "x", 1, 0, &err));
	OK(dsec_sandbox_read(l->sb, "many/one more", &back, &n, &err));
	free(back);
}

/* In a child: what it had at most shows whether a file was held in memory. */
static int large_both_ways(const char *from, const char *to)
{
	struct rusage before, after;
	struct dsec_node *node;
	struct dsec_sandbox *sb;
	struct dsec_error err;
	int bad = dsec_node_open(&node, NULL, &err) < 0 || dsec_sandbox_create(node, NULL, &sb, &err) < 0;

	(void)getrusage(RUSAGE_SELF, &before);
	bad = bad || dsec_sandbox_put(sb, from, "/root/large", &err) < 0 || dsec_sandbox_get(sb, "/root/large", to, &err) < 0;
	(void)getrusage(RUSAGE_SELF, &after);
	if (bad) {
		print_error("[%s] %s\n", dsec_step_name(err.step), err.text);
		return 1;
	}
	bad = dsec_sandbox_stop(sb, 0, &err) < 0;
	dsec_sandbox_close(sb);
	dsec_node_close(node);
	return bad || after.ru_maxrss - before.ru_maxrss > 16 << 10;
}

static void large_files_are_not_held_in_memory(void **state)
{
	char from[300], to[300], cmd[1400];
	int status;
	pid_t pid;

	(void)state;
	(void)snprintf(from, sizeof from, "%s.large", getenv("DSEC_ROOT"));
	(void)snprintf(to, sizeof to, "%s.back", getenv("DSEC_ROOT"));
	(void)snprintf(cmd, sizeof cmd, "yes 'line of a large file' | head -c 400000000 > %s", from);
	assert_int_equal(system(cmd), 0);
	pid = fork();
	if (pid == 0)
		_exit(large_both_ways(from, to));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)snprintf(cmd, sizeof cmd, "cmp %s %s; r=$?; rm -f %s %s; exit $r", from, to, from, to);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(status, 0);
}

static void put_and_get_fail_on_this_machines_side(void **state)
{
	struct live *l = *state;
	char fifo[300], dir[300], file[300];
	struct dsec_error err;
	struct stat st;

	(void)snprintf(fifo, sizeof fifo, "%s.fifo", getenv("DSEC_ROOT"));
	(void)snprintf(dir, sizeof dir, "%s.directory", getenv("DSEC_ROOT"));
	(void)snprintf(file, sizeof file, "%s.directory/new", getenv("DSEC_ROOT"));
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
	OK(dsec_sandbox_write(l->sb, "/root/x", "", 0, 0, &err));
	FAILS(dsec_sandbox_put(l->sb, fifo, "/root/y", &err), -EINVAL, DSEC_STEP_FILE); /* at once: nobody writes to it */
	FAILS(dsec_sandbox_put(l->sb, NULL, "/root/y", &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_get(l->sb, "/root/x", NULL, &err), -EINVAL, DSEC_STEP_OPTIONS);
	FAILS(dsec_sandbox_get(l->sb, "/root/x", "/no/such/place", &err), -ENOENT, DSEC_STEP_FILE);
	assert_non_null(strstr(err.text, "machine"));
	FAILS(dsec_sandbox_get(l->sb, "/root/x", dir, &err), -EISDIR, DSEC_STEP_FILE);
	FAILS(dsec_sandbox_get(l->sb, "/root", file, &err), -EISDIR, DSEC_STEP_FILE);
	OK(dsec_sandbox_get(l->sb, "/root/x", file, &err));
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode & 0111, 0);
	assert_int_equal(system("[ \"$(ls -A $DSEC_ROOT.directory)\" = new ] && rm -r $DSEC_ROOT.directory $DSEC_ROOT.fifo"), 0);
}

static void many_files_at_once(void **state)
{
	struct live *l = *state;
	static char data[20][200000];
	struct dsec_exec *e[20];
	struct dsec_error err;

	for (int i = 0; i < 20; i++) {
		char path[64];
		const char *argv[] = { path, NULL };
		DSEC_INIT(struct dsec_exec_opts, o, .kind = DSEC_EXEC_FILE_WRITE, .stdin_data = data[i],
			  .stdin_len = sizeof data[i]);

		(void)snprintf(path, sizeof path, "/root/at/once/%d", i);
		memset(data[i], 'a' + i, sizeof data[i]);
		OK(dsec_exec_start(l->sb, argv, &o, &e[i], &err));
	}
	for (int i = 19; i >= 0; i--) {
		struct dsec_result r = { .sz = sizeof r };

		OK(dsec_exec_wait(e[i], 10000, &r, &err));
		assert_int_equal(r.exit_code, 0);
		dsec_result_clear(&r);
		dsec_exec_close(e[i]);
	}
	for (int i = 0; i < 20; i++) {
		char path[64];
		void *back;
		size_t n;

		(void)snprintf(path, sizeof path, "/root/at/once/%d", i);
		OK(dsec_sandbox_read(l->sb, path, &back, &n, &err));
		assert_int_equal(n, sizeof data[i]);
		assert_memory_equal(back, data[i], n);
		free(back);
	}
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
		LIVE(more_failures_have_their_errors),
		LIVE(an_errors_text_is_one_line_whatever_the_path),
		LIVE(a_swapped_link_leads_nowhere_else),
		LIVE(a_large_directory_is_no_obstacle),
		LIVE_NODE(large_files_are_not_held_in_memory),
		LIVE(put_and_get_fail_on_this_machines_side),
		LIVE(many_files_at_once),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
