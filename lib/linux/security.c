/* SPDX-License-Identifier: MIT */
/*
 * Locking down the process that will start commands. Each stage says what holds after it; none can be undone, and what
 * is started later inherits all of them. Should be the last thing before the first command; must not start a thread or
 * leave a descriptor.
 */
#include <cap-ng.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "security.h"

/* All of them reach only what belongs to the sandbox's user namespace: its ids, its network, its own files. */
static const struct {
	unsigned int cap;
	const char *reason;
} capabilities[] = {
	{ CAP_CHOWN, "package managers, tar" },
	{ CAP_DAC_OVERRIDE, "root reads and writes files of the sandbox's other users, as everywhere" },
	{ CAP_FOWNER, "root changes modes and times of such files" },
	{ CAP_FSETID, "chmod and chown by root keep the set-group-id bit" },
	{ CAP_KILL, "root, and the agent, signal processes of the sandbox's other users" },
	{ CAP_SETGID, "the agent and su change groups; setgroups" },
	{ CAP_SETUID, "the agent and su change users; package managers drop to users of their own" },
	{ CAP_SETPCAP, "services give up capabilities of their own for good; nothing can be gained by it" },
	{ CAP_NET_BIND_SERVICE, "servers on ports below 1024 of the sandbox's network" },
	{ CAP_NET_RAW, "ping, on the sandbox's network; packet sockets are kept out by the filter" },
	{ CAP_SYS_CHROOT, "package builds and services" },
	{ CAP_SETFCAP, "package managers set file capabilities" },
	/*
	 * Left out on purpose, beside all that administer a host: CAP_SYS_PTRACE. gdb and strace work on what they
	 * start, and on any process of the same user (subject to Yama), without it; only root debugging another user's
	 * process would need it. CAP_MKNOD makes nothing in a user namespace. CAP_SYS_ADMIN and CAP_NET_ADMIN reach
	 * mounts and packet filters: the kernel code behind most escapes.
	 */
};

#define UNLIMITED RLIM_INFINITY

/* What commands find whatever the trainer's own limits are; a hard limit that is lower already stays. */
static const struct {
	int resource;
	rlim_t soft, hard;
	const char *reason;
} limits[] = {
	{ RLIMIT_CORE, 0, 0, "a dump would fill the writable top, or be piped to a program of the host" },
	{ RLIMIT_NOFILE, 1024, 1048576, "select() breaks above 1024; programs that can do more raise it" },
	{ RLIMIT_STACK, 8u << 20, UNLIMITED,
	  "an unlimited soft limit changes the address layout; tests recurse and raise it" },
	{ RLIMIT_MEMLOCK, 8u << 20, 8u << 20,
	  "locked memory is beyond the control group's reclaim; the kernel's default" },
	{ RLIMIT_RTPRIO, 0, 0, "a real-time thread starves the neighbours" },
	{ RLIMIT_NICE, 0, 0, "no priority above the neighbours'" },
	{ RLIMIT_MSGQUEUE, 819200, 819200, "kernel memory of message queues; the kernel's default" },
	{ RLIMIT_FSIZE, UNLIMITED, UNLIMITED, "the writable top bounds files; SIGXFSZ would surprise" },
	{ RLIMIT_DATA, UNLIMITED, UNLIMITED, "the control group bounds memory" },
	{ RLIMIT_AS, UNLIMITED, UNLIMITED, "the same; sanitizers and JITs reserve terabytes of addresses" },
	{ RLIMIT_CPU, UNLIMITED, UNLIMITED, "commands have timeouts" },
	/*
	 * Not RLIMIT_NPROC: it counts per user of the host, so that sandboxes of one caller would share it; pids.max.
	 */
};

/* Afterwards: soft and hard limits are the table's, or lower. */
static int stage_limits(struct dsec_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit now;
		struct rlimit set = { limits[i].soft, limits[i].hard };

		if (getrlimit((__rlimit_resource_t)limits[i].resource, &now) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "getrlimit %d", limits[i].resource);
		if (set.rlim_max > now.rlim_max)
			set.rlim_max = now.rlim_max;
		if (set.rlim_cur > set.rlim_max)
			set.rlim_cur = set.rlim_max;
		if (setrlimit((__rlimit_resource_t)limits[i].resource, &set) < 0)
			return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "setrlimit %d", limits[i].resource);
	}
	return 0;
}

/*
 * Afterwards: inheritable and ambient sets are empty; bounding, permitted and effective sets are the table's. The
 * bounding set goes first, while CAP_SETPCAP is certain. libcap-ng would do that part too, and read /proc twice for it.
 */
static int stage_capabilities(struct dsec_error *err)
{
	capng_clear(CAPNG_SELECT_CAPS);
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, capabilities[i].cap) < 0)
			return dsec__fail(err, -EINVAL, DSEC_STEP_SECURITY, "add capability %u", capabilities[i].cap);
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP || prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (capng_have_capability(CAPNG_PERMITTED, cap))
			continue;
		/*
		 * EINVAL: headers know more capabilities than this kernel; the loop also goes on where it is the
		 * reverse.
		 */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "drop capability %u", cap);
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "clear the ambient capabilities");
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "set the capabilities");
	return 0;
}

/* Afterwards: executing a file never adds rights, and so a filter may be set without CAP_SYS_ADMIN. */
static int stage_no_new_privileges(struct dsec_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "set no-new-privileges");
	return 0;
}

/*
 * Afterwards: only calls of the tables reach the kernel. SPEC_ALLOW leaves speculation as it is for other processes:
 * kernels before 5.16 slow down every filtered process otherwise, which guards a process against its own code only.
 */
static int stage_filter(const struct sock_fprog *filter, struct dsec_error *err)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, filter) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "load the system call filter");
	return 0;
}

int dsec__security_apply(const struct sock_fprog *filter, struct dsec_error *err)
{
	int r = stage_limits(err);

	if (r == 0)
		r = stage_capabilities(err);
	if (r == 0)
		r = stage_no_new_privileges(err);
	return r < 0 ? r : stage_filter(filter, err);
}
