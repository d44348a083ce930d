/* SPDX-License-Identifier: MIT */
/*
 * Control groups: every test runs on the hierarchies of this machine and, where it has v1 pids, once more with v2
 * hidden, which forces the way of machines without it. Needs a user who may make groups; skipped otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these four first */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "linux/attr.h"
#include "linux/cgroot.h"
#include "linux/cgroup.h"
#include "linux/clone.h"
#include "util/cleanup.h"

static struct dsec__cgroot root;
static bool hide_v2;
static bool hybrid;

static int setup(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	if (dsec__cgroot_open(&root, &err) < 0)
		return -1;
	hybrid = root.fd[DSEC__CG_UNIFIED] >= 0 && root.fd[DSEC__CG_PIDS] >= 0;
	if (hide_v2 && root.fd[DSEC__CG_UNIFIED] >= 0) {
		dsec__closep(&root.fd[DSEC__CG_UNIFIED]);
		(void)rmdir(root.path[DSEC__CG_UNIFIED]);
		root.cpu = root.cpu == DSEC__CG_UNIFIED ? -1 : root.cpu;
		root.memory = root.memory == DSEC__CG_UNIFIED ? -1 : root.memory;
		root.pids = root.pids == DSEC__CG_UNIFIED ? -1 : root.pids;
		root.exec = root.fd[DSEC__CG_PIDS] >= 0 ? DSEC__CG_PIDS : -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dsec__cgroot_close(&root);
	return 0;
}

static const char *unique(void)
{
	static char name[32];
	static int n;

	(void)snprintf(name, sizeof name, "t%d-%d", getpid(), n++);
	return name;
}

static void need(bool has, const char *what)
{
	if (has)
		return;
	print_message("skipped: this machine has no %s\n", what);
	skip();
}

static void make(struct dsec__cgroup *cg, struct dsec__cglimits limits)
{
	struct dsec_error err = { 0 };
	int r = dsec__cgroup_create(cg, &root, unique(), &limits, false, &err);

	if (r < 0)
		print_error("%s (%d)\n", err.text, r);
	assert_int_equal(r, 0);
}

/* How many directories of that name are left. */
static int left(const char *name)
{
	int n = 0;

	for (int i = 0; i < DSEC__CG_MAX; i++)
		n += root.fd[i] >= 0 && faccessat(root.fd[i], name, F_OK, 0) == 0;
	return n;
}

static int count_fds(void)
{
	AUTO_CLOSEDIR DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	return n;
}

static void gone(struct dsec__cgroup *cg)
{
	char name[32];

	(void)strcpy(name, cg->name);
	assert_int_equal(dsec__cgroup_remove(cg, 5000), 0);
	assert_int_equal(left(name), 0);
}

static int64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* A child that waits for ever, in the groups. */
static pid_t sleeper(const struct dsec__cgroup *cg)
{
	struct dsec_error err;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	assert_true(pid > 0);
	assert_int_equal(dsec__cgroup_add(cg, pid, false, &err), 0);
	return pid;
}

static int reaped(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void limits_are_what_was_asked(void **state)
{
	struct dsec__cgroup cg;
	char text[64];

	(void)state;
	need(root.cpu >= 0 && root.memory >= 0 && root.pids >= 0, "hierarchy for all limits");
	make(&cg, (struct dsec__cglimits){ 1500, 64u << 20, 77 });
	assert_true(dsec__attr_read(cg.fd[root.cpu], root.cpu == DSEC__CG_UNIFIED ? "cpu.max" : "cpu.cfs_quota_us",
				    text, sizeof text) > 0);
	assert_int_equal(atoi(text), 150000);
	assert_int_equal(dsec__attr_u64(cg.fd[root.memory], root.memory == DSEC__CG_UNIFIED ? "memory.max" :
											      "memory.limit_in_bytes"),
			 64 << 20);
	assert_int_equal(dsec__attr_u64(cg.fd[root.pids], "pids.max"), 77);
	gone(&cg);
}

static void no_limits_asked_sets_none(void **state)
{
	struct dsec__cgroup cg;
	char text[64];

	(void)state;
	need(root.pids >= 0, "pids limit");
	make(&cg, (struct dsec__cglimits){ 0 });
	if (root.pids != DSEC__CG_UNIFIED && root.exec != root.pids) {
		assert_true(cg.fd[root.pids] < 0); /* a v1 hierarchy without a limit is left alone */
	} else {
		assert_true(dsec__attr_read(cg.fd[root.pids], "pids.max", text, sizeof text) > 0);
		assert_string_equal(text, "max\n");
	}
	gone(&cg);
}

static void limit_without_hierarchy_is_refused_by_name(void **state)
{
	struct dsec__cgroot copy = root;
	struct dsec__cglimits limits = { .memory_bytes = 64u << 20 };
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	const char *name = unique();
	int fds = count_fds();

	(void)state;
	copy.memory = -1;
	assert_int_equal(dsec__cgroup_create(&cg, &copy, name, &limits, false, &err), -ENOTSUP);
	assert_int_equal(err.code, -ENOTSUP);
	assert_int_equal(err.step, DSEC_STEP_CGROUP);
	assert_non_null(strstr(err.text, "memory_bytes"));
	assert_int_equal(left(name), 0);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(dsec__cgroup_create(&cg, &copy, name, &limits, true, &err), 0);
	gone(&cg);
}

static void value_that_the_kernel_refuses_names_field_and_leaves_nothing(void **state)
{
	struct dsec__cglimits limits = { .cpu_millis = 1 }; /* a quota of 0.1 ms: less than the kernel takes */
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	const char *name = unique();

	(void)state;
	need(root.cpu >= 0, "cpu limit");
	assert_int_equal(dsec__cgroup_create(&cg, &root, name, &limits, false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu_millis"));
	assert_int_equal(left(name), 0);
}

static void same_name_twice_is_refused(void **state)
{
	struct dsec__cglimits none = { 0 };
	struct dsec__cgroup cg;
	struct dsec__cgroup other;
	struct dsec_error err = { 0 };

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, none);
	assert_int_equal(dsec__cgroup_create(&other, &root, cg.name, &none, false, &err), -EEXIST);
	assert_true(left(cg.name) > 0); /* the first one's groups are still there */
	gone(&cg);
}

static void add_joins_every_group(void **state)
{
	struct dsec__cgroup cg;
	char text[64];
	pid_t pid;

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	pid = sleeper(&cg);
	for (int i = 0; i < DSEC__CG_MAX; i++)
		if (cg.fd[i] >= 0) {
			assert_true(dsec__attr_read(cg.fd[i], "cgroup.procs", text, sizeof text) > 0);
			assert_int_equal(atoi(text), pid);
		}
	dsec__cgroup_kill(&cg);
	assert_int_equal(reaped(pid), SIGKILL);
	gone(&cg);
}

static void add_of_no_process_fails(void **state)
{
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	assert_int_equal(dsec__cgroup_add(&cg, 0x3fffff, false, &err), -ESRCH);
	assert_int_equal(err.step, DSEC_STEP_CGROUP);
	gone(&cg);
}

/* Forks without end; each child does the same. */
static void bomb(void)
{
	for (;;)
		(void)fork();
}

static void kill_ends_a_fork_bomb_with_its_sessions(void **state)
{
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	int go[2];
	pid_t pid;

	(void)state;
	need(root.pids >= 0, "pids limit");
	make(&cg, (struct dsec__cglimits){ .pids = 50 });
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		if (setsid() < 0 || read(go[0], &c, 1) != 1)
			_exit(1);
		bomb();
	}
	assert_int_equal(dsec__cgroup_add(&cg, pid, false, &err), 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)usleep(50000);
	assert_true(dsec__attr_u64(cg.fd[root.pids], "pids.current") > 10);
	dsec__cgroup_kill(&cg);
	assert_int_equal(reaped(pid), SIGKILL);
	gone(&cg);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void remove_of_a_live_group_waits_and_says_busy(void **state)
{
	struct dsec__cgroup cg;
	char name[32];
	int64_t start = now_us();
	pid_t pid;

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	(void)strcpy(name, cg.name);
	pid = sleeper(&cg);
	assert_int_equal(dsec__cgroup_remove(&cg, 60), -EBUSY);
	assert_true(now_us() - start >= 55000);
	assert_true(now_us() - start < 2000000);
	assert_int_equal(dsec__cgroup_reap(&root, name, 5000), 0);
	assert_int_equal(reaped(pid), SIGKILL);
	assert_int_equal(left(name), 0);
}

static void reap_of_nothing_and_of_odd_names(void **state)
{
	(void)state;
	assert_int_equal(dsec__cgroup_reap(&root, "never-made", 0), 0);
	assert_int_equal(dsec__cgroup_reap(&root, "..", 0), 0);
	assert_int_equal(dsec__cgroup_reap(&root, "", 0), 0);
	assert_int_equal(dsec__cgroup_reap(&root, "../../x", 0), 0);
}

static void reap_takes_command_groups_too(void **state)
{
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	char name[32];
	bool birth;
	int fd;

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	(void)strcpy(name, cg.name);
	for (uint64_t seq = 1; seq < 20; seq++) {
		fd = dsec__cgroup_exec_open(&cg, seq, 0, &birth, &err);
		assert_true(fd >= 0);
		(void)close(fd);
	}
	dsec__cgroup_close(&cg);
	assert_int_equal(dsec__cgroup_reap(&root, name, 1000), 0);
	assert_int_equal(left(name), 0);
}

/*
 * A child in a command group, in the way that dsec__cgroup_exec_open() said: born there, or by writing to cgroup.procs.
 */
static pid_t fork_in(int group, bool birth)
{
	pid_t pid = dsec__fork_into(birth ? group : -EBADF);

	if (pid == 0 && !birth && write(group, "0", 1) != 1)
		_exit(1);
	assert_true(pid >= 0);
	return pid;
}

/* A command as the agent starts it, with a child that left session and parent. Returns when both run. */
static pid_t command(int group, bool birth)
{
	int up[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	pid = fork_in(group, birth);
	if (pid == 0) {
		if (fork() == 0) {
			(void)setsid();
			if (write(up[1], "u", 1) != 1)
				_exit(1);
		}
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	(void)close(up[0]);
	(void)close(up[1]);
	return pid;
}

static void command_group_kills_its_tree_and_no_other(void **state)
{
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	AUTO_CLOSE int one = -EBADF;
	AUTO_CLOSE int two = -EBADF;
	pid_t agent;
	pid_t first;
	pid_t second;
	bool birth;
	int r = -EBUSY;

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	agent = sleeper(&cg);
	one = dsec__cgroup_exec_open(&cg, 1, 0, &birth, &err);
	two = dsec__cgroup_exec_open(&cg, UINT64_MAX, 0, &birth, &err);
	assert_true(one >= 0 && two >= 0);
	assert_int_equal(birth, root.exec == DSEC__CG_UNIFIED);
	first = command(one, birth);
	second = command(two, birth);
	assert_int_equal(dsec__cgroup_exec_remove(&cg, 1), -EBUSY);
	assert_true(dsec__cgroup_exec_kill(&cg, 1));
	assert_int_equal(reaped(first), SIGKILL);
	for (int i = 0; i < 1000 && r == -EBUSY; i++, (void)usleep(1000))
		r = dsec__cgroup_exec_remove(&cg, 1);
	assert_int_equal(r, 0);
	assert_int_equal(dsec__cgroup_exec_remove(&cg, 1), -ENOENT);
	assert_false(dsec__cgroup_exec_kill(&cg, 1));
	assert_int_equal(kill(second, 0), 0);
	assert_int_equal(waitpid(second, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(agent, NULL, WNOHANG), 0);
	dsec__cgroup_kill(&cg);
	assert_int_equal(reaped(second), SIGKILL);
	assert_int_equal(reaped(agent), SIGKILL);
	gone(&cg);
}

/* What the agent does: root of a user namespace, nobody outside, has its children born in a group. */
static void owner_may_start_processes_in_command_groups(void **state)
{
	const uid_t owner = 2000000123;
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	AUTO_CLOSE int group = -EBADF;
	bool birth;
	pid_t agent;

	(void)state;
	need(root.exec >= 0, "groups");
	need(geteuid() == 0, "root, to become another user");
	make(&cg, (struct dsec__cglimits){ 0 });
	assert_int_equal(dsec__cgroup_delegate(&cg, owner, &err), 0);
	group = dsec__cgroup_exec_open(&cg, 1, owner, &birth, &err);
	assert_true(group >= 0);
	agent = fork();
	if (agent == 0) {
		int status = -1;
		pid_t pid;

		if (dsec__cgroup_add(&cg, getpid(), false, &err) < 0 || setresuid(owner, owner, owner) < 0)
			_exit(1);
		pid = dsec__fork_into(birth ? group : -EBADF);
		if (pid == 0)
			_exit(!birth && write(group, "0", 1) != 1);
		_exit(pid < 0 ? -pid : waitpid(pid, &status, 0) != pid || status != 0);
	}
	assert_int_equal(reaped(agent), 0);
	gone(&cg);
}

static void command_group_without_hierarchy(void **state)
{
	struct dsec__cgroot copy = root;
	struct dsec__cglimits none = { 0 };
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	bool birth;

	(void)state;
	copy.exec = -1;
	assert_int_equal(dsec__cgroup_create(&cg, &copy, unique(), &none, false, &err), 0);
	assert_int_equal(dsec__cgroup_exec_open(&cg, 1, 0, &birth, &err), -ENOTSUP);
	assert_false(dsec__cgroup_exec_kill(&cg, 1));
	assert_int_equal(dsec__cgroup_exec_remove(&cg, 1), -ENOENT);
	assert_true(dsec__cgroup_exec_cpu(&cg, 1) == UINT64_MAX);
	gone(&cg);
}

static void cpu_time_is_told(void **state)
{
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	struct dsec__cgstats stats;
	AUTO_CLOSE int group = -EBADF;
	uint64_t cpu;
	bool birth;
	pid_t pid;

	(void)state;
	need(root.exec >= 0, "groups");
	make(&cg, (struct dsec__cglimits){ 0 });
	group = dsec__cgroup_exec_open(&cg, 7, 0, &birth, &err);
	pid = fork_in(group, birth);
	if (pid == 0) {
		int64_t end = now_us() + 30000;

		while (now_us() < end)
			;
		_exit(0);
	}
	assert_int_equal(reaped(pid), 0);
	cpu = dsec__cgroup_exec_cpu(&cg, 7);
	dsec__cgroup_stats(&cg, &stats);
	if (root.exec == DSEC__CG_UNIFIED) {
		assert_in_range(cpu, 5000000, 2000000000);
		assert_in_range(stats.cpu_ns, 5000000, 2000000000);
	} else {
		assert_true(cpu == UINT64_MAX); /* v1 command groups do not count it */
	}
	gone(&cg);
}

static void out_of_memory_is_counted(void **state)
{
	struct dsec__cgroup cg;
	struct dsec__cgstats stats;
	int go[2];
	struct dsec_error err = { 0 };
	pid_t pid;

	(void)state;
	need(root.memory >= 0, "memory limit");
	make(&cg, (struct dsec__cglimits){ .memory_bytes = 16u << 20 });
	assert_true(dsec__cgroup_oom_kills(&cg) == 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		size_t n = 64u << 20;
		char c;
		char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || read(go[0], &c, 1) != 1)
			_exit(1);
		memset(p, 1, n);
		_exit(0);
	}
	assert_int_equal(dsec__cgroup_add(&cg, pid, false, &err), 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(reaped(pid), SIGKILL);
	assert_int_equal(dsec__cgroup_oom_kills(&cg), 1);
	dsec__cgroup_stats(&cg, &stats);
	assert_int_equal(stats.oom_kills, 1);
	assert_in_range(stats.memory_peak, 8u << 20, 16u << 20);
	gone(&cg);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void stats_without_hierarchies_cannot_be_told(void **state)
{
	struct dsec__cgroot none = { .cpu = -1, .memory = -1, .pids = -1, .exec = -1 };
	struct dsec__cglimits limits = { 0 };
	struct dsec__cgroup cg;
	struct dsec__cgstats s;
	struct dsec_error err = { 0 };

	(void)state;
	for (int i = 0; i < DSEC__CG_MAX; i++)
		none.fd[i] = -EBADF;
	assert_int_equal(dsec__cgroup_create(&cg, &none, unique(), &limits, false, &err), 0);
	dsec__cgroup_stats(&cg, &s);
	assert_true(s.cpu_ns == UINT64_MAX && s.memory_bytes == UINT64_MAX && s.memory_peak == UINT64_MAX &&
		    s.pids == UINT64_MAX && s.oom_kills == UINT64_MAX);
	dsec__cgroup_kill(&cg);
	assert_int_equal(dsec__cgroup_remove(&cg, 0), 0);
	dsec__cgroot_close(&none);
}

/* Another process that ends takes an empty base with it while we hold a descriptor of it. */
static void base_removed_by_another_process_is_made_again(void **state)
{
	struct dsec__cgroot copy = root;
	struct dsec__cglimits none = { 0 };
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	const char *below = unique();
	int i = root.exec;

	(void)state;
	need(i >= 0, "groups");
	for (int k = 0; k < DSEC__CG_MAX; k++)
		copy.fd[k] = -EBADF;
	assert_int_equal(mkdirat(root.fd[i], below, 0755), 0);
	assert_true(snprintf(copy.path[i], sizeof copy.path[i], "%s/%s/dsec", root.path[i], below) > 0);
	assert_int_equal(mkdir(copy.path[i], 0755), 0);
	copy.fd[i] = open(copy.path[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(copy.fd[i] >= 0);
	assert_int_equal(rmdir(copy.path[i]), 0);
	assert_int_equal(dsec__cgroup_create(&cg, &copy, "one", &none, false, &err), 0);
	assert_int_equal(dsec__cgroup_remove(&cg, 0), 0);
	assert_int_equal(dsec__cgroup_create(&cg, &copy, "two", &none, false, &err), 0);
	assert_int_equal(dsec__cgroup_remove(&cg, 0), 0);
	dsec__cgroot_close(&copy);
	assert_int_equal(unlinkat(root.fd[i], below, AT_REMOVEDIR), 0);
}

static void thousand_cycles_leak_nothing(void **state)
{
	struct dsec__cglimits limits = { 0 };
	struct dsec__cgroup cg;
	struct dsec_error err = { 0 };
	int fds = count_fds();
	int64_t create = 0;
	int64_t remove = 0;

	(void)state;
	if (root.cpu >= 0 && root.memory >= 0 && root.pids >= 0)
		limits = (struct dsec__cglimits){ 1000, 64u << 20, 100 };
	for (int n = 0; n < 1000; n++) {
		int64_t t = now_us();

		assert_int_equal(dsec__cgroup_create(&cg, &root, unique(), &limits, false, &err), 0);
		create += now_us() - t;
		t = now_us();
		assert_int_equal(dsec__cgroup_remove(&cg, 1000), 0);
		remove += now_us() - t;
	}
	print_message("create %d us, remove %d us\n", (int)(create / 1000), (int)(remove / 1000));
	assert_int_equal(count_fds(), fds);
}

static void base_goes_with_its_last_user(void **state)
{
	struct dsec__cgroot other;
	struct dsec_error err = { 0 };

	(void)state;
	assert_int_equal(dsec__cgroot_open(&other, &err), 0);
	for (int i = 0; i < DSEC__CG_MAX; i++)
		if (other.fd[i] < 0)
			assert_true(other.why[i][0] != '\0');
	dsec__cgroot_close(&other);
	dsec__cgroot_close(&other); /* half-open and closed ones are fine */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_what_was_asked),
		cmocka_unit_test(no_limits_asked_sets_none),
		cmocka_unit_test(limit_without_hierarchy_is_refused_by_name),
		cmocka_unit_test(value_that_the_kernel_refuses_names_field_and_leaves_nothing),
		cmocka_unit_test(same_name_twice_is_refused),
		cmocka_unit_test(add_joins_every_group),
		cmocka_unit_test(add_of_no_process_fails),
		cmocka_unit_test(kill_ends_a_fork_bomb_with_its_sessions),
		cmocka_unit_test(remove_of_a_live_group_waits_and_says_busy),
		cmocka_unit_test(reap_of_nothing_and_of_odd_names),
		cmocka_unit_test(reap_takes_command_groups_too),
		cmocka_unit_test(command_group_kills_its_tree_and_no_other),
		cmocka_unit_test(owner_may_start_processes_in_command_groups),
		cmocka_unit_test(command_group_without_hierarchy),
		cmocka_unit_test(cpu_time_is_told),
		cmocka_unit_test(out_of_memory_is_counted),
		cmocka_unit_test(stats_without_hierarchies_cannot_be_told),
		cmocka_unit_test(base_removed_by_another_process_is_made_again),
		cmocka_unit_test(thousand_cycles_leak_nothing),
		cmocka_unit_test(base_goes_with_its_last_user),
	};
	int failed = cmocka_run_group_tests_name("cgroup", tests, setup, teardown);

	if (!hybrid)
		return failed;
	hide_v2 = true;
	return failed + cmocka_run_group_tests_name("cgroup, v2 hidden", tests, setup, teardown);
}
