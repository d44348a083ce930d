/* SPDX-License-Identifier: MIT */
/* The leak check itself: each kind of thing that could be left is left on purpose, and must be told by name. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct leak before;

/* Says what is left now, which must name `text`; then `undo` has to make it go. */
static void told(const char *text)
{
	char why[1000];

	assert_false(leak_none(&before, 0, why, sizeof why));
	if (!strstr(why, text))
		fail_msg("\"%s\" is not told: %s", text, why);
	assert_false(leak_none(&before, 30, why, sizeof why)); /* waiting does not hide it */
	if (!strstr(why, text))
		fail_msg("\"%s\" is not told after a wait: %s", text, why);
}

static void gone(void)
{
	char why[1000];

	if (!leak_none(&before, LEAK_WAIT_MS, why, sizeof why))
		fail_msg("still told: %s", why);
}

static int setup(void **state)
{
	(void)state;
	leak_take(&before);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leak_done(&before);
	return 0;
}

static void descriptors_and_mappings(void **state)
{
	int fd = open("/etc/passwd", O_RDONLY), memory;
	void *p;

	(void)state;
	told("-> /etc/passwd");
	(void)close(fd);
	gone();
	memory = memfd_create("left", 0);
	assert_int_equal(ftruncate(memory, 4096), 0);
	told("/memfd:left");
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 0);
	(void)close(memory);
	told("mapping of /memfd:left");
	(void)munmap(p, 4096);
	gone();
}

static void *wait_for_end(void *fd)
{
	char c;

	(void)!read(*(int *)fd, &c, 1);
	return NULL;
}

static void threads_children_and_helpers(void **state)
{
	int hold[2];
	pthread_t t;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(hold), 0);
	leak_done(&before);
	leak_take(&before); /* the pipe is ours */
	assert_int_equal(pthread_create(&t, NULL, wait_for_end, &hold[0]), 0);
	told("thread ");
	(void)!write(hold[1], "x", 1);
	(void)pthread_join(t, NULL);
	gone();
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "dsec-keeper");
		(void)close(hold[1]);
		(void)!read(hold[0], &c, 1);
		_exit(0);
	}
	told("child ");
	(void)!write(hold[1], "x", 1);
	(void)waitpid(pid, NULL, 0);
	gone();
	(void)close(hold[0]);
	(void)close(hold[1]);
}

static void launchers_keepers_and_agents(void **state)
{
	struct dsec_node *node;
	struct dsec_sandbox *sb;
	struct dsec_error err;

	(void)state;
	OK(dsec_node_open(&node, NULL, &err));
	told("dsec-launcher");
	OK(dsec_sandbox_create(node, &(struct dsec_sandbox_opts){ .sz = sizeof(struct dsec_sandbox_opts), .name = "left" }, &sb, &err));
	told("dsec-keeper");
	told("dsec-agent");
	told("/names/left");
	told(dsec_sandbox_id(sb));
	OK(dsec_sandbox_stop(sb, 0, &err));
	dsec_sandbox_close(sb);
	dsec_node_close(node);
	gone();
}

static void groups_mounts_and_shared_memory(void **state)
{
	char root[300], mount_point[320];
	int fd = open("/dev/shm/dsec-left", O_CREAT | O_WRONLY | O_EXCL, 0600);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	told("entry /dev/shm/dsec-left");
	(void)unlink("/dev/shm/dsec-left");
	gone();
	if (geteuid() != 0)
		SKIP("only root can mount and make control groups here");
	(void)snprintf(root, sizeof root, "%s", getenv("DSEC_ROOT"));
	(void)snprintf(mount_point, sizeof mount_point, "%s.mount", root);
	assert_int_equal(mkdir(mount_point, 0700), 0);
	assert_int_equal(mount("none", mount_point, "tmpfs", 0, NULL), 0);
	told(mount_point);
	assert_int_equal(umount(mount_point), 0);
	gone();
	/* The base may be there already; one that is made here goes again. */
	if (system("b=/sys/fs/cgroup/unified; [ -d $b ] || b=/sys/fs/cgroup; mkdir -p $b/dsec/dsec-left") != 0)
		SKIP("no control group can be made here");
	told("/dsec/dsec-left");
	(void)!system("b=/sys/fs/cgroup/unified; [ -d $b ] || b=/sys/fs/cgroup; rmdir $b/dsec/dsec-left; rmdir $b/dsec 2>/dev/null");
	gone();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(descriptors_and_mappings),
		TEST(threads_children_and_helpers),
		TEST(launchers_keepers_and_agents),
		TEST(groups_mounts_and_shared_memory),
	};

	return cmocka_run_group_tests(tests, live_group_setup, live_group_teardown);
}
