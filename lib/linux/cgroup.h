/* SPDX-License-Identifier: MIT */
/*
 * Control groups of sandboxes and of their commands, on v2, v1 and hybrid trees behind one interface.
 *
 * Layout below the base that fits each hierarchy: dsec/<sandbox id>/ for the sandbox and, in one hierarchy only (v2
 * where it is mounted, else v1 pids), dsec/<sandbox id>/x<seq>/ for each command.
 */
#ifndef DSEC__CGROUP_H
#define DSEC__CGROUP_H

#include <dsec/error.h>
#include <dsec/sandbox.h>

#include <stdbool.h>
#include <sys/types.h>

enum {
	DSEC__CG_UNIFIED, /* v2, with or without controllers */
	DSEC__CG_CPU,     /* v1 from here on; cpu and cpuacct may be one hierarchy: then CPUACCT is absent */
	DSEC__CG_CPUACCT,
	DSEC__CG_MEMORY,
	DSEC__CG_PIDS,
	DSEC__CG_MAX,
};

/* What can be limited, and through which hierarchy. */
struct dsec__cgroot {
	int fd[DSEC__CG_MAX];          /* directory "dsec" of each hierarchy, -EBADF where absent or not writable */
	char path[DSEC__CG_MAX][256];  /* its path, for error texts and probe */
	char why[DSEC__CG_MAX][128];   /* why it is absent, or (v2) has no controllers */
	int cpu, memory, pids;         /* index of the hierarchy that limits it, -1 if none */
	int exec;                      /* index of the hierarchy that holds command groups, -1 if none */
};

/* Finds the hierarchies and makes "dsec" in each where this user may. Never fails for a missing hierarchy. */
int dsec__cgroot_open(struct dsec__cgroot *root, struct dsec_error *err);
/* Removes the "dsec" directories that are empty, and closes. Half-opened is allowed. */
void dsec__cgroot_close(struct dsec__cgroot *root);

struct dsec__cglimits {
	uint64_t cpu_millis; /* 0: none, as all */
	uint64_t memory_bytes;
	uint64_t pids;
};

/* The groups of one sandbox. */
struct dsec__cgroup {
	const struct dsec__cgroot *root; /* borrowed */
	int fd[DSEC__CG_MAX];            /* its directory in each hierarchy, -EBADF where absent */
	char name[32];
};

/*
 * Makes the groups and sets the limits. A limit without a hierarchy: -ENOTSUP naming the field (cpu_millis,
 * memory_bytes, pids) unless `optional`. On failure nothing is left. Memory limit also bounds swap (memory.swap.max 0 /
 * memsw where present).
 */
int dsec__cgroup_create(struct dsec__cgroup *cg, const struct dsec__cgroot *root, const char *name,
			const struct dsec__cglimits *limits, bool optional, struct dsec_error *err);
/*
 * Makes the groups that these limits need, without setting them. A v1 hierarchy is left alone where no limit of it is asked
 * for: to move a process into a v1 group waits for an RCU grace period, some 10 ms, and holds up all other work on control
 * groups of the machine meanwhile. (In a v2 group a process is born.)
 */
int dsec__cgroup_make(struct dsec__cgroup *cg, const struct dsec__cgroot *root, const char *name,
		      const struct dsec__cglimits *limits, struct dsec_error *err);
/* Sets them. */
int dsec__cgroup_limit(const struct dsec__cgroup *cg, const struct dsec__cglimits *limits, bool optional,
		       struct dsec_error *err);
/* Moves a process into the groups of the sandbox; born: it was cloned into the v2 one. */
int dsec__cgroup_add(const struct dsec__cgroup *cg, pid_t pid, bool born, struct dsec_error *err);
/*
 * Lets `owner`, the host's id of the sandbox's root, start processes in command groups: from its own, so both are
 * given.
 */
int dsec__cgroup_delegate(const struct dsec__cgroup *cg, uid_t owner, struct dsec_error *err);
/* Kills everything in the sandbox's groups (cgroup.kill; else pids.max 0 and SIGKILL until empty). Never fails. */
void dsec__cgroup_kill(const struct dsec__cgroup *cg);
/* Removes the groups with all command groups below, waiting at most timeout_ms for the dead to go; closes. Returns 0 or
   -EBUSY. */
int dsec__cgroup_remove(struct dsec__cgroup *cg, int timeout_ms);
/* Closes descriptors only (in a forked child). */
void dsec__cgroup_close(struct dsec__cgroup *cg);

struct dsec__cgstats {
	uint64_t cpu_ns, memory_bytes, memory_peak, pids, oom_kills; /* UINT64_MAX: cannot be told */
};
void dsec__cgroup_stats(const struct dsec__cgroup *cg, struct dsec__cgstats *ret);
/* Only the count of out-of-memory kills so far; UINT64_MAX if it cannot be told. */
uint64_t dsec__cgroup_oom_kills(const struct dsec__cgroup *cg);

/*
 * Makes the group of command `seq`, for a child of the agent. *ret_birth true (v2): returns its directory, to be born
 * in with CLONE_INTO_CGROUP, delegated to `owner` (0: nobody). False (v1): its cgroup.procs open for writing: the child
 * writes "0" to it. -ENOTSUP where there is no hierarchy for it.
 */
int dsec__cgroup_exec_open(const struct dsec__cgroup *cg, uint64_t seq, uid_t owner, bool *ret_birth,
			   struct dsec_error *err);
/* Kills all that the command started; false if there is no group to do it with. */
bool dsec__cgroup_exec_kill(const struct dsec__cgroup *cg, uint64_t seq);
/* CPU time in ns, UINT64_MAX if it cannot be told. */
uint64_t dsec__cgroup_exec_cpu(const struct dsec__cgroup *cg, uint64_t seq);
/* Removes the group: 0, -EBUSY while processes live in it, or -ENOENT. */
int dsec__cgroup_exec_remove(const struct dsec__cgroup *cg, uint64_t seq);

/* Kills and removes whatever groups of that name are left, of a sandbox whose keeper is dead. 0 or -EBUSY. */
int dsec__cgroup_reap(const struct dsec__cgroot *root, const char *name, int timeout_ms);

#endif
