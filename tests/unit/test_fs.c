/* SPDX-License-Identifier: MIT */
/* Removing trees that sandboxes made: deep ones, ones that their owner cannot write to, with few descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"

static char top[] = "/tmp/dsec-test-fs-XXXXXX";
static int top_fd = -EBADF;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chmod(top, 0777) < 0)
		return -1;
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)close(top_fd);
	return rmdir(top); /* fails when a test left something */
}

/* `levels` directories inside each other, a file in each. */
static void make_deep(const char *name, int levels)
{
	int at = fcntl(top_fd, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < levels; i++) {
		const char *dir = i ? "d" : name;
		int next, file;

		assert_int_equal(mkdirat(at, dir, 0755), 0);
		next = openat(at, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		file = openat(next, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(next >= 0 && file >= 0);
		(void)close(file);
		(void)close(at);
		at = next;
	}
	(void)close(at);
}

static void a_tree_deeper_than_there_are_descriptors_goes(void **state)
{
	struct rlimit own, few;

	(void)state;
	make_deep("deep", 3000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	few = (struct rlimit){ 100, own.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(dsec__remove_tree(top_fd, "deep"), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
	assert_int_equal(faccessat(top_fd, "deep", F_OK, 0), -1);
}

/* A file of the tree may have the name that a directory is moved up to. */
static void names_in_the_way_are_no_obstacle(void **state)
{
	(void)state;
	make_deep("deep", 200);
	for (int i = 0; i < 10; i++) {
		char name[40];
		int fd;

		(void)snprintf(name, sizeof name, "deep/.deep-%d", i);
		fd = openat(top_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		(void)close(fd);
	}
	assert_int_equal(dsec__remove_tree(top_fd, "deep"), 0);
}

/* Root can do all that anyway: as another user. */
static void directories_that_their_owner_cannot_write_to_go(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0))
			_exit(2);
		if (mkdirat(top_fd, "a", 0755) < 0 || mkdirat(top_fd, "a/b", 0755) < 0 || mkdirat(top_fd, "a/b/c", 0) < 0 ||
		    symlinkat("/etc", top_fd, "a/b/link") < 0 || fchmodat(top_fd, "a/b", 0555, 0) < 0 ||
		    fchmodat(top_fd, "a", 0555, 0) < 0)
			_exit(3);
		_exit(dsec__remove_tree(top_fd, "a") == 0 ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void what_is_absent_a_file_or_a_link(void **state)
{
	int fd = openat(top_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(dsec__remove_tree(top_fd, "nothing"), 0);
	assert_int_equal(dsec__remove_tree(top_fd, "file/below"), -ENOTDIR);
	assert_int_equal(dsec__remove_tree(top_fd, "file"), 0);
	assert_int_equal(mkdirat(top_fd, "kept", 0755), 0);
	assert_int_equal(symlinkat("kept", top_fd, "link"), 0);
	assert_int_equal(dsec__remove_tree(top_fd, "link"), 0); /* the link, not what it leads to */
	assert_int_equal(faccessat(top_fd, "kept", F_OK, 0), 0);
	assert_int_equal(dsec__remove_tree(top_fd, "kept"), 0);
}

static void a_directory_is_opened_but_not_through_a_link(void **state)
{
	AUTO_CLOSEDIR DIR *dir = dsec__opendirat(top_fd, ".");

	(void)state;
	assert_non_null(dir);
	assert_int_equal(symlinkat("/", top_fd, "link"), 0);
	assert_null(dsec__opendirat(top_fd, "link"));
	assert_int_equal(unlinkat(top_fd, "link", 0), 0);
	assert_null(dsec__opendirat(top_fd, "nothing"));
	assert_int_equal(errno, ENOENT);
}

static void writing_is_whole_or_an_error(void **state)
{
	static char data[300000];
	int pair[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) { /* reads in small pieces, so that writes are short */
		size_t n = 0;
		ssize_t r;

		(void)close(pair[1]);
		while ((r = read(pair[0], data, 1000)) > 0)
			n += (size_t)r;
		_exit(n != sizeof data);
	}
	(void)close(pair[0]);
	assert_int_equal(dsec__write_all(pair[1], data, sizeof data), 0);
	(void)close(pair[1]);
	assert_int_equal(waitpid(pid, (int *)data, 0), pid);
	assert_int_equal(*(int *)data, 0);
	assert_int_equal(dsec__write_all(-1, data, 1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_deeper_than_there_are_descriptors_goes),
		cmocka_unit_test(names_in_the_way_are_no_obstacle),
		cmocka_unit_test(directories_that_their_owner_cannot_write_to_go),
		cmocka_unit_test(what_is_absent_a_file_or_a_link),
		cmocka_unit_test(a_directory_is_opened_but_not_through_a_link),
		cmocka_unit_test(writing_is_whole_or_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
