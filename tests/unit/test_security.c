/* SPDX-License-Identifier: MIT */
/*
 * What sandboxes may not do. The filter is asked twice: by an interpreter of its instructions, for all numbers,
 * arguments and architectures, and by the kernel, in a child that is root of a user namespace of its own.
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
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "linux/security.h"
#include "linux/syscalls.h"
#include "util/cleanup.h"

#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(e) (SECCOMP_RET_ERRNO | (e))

static struct sock_fprog filter;

static int setup(void **state)
{
	struct dsec_error err = { 0 };

	(void)state;
	return dsec__filter_compile(&filter, &err);
}

static int teardown(void **state)
{
	(void)state;
	dsec__filter_done(&filter);
	return 0;
}

/* What the kernel would do: the answer for one call. `ret_steps` counts instructions. */
static uint32_t interpret(const struct seccomp_data *d, int *ret_steps)
{
	uint32_t a = 0;
	int steps = 0;

	for (size_t pc = 0; pc < filter.len; pc++) {
		const struct sock_filter *i = &filter.filter[pc];
		bool yes = false;

		steps++;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)d + i->k, sizeof a);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_RET | BPF_K:
			if (ret_steps)
				*ret_steps = steps;
			return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			yes = a > i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = a & i->k;
			break;
		default:
			fail_msg("instruction %#x is not known here", i->code);
		}
		pc += yes ? i->jt : i->jf;
	}
	fail_msg("the filter ends without an answer");
	return 0;
}

static uint32_t ask(uint32_t arch, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct seccomp_data d = { .nr = nr, .arch = arch, .args = { a0, a1, a2 } };

	return interpret(&d, NULL);
}

static uint32_t native(const char *name, uint64_t a0, uint64_t a1, uint64_t a2)
{
	int nr = seccomp_syscall_resolve_name(name);

	assert_true(nr >= 0);
	return ask(seccomp_arch_native(), nr, a0, a1, a2);
}

static bool conditional(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_conditions); i++)
		if (strcmp(dsec__syscall_conditions[i].name, name) == 0)
			return true;
	return false;
}

/* Each name of a row, on one architecture, gets that answer. Returns how many the architecture has. */
static int check_row(uint32_t arch, const char *names, uint32_t answer)
{
	AUTO_FREE char *copy = strdup(names);
	char *save = NULL;
	int n = 0;

	for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		int nr = seccomp_syscall_resolve_name_arch(arch, s);

		if (nr < 0 || conditional(s))
			continue;
		if (ask(arch, nr, 0, 0, 0) != answer)
			fail_msg("%s (%d): %#x instead of %#x", s, nr, ask(arch, nr, 0, 0, 0), answer);
		n++;
	}
	return n;
}

static void check_rows(uint32_t arch)
{
	int allowed = 0;
	int refused = 0;

	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_allowed); i++)
		allowed += check_row(arch, dsec__syscalls_allowed[i].names, ALLOW);
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_refused); i++)
		refused += check_row(arch, dsec__syscalls_refused[i].names,
				     REFUSE((uint32_t)dsec__syscalls_refused[i].error));
	assert_true(allowed > 200);
	assert_true(refused > 40);
}

static void every_row_gets_its_answer(void **state)
{
	(void)state;
	check_rows(seccomp_arch_native());
	if (seccomp_arch_native() == SCMP_ARCH_X86_64)
		check_rows(SCMP_ARCH_X86);
}

static bool in_row(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = names; (p = strstr(p, name)); p += n)
		if ((p == names || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
			return true;
	return false;
}

/* A call that is in no row is one that nobody has thought about; one in two rows is a mistake. */
static void every_known_call_is_in_one_row(void **state)
{
	static const char never[] = "getpmsg putpmsg afs_syscall tuxcall security vserver ioctl";

	(void)state;
	for (int nr = 0; nr < 1024; nr++) {
		AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), nr);
		int n = 0;

		if (!name || in_row(never, name))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_allowed); i++)
			n += in_row(dsec__syscalls_allowed[i].names, name);
		for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_refused); i++)
			n += in_row(dsec__syscalls_refused[i].names, name);
		if (n != 1)
			fail_msg("%s is in %d rows", name, n);
	}
}

static void every_row_has_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_allowed); i++)
		assert_true(dsec__syscalls_allowed[i].reason && dsec__syscalls_allowed[i].error == 0);
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_refused); i++)
		assert_true(dsec__syscalls_refused[i].reason && dsec__syscalls_refused[i].error > 0);
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_conditions); i++)
		assert_non_null(dsec__syscall_conditions[i].reason);
}

static void calls_from_the_future_do_not_exist(void **state)
{
	static const int numbers[] = { 600, 1023, 1024, 1025, 100000, 0x3fffffff, INT32_MAX, -1, INT32_MIN };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		assert_int_equal(ask(seccomp_arch_native(), numbers[i], 0, 0, 0), REFUSE(ENOSYS));
}

static void other_architectures_have_no_calls(void **state)
{
	(void)state;
	for (int nr = 0; nr < 500; nr++) {
		assert_int_equal(ask(AUDIT_ARCH_S390X, nr, 0, 0, 0), REFUSE(ENOSYS));
		assert_int_equal(ask(0, nr, 0, 0, 0), REFUSE(ENOSYS));
		if (seccomp_arch_native() ==
		    SCMP_ARCH_X86_64) /* x32 is a bit in the number, not another architecture */
			assert_int_equal(ask(AUDIT_ARCH_X86_64, nr | 0x40000000, 0, 0, 0), REFUSE(ENOSYS));
	}
}

static void clone_makes_no_namespace(void **state)
{
	static const uint64_t spaces[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
					   CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

	(void)state;
	assert_int_equal(native("clone", SIGCHLD, 0, 0), ALLOW);
	assert_int_equal(native("clone", CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0), ALLOW);
	assert_int_equal(native("clone", 0x3d0f00, 0, 0), ALLOW); /* a thread */
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		assert_int_equal(native("clone", spaces[i] | SIGCHLD, 0, 0), REFUSE(EPERM));
		assert_int_equal(native("clone", spaces[i] | CLONE_VM | (1ull << 40), 0, 0), REFUSE(EPERM));
	}
	assert_int_equal(native("clone3", 0, 0, 0), ALLOW); /* the agent's; it takes the call away from commands */
}

static void terminal_tricks_are_refused_whatever_the_upper_half_says(void **state)
{
	static const uint64_t upper[] = { 0, 1ull << 32, 0xffffffffull << 32, 1ull << 63 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(upper); i++) {
		assert_int_equal(native("ioctl", 0, upper[i] | 0x5412, 0), REFUSE(EPERM));
		assert_int_equal(native("ioctl", 0, upper[i] | 0x541c, 0), REFUSE(EPERM));
		assert_int_equal(native("ioctl", 0, upper[i] | 0x5401, 0), ALLOW);
		assert_int_equal(native("ioctl", 0x5412, upper[i] | 0x5413, 0x5412), ALLOW);
	}
}

static void only_harmless_personalities(void **state)
{
	static const uint64_t good[] = { 0, 8, 0x0040000, 0x0040008, 0x0020000, 0x0800000, 0xffffffff };
	static const uint64_t bad[] = { 0x0400000, 0x0100000, 0x0200000, 0x0440000, 1, 0x0000100, 0xfffffffe };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(native("personality", good[i], 0, 0), ALLOW);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(native("personality", bad[i], 0, 0), REFUSE(EPERM));
		assert_int_equal(native("personality", bad[i] | 1ull << 32, 0, 0), REFUSE(EPERM));
	}
}

static void only_common_socket_families(void **state)
{
	(void)state;
	for (uint64_t family = 0; family < 64; family++) {
		bool good = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

		assert_int_equal(native("socket", family, SOCK_STREAM, 0), good ? ALLOW : REFUSE(EAFNOSUPPORT));
		assert_int_equal(native("socket", family | 1ull << 32, SOCK_STREAM, 0),
				 good ? ALLOW : REFUSE(EAFNOSUPPORT));
		assert_int_equal(native("socketpair", family, SOCK_STREAM, 0),
				 family == AF_UNIX ? ALLOW : REFUSE(EAFNOSUPPORT));
	}
	for (uint64_t protocol = 1; protocol < 32; protocol++)
		assert_int_equal(native("socket", AF_NETLINK, SOCK_RAW, protocol), REFUSE(EAFNOSUPPORT));
}

/* socketcall has its arguments in memory, so that a family cannot be told from another. */
static void x86_32_bit_sockets_do_not_pass_by(void **state)
{
	(void)state;
	if (seccomp_arch_native() != SCMP_ARCH_X86_64)
		skip();
	for (uint64_t call = 1; call <= 20; call++)
		assert_int_equal(ask(AUDIT_ARCH_I386, 102, call, 0, 0),
				 call == 1 || call == 8 ? REFUSE(EAFNOSUPPORT) : ALLOW);
	assert_int_equal(ask(AUDIT_ARCH_I386, 359, AF_INET, 0, 0), REFUSE(EAFNOSUPPORT)); /* socket */
	assert_int_equal(ask(AUDIT_ARCH_I386, 362, 0, 0, 0), ALLOW);                      /* connect */
	assert_int_equal(ask(AUDIT_ARCH_I386, 117, 1, 0, 0), ALLOW);                      /* ipc: semop */
	assert_int_equal(ask(AUDIT_ARCH_I386, 54, 0, 0x5412, 0), REFUSE(EPERM));          /* ioctl */
	assert_int_equal(ask(AUDIT_ARCH_I386, 120, CLONE_NEWUSER, 0, 0), REFUSE(EPERM));  /* clone */
	assert_int_equal(ask(AUDIT_ARCH_I386, 120, SIGCHLD, 0, 0), ALLOW);
}

/* The kernel runs the filter for each call that has arguments to look at, and for all calls where it has no cache. */
static void filter_is_short(void **state)
{
	struct seccomp_data d = { .arch = seccomp_arch_native(), .nr = SYS_read };
	int read_steps;
	int ioctl_steps;

	(void)state;
	assert_int_equal(interpret(&d, &read_steps), ALLOW);
	d.nr = SYS_ioctl;
	assert_int_equal(interpret(&d, &ioctl_steps), ALLOW);
	print_message("%u instructions; read takes %d, ioctl %d\n", filter.len, read_steps, ioctl_steps);
	assert_true(filter.len < 1000);
	assert_true(read_steps < 20);
	assert_true(ioctl_steps < 60);
}

static void compiling_leaves_no_descriptor_and_gives_the_same(void **state)
{
	struct sock_fprog other;
	struct dsec_error err = { 0 };
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int after;

	(void)state;
	assert_int_equal(close(before), 0);
	assert_int_equal(dsec__filter_compile(&other, &err), 0);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(close(after), 0);
	assert_int_equal(before, after);
	assert_int_equal(other.len, filter.len);
	assert_memory_equal(other.filter, filter.filter, filter.len * sizeof *filter.filter);
	dsec__filter_done(&other);
	dsec__filter_done(&other);
}

static void put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail_msg("write %s: %s", path, strerror(errno));
}

static void map_ids(pid_t pid)
{
	char path[64];
	char map[64];

	(void)snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
	if (geteuid() != 0)
		put(path, "deny");
	for (int group = 0; group < 2; group++) {
		(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, group ? "gid_map" : "uid_map");
		if (geteuid() == 0)
			(void)snprintf(map, sizeof map, "0 2000000000 65536");
		else
			(void)snprintf(map, sizeof map, "0 %u 1", group ? getegid() : geteuid());
		put(path, map);
	}
}

/* The line at which a check in the child failed; exit statuses have 8 bits, so it goes through a pipe. */
static int report;

#define CHECK(x)                                                                    \
	do {                                                                        \
		if (!(x)) {                                                         \
			dprintf(report, "line %d: %s: %s", __LINE__, #x, strerror(errno)); \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

/* Runs fn as root of a new user namespace, locked down. */
static void locked(void (*fn)(void))
{
	char text[512] = "";
	int mapped[2];
	int up[2];
	int out[2];
	int status;
	char c;
	pid_t pid;

	assert_int_equal(pipe2(mapped, O_CLOEXEC) | pipe2(up, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct dsec_error err = { 0 };

		report = out[1];
		CHECK(unshare(CLONE_NEWUSER) == 0);
		CHECK(write(up[1], "u", 1) == 1 && read(mapped[0], &c, 1) == 1);
		CHECK(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
		if (dsec__security_apply(&filter, &err) < 0) {
			dprintf(report, "apply: %s (%d)", err.text, err.code);
			_exit(1);
		}
		fn();
		_exit(0);
	}
	(void)close(up[1]);
	(void)close(out[1]);
	if (read(up[0], &c, 1) == 1) {
		map_ids(pid);
		assert_int_equal(write(mapped[1], "m", 1), 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(read(out[0], text, sizeof text - 1) >= 0);
	for (int i = 0; i < 2; i++)
		(void)close(i ? mapped[1] : mapped[0]);
	(void)close(up[0]);
	(void)close(out[0]);
	if (status != 0)
		fail_msg("child: status %#x %s", status, text);
}

static uint64_t status_mask(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	CHECK(p);
	return strtoull(p + strlen(key), NULL, 16);
}

static void sets_are_the_table(void)
{
	static const int keep[] = { CAP_CHOWN,	 CAP_DAC_OVERRIDE,     CAP_FOWNER,  CAP_FSETID,
				    CAP_KILL,	 CAP_SETGID,	       CAP_SETUID,  CAP_SETPCAP,
				    CAP_NET_RAW, CAP_NET_BIND_SERVICE, CAP_SETFCAP, CAP_SYS_CHROOT };
	uint64_t table = 0;
	char text[8192] = "";
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	CHECK(read(fd, text, sizeof text - 1) > 0);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		table |= 1ull << keep[i];
	CHECK(status_mask(text, "CapBnd:\t") == table);
	CHECK(status_mask(text, "CapPrm:\t") == table);
	CHECK(status_mask(text, "CapEff:\t") == table);
	CHECK(status_mask(text, "CapInh:\t") == 0);
	CHECK(status_mask(text, "CapAmb:\t") == 0);
	CHECK(status_mask(text, "NoNewPrivs:\t") == 1);
	CHECK(status_mask(text, "Seccomp:\t") == 2);
}

static void capability_sets_are_the_table(void **state)
{
	(void)state;
	locked(sets_are_the_table);
}

static void limits_hold(void)
{
	struct rlimit l;

	CHECK(getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_cur == 0 && l.rlim_max == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur <= 1024 && l.rlim_max <= 1048576);
	CHECK(getrlimit(RLIMIT_STACK, &l) == 0 && l.rlim_cur == 8 << 20);
	CHECK(getrlimit(RLIMIT_RTPRIO, &l) == 0 && l.rlim_max == 0);
	CHECK(getrlimit(RLIMIT_MEMLOCK, &l) == 0 && l.rlim_max <= 8 << 20);
	CHECK(getrlimit(RLIMIT_FSIZE, &l) == 0);
}

static void resource_limits_are_the_table(void **state)
{
	(void)state;
	locked(limits_hold);
}

/* Arguments that the kernel itself would answer otherwise wherever it has such an answer. */
#define REFUSED(call, e)                                          \
	do {                                                      \
		errno = 0;                                        \
		CHECK((call) == -1 && errno == (e)); \
	} while (0)

static void refused_for_real(void)
{
	char page[4096] = "";

	REFUSED(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM);
	REFUSED(umount2("/", 0x100000), EPERM);
	REFUSED(syscall(SYS_pivot_root, NULL, NULL), EPERM);
	REFUSED(syscall(SYS_fsopen, NULL, ~0u), EPERM);
	REFUSED(syscall(SYS_fsmount, -1, ~0u, 0), EPERM);
	REFUSED(syscall(SYS_fsconfig, -1, ~0u, NULL, NULL, 0), EPERM);
	REFUSED(syscall(SYS_fspick, -1, NULL, ~0u), EPERM);
	REFUSED(syscall(SYS_move_mount, -1, NULL, -1, NULL, ~0u), EPERM);
	REFUSED(syscall(SYS_open_tree, -1, NULL, ~0u), EPERM);
	REFUSED(syscall(SYS_mount_setattr, -1, NULL, ~0u, NULL, 0), EPERM);
	REFUSED(unshare(0), EPERM);
	REFUSED(unshare(CLONE_NEWUSER), EPERM);
	REFUSED(setns(-1, 0), EPERM);
	REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
	REFUSED(syscall(SYS_bpf, -1, NULL, 0), EPERM);
	REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, ~0ul), EPERM);
	REFUSED(syscall(SYS_userfaultfd, ~0), EPERM);
	REFUSED(syscall(SYS_io_uring_setup, 0, NULL), EPERM);
	REFUSED(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), EPERM);
	REFUSED(syscall(SYS_io_uring_register, -1, ~0u, NULL, 0), EPERM);
	REFUSED(syscall(SYS_keyctl, 0, -3, 0, 0, 0), EPERM);
	REFUSED(syscall(SYS_add_key, NULL, NULL, NULL, 0, 0), EPERM);
	REFUSED(syscall(SYS_request_key, NULL, NULL, NULL, 0), EPERM);
	REFUSED(syscall(SYS_init_module, NULL, 0, NULL), EPERM);
	REFUSED(syscall(SYS_finit_module, -1, NULL, ~0), EPERM);
	REFUSED(syscall(SYS_kexec_load, 0, ~0ul, NULL, ~0ul), EPERM);
	REFUSED(syscall(SYS_reboot, 0, 0, 0, NULL), EPERM);
	REFUSED(syscall(SYS_swapoff, NULL), EPERM);
	REFUSED(syscall(SYS_acct, NULL), EPERM);
	REFUSED(syscall(SYS_settimeofday, NULL, page), EPERM);
	REFUSED(syscall(SYS_clock_settime, 99, NULL), EPERM);
	REFUSED(syscall(SYS_open_by_handle_at, -1, NULL, 0), EPERM);
	REFUSED(syscall(SYS_syslog, -1, NULL, 0), EPERM);
	REFUSED(syscall(SYS_personality, 0x0400000), EPERM);
	REFUSED(socket(40 /* vsock */, SOCK_STREAM, 0), EAFNOSUPPORT);
	REFUSED(socket(38 /* alg */, SOCK_SEQPACKET, 0), EAFNOSUPPORT);
	REFUSED(socket(17 /* packet */, SOCK_RAW, 0), EAFNOSUPPORT);
	REFUSED(socket(AF_NETLINK, SOCK_RAW, 9 /* audit */), EAFNOSUPPORT);
	REFUSED(ioctl(-1, TIOCSTI, "x"), EPERM);
	REFUSED(syscall(SYS_ioctl, -1, 0x541cul | 1ul << 32, "x"), EPERM);
	REFUSED(syscall(1000), ENOSYS);
}

static void calls_are_refused_by_the_kernel_too(void **state)
{
	(void)state;
	locked(refused_for_real);
}

static int exits(const char *command)
{
	int status = -1;
	pid_t pid = vfork();

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* What the agent itself goes on to use. */
static void agent_for_real(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };
	sigset_t mask;
	int pair[2];
	siginfo_t info;
	int status;
	int pidfd;
	int pty;
	pid_t pid;

	(void)sigemptyset(&mask);
	CHECK(epoll_create1(EPOLL_CLOEXEC) >= 0 && eventfd(0, EFD_CLOEXEC) >= 0);
	CHECK(signalfd(-1, &mask, SFD_CLOEXEC) >= 0);
	CHECK(syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how) >= 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 && send(pair[0], "x", 1, 0) == 1);
	CHECK(memfd_create("x", MFD_CLOEXEC) >= 0 && pipe2(pair, O_CLOEXEC) == 0 &&
	      dup3(pair[0], 100, O_CLOEXEC) == 100);
	CHECK(syscall(SYS_close_range, 90, 200, 0) == 0 && chdir("/") == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(setsid() > 0);
		pty = open("/dev/ptmx",
			   O_RDWR | O_NOCTTY | O_CLOEXEC); /* as in a build without devpts, it may be absent */
		if (pty >= 0) {
			struct winsize size = { .ws_row = 5, .ws_col = 6 };

			CHECK(ioctl(pty, TIOCSWINSZ, &size) == 0);
		}
		for (;;)
			(void)pause();
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0);
	CHECK(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT) == 0 && info.si_status == SIGKILL);
	CHECK(wait4(pid, &status, 0, NULL) == pid && status == SIGKILL);
	if (getegid() == 0 && setgroups(0, NULL) == 0) /* refused where ids were mapped without privilege */
		CHECK(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0);
}

static void the_agent_can_work(void **state)
{
	(void)state;
	locked(agent_for_real);
}

static void commands_for_real(void)
{
	CHECK(exits("true") == 0);
	CHECK(exits("exit 7") == 7 << 8);
	CHECK(exits("ls / >/dev/null && echo x | cat >/dev/null && (true & wait)") == 0);
	CHECK(exits("test -x /usr/bin/python3 || exit 0; python3 -c '"
		    "import threading,socket,mmap,subprocess,os;"
		    "t=threading.Thread(target=print);t.start();t.join();"
		    "socket.socket();socket.socket(socket.AF_UNIX);socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,0);"
		    "mmap.mmap(-1,4096);subprocess.run([\"true\"],check=True);os.memfd_create(\"x\")' >/dev/null "
		    "2>&1") == 0);
}

static void commands_can_work(void **state)
{
	(void)state;
	locked(commands_for_real);
}

static void traced(void)
{
	static volatile int value = 42;
	int seen = 0;
	int status;
	struct iovec here = { &seen, sizeof seen };
	struct iovec there = { (void *)&value, sizeof value };
	pid_t pid;

	/*
	 * A change of ids made this process, as it makes the agent, unreadable; a command is made readable by execve.
	 */
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
		(void)raise(SIGSTOP);
		_exit(3);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	CHECK(ptrace(PTRACE_PEEKDATA, pid, (void *)&value, NULL) != -1);
	CHECK(process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof seen && seen == 42);
	CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 3 << 8);
	CHECK(exits("test ! -x /usr/bin/strace || strace -f -o /dev/null sh -c 'true; true'") == 0);
	CHECK(exits("test ! -x /usr/bin/gdb || HOME=/nonexistent gdb -nx -q -batch -ex run /bin/true 2>&1 </dev/null | "
		    "grep -q 'exited normally'") == 0);
}

static void debuggers_work_on_their_own_children(void **state)
{
	(void)state;
	locked(traced);
}

static void applying_leaves_no_descriptor(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");

	while (readdir(d))
		n++;
	CHECK(n <= 2 + 3 + 1 + 6 +
			   2); /* dots, standard three, the directory, the pipes of this test; slack for a tool's own */
}

static void apply_leaves_no_descriptor(void **state)
{
	(void)state;
	locked(applying_leaves_no_descriptor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_gets_its_answer),
		cmocka_unit_test(every_known_call_is_in_one_row),
		cmocka_unit_test(every_row_has_a_reason),
		cmocka_unit_test(calls_from_the_future_do_not_exist),
		cmocka_unit_test(other_architectures_have_no_calls),
		cmocka_unit_test(clone_makes_no_namespace),
		cmocka_unit_test(terminal_tricks_are_refused_whatever_the_upper_half_says),
		cmocka_unit_test(only_harmless_personalities),
		cmocka_unit_test(only_common_socket_families),
		cmocka_unit_test(x86_32_bit_sockets_do_not_pass_by),
		cmocka_unit_test(filter_is_short),
		cmocka_unit_test(compiling_leaves_no_descriptor_and_gives_the_same),
		cmocka_unit_test(capability_sets_are_the_table),
		cmocka_unit_test(resource_limits_are_the_table),
		cmocka_unit_test(calls_are_refused_by_the_kernel_too),
		cmocka_unit_test(the_agent_can_work),
		cmocka_unit_test(commands_can_work),
		cmocka_unit_test(debuggers_work_on_their_own_children),
		cmocka_unit_test(apply_leaves_no_descriptor),
	};

	return cmocka_run_group_tests_name("security", tests, setup, teardown);
}
