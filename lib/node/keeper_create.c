/* SPDX-License-Identifier: MIT */
/*
 * From a spec to a sandbox that takes commands. Order, and why:
 *
 *   directory, ids          first, so that whatever follows can be found and removed if we die
 *   groups, name, limits    before any process that belongs in them; a spare gets its name and limits last
 *   agent                   cloned into its namespaces, stopped at a read until told to go
 *   ids, groups of agent    while it waits
 *   root                    the layers are mapped with the agent's own user namespace
 *   go                      the agent enters the root, locks itself down and says that it is ready
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent/container.h"
#include "../util/cleanup.h"
#include "../util/error.h"

#define READY_MS 30000 /* far beyond what the slowest machine needs; a sandbox that takes longer is broken */

/*
 * For the making of its user namespace the keeper takes on the host's id of the sandbox's root, with our rights and our
 * access to files. What the kernel counts for the maker of a namespace (processes of all its users since Linux 5.14,
 * inotify instances, pending signals) is then counted for each sandbox, and not for all of them together.
 */
static int maker_begin(const struct keeper *k, const struct rlimit *own, struct dsec_error *err)
{
	uint32_t id = keeper_first_id(k);
	struct rlimit limit = *own;

	if (!k->spec.pids && limit.rlim_cur > DSEC__PIDS_DEFAULT)
		limit.rlim_cur = DSEC__PIDS_DEFAULT;
	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "limit the processes of the user namespace");
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 || syscall(SYS_setresuid, id, id, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "take on the id %u", id);
	(void)syscall(SYS_setfsuid, 0); /* that id may not reach our directories; with the capability it cannot fail */
	return 0;
}

static int maker_end(const struct rlimit *own, struct dsec_error *err)
{
	if (syscall(SYS_setresuid, 0, 0, 0) < 0 || prctl(PR_SET_SECUREBITS, 0) < 0 || setrlimit(RLIMIT_NPROC, own) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "return to the own id");
	return 0;
}

static int clone_agent(struct keeper *k, int *ret_socket, struct dsec_error *err)
{
	bool by_maker = k->launcher->has_ptrace;
	struct rlimit own;
	int r = 0;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&k->agent_death,
		.exit_signal = SIGCHLD,
	};
	int pair[2];
	long pid;

	if (k->spec.network == DSEC_NETWORK_NONE)
		args.flags |= CLONE_NEWNET;
	if (k->cgroup.fd[DSEC__CG_UNIFIED] >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)k->cgroup.fd[DSEC__CG_UNIFIED];
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_KEEPER, "socketpair for the agent");
	*ret_socket = pair[0];
	if (by_maker && getrlimit(RLIMIT_NPROC, &own) < 0)
		r = dsec__fail(err, -errno, DSEC_STEP_IDS, "getrlimit");
	else if (by_maker)
		r = maker_begin(k, &own, err);
	pid = r < 0 ? -1 : syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		dsec__container_main(&(struct dsec__container){ k->launcher, &k->spec, &k->image, pair[1],
								k->launcher->cgroot.exec >= 0 });
	dsec__closep(&pair[1]);
	if (r < 0)
		return r;
	if (pid < 0)
		return dsec__fail(err, -errno, DSEC_STEP_CLONE,
				  "clone3 into new namespaces (see the probe item \"user_namespaces\")");
	k->agent_pid = (pid_t)pid;
	return by_maker ? maker_end(&own, err) : 0;
}

static int write_map(pid_t pid, const char *file, const char *text, struct dsec_error *err)
{
	char path[48];
	AUTO_CLOSE int fd = -EBADF;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file); /* fits */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "write \"%s\"", path);
	return 0;
}

uint32_t keeper_first_id(const struct keeper *k)
{
	return !k->launcher->privileged ? 0 : DSEC__IDS_FIRST + (uint32_t)k->dir.slot * DSEC__IDS_PER_SLOT;
}

static int map_ids(struct keeper *k, struct dsec_error *err)
{
	char uids[64], gids[64];
	int r = 0;

	if (k->launcher->privileged) {
		(void)snprintf(uids, sizeof uids, "0 %u %u", keeper_first_id(k), DSEC__IDS_PER_SLOT);
		memcpy(gids, uids, sizeof gids);
	} else {
		(void)snprintf(uids, sizeof uids, "0 %u 1", geteuid());
		(void)snprintf(gids, sizeof gids, "0 %u 1", getegid());
		r = write_map(k->agent_pid, "setgroups", "deny", err); /* the kernel's condition for the next */
	}
	if (r == 0)
		r = write_map(k->agent_pid, "uid_map", uids, err);
	return r < 0 ? r : write_map(k->agent_pid, "gid_map", gids, err);
}

static int send_root(struct keeper *k, struct dsec_error *err)
{
	struct dsec__rootfs *fs = &k->rootfs;
	struct dsec__rootfs_plan plan = { .image = &k->image, .spec = &k->spec, .first_id = keeper_first_id(k),
					  .dev = k->launcher->dev, .by_path = k->launcher->by_path };
	AUTO_CLOSE int staging = openat(k->dir.fd, "m", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_MAX + 64];
	AUTO_CLOSE int userns = -EBADF;
	int r;

	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", k->agent_pid); /* fits */
	userns = open(path, O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "open \"%s\"", path);
	plan.userns = userns;
	plan.staging = staging;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/top", k->dir.fd); /* fits */
	plan.top_dir = k->spec.top == DSEC_TOP_DISK ? path : NULL;
	r = dsec__rootfs_build(fs, &plan, err);
	if (r < 0)
		return r;
	r = dsec__chan_send_fd(&k->agent, DSEC__FRAME_MOUNT, 0, DSEC__MOUNT_ROOT, NULL, 0, fs->root);
	for (uint32_t i = 0; r == 0 && i < k->image.n_trees; i++)
		r = dsec__chan_send_fd(&k->agent, DSEC__FRAME_MOUNT, 0, i, NULL, 0, fs->trees[i]);
	if (r == 0)
		r = dsec__chan_send_fd(&k->agent, DSEC__FRAME_MOUNT, 0, DSEC__MOUNT_DEV, NULL, 0, fs->dev);
	if (r == 0)
		r = dsec__chan_drain(&k->agent, READY_MS);
	dsec__rootfs_sent(fs);
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_KEEPER, "send mounts to the agent") : 0;
}

static int await_ready(struct keeper *k, struct dsec_error *err)
{
	int64_t end = dsec__deadline(READY_MS);
	const uint8_t *payload;
	struct dsec_frame f;

	for (;;) {
		int r;

		while (dsec__chan_next(&k->agent, &f, &payload)) {
			if (f.type == DSEC__FRAME_AGENT_READY)
				return 0;
			if (f.type == DSEC_FRAME_FAILED)
				return dsec__frame_error(&f, payload, err);
		}
		if (k->agent.eof || k->agent.broken)
			return dsec__fail(err, -ECHILD, DSEC_STEP_KEEPER, "the agent died while it started");
		r = dsec__chan_wait(&k->agent, dsec__time_left(end));
		if (r <= 0)
			return dsec__fail(err, r < 0 ? r : -ETIMEDOUT, DSEC_STEP_KEEPER,
					  "wait %d s for the agent to start", READY_MS / 1000);
		dsec__chan_fill(&k->agent);
	}
}

static int make_agent(struct keeper *k, struct dsec_error *err)
{
	int socket = -EBADF;
	int r = clone_agent(k, &socket, err);

	dsec__chan_init(&k->agent, socket);
	if (r == 0)
		r = map_ids(k, err);
	if (r == 0)
		r = dsec__cgroup_add(&k->cgroup, k->agent_pid, true, err);
	if (r == 0)
		r = dsec__cgroup_delegate(&k->cgroup, keeper_first_id(k), err);
	if (r == 0 && k->launcher->privileged)
		r = send_root(k, err);
	if (r < 0)
		return r;
	dsec__chan_send(&k->agent, DSEC__FRAME_GO, 0, NULL, 0);
	return await_ready(k, err);
}

static struct dsec__cglimits limits_of(const struct keeper *k)
{
	struct dsec__cglimits limits = { k->spec.cpu_millis, k->spec.memory_bytes, k->spec.pids };

	if (!limits.pids && k->launcher->cgroot.pids == DSEC__CG_UNIFIED)
		limits.pids = DSEC__PIDS_DEFAULT; /* elsewhere by the agent's resource limit */
	return limits;
}

/* What only the sandbox itself has, not its shape: its entry, its name, its limits. */
int keeper_describe(struct keeper *k, struct dsec_error *err)
{
	struct dsec__cglimits limits = limits_of(k);
	int r = dsec__sbdir_describe(&k->launcher->state, &k->dir, &k->spec, err);

	return r < 0 ? r : dsec__cgroup_limit(&k->cgroup, &limits, k->spec.flags & DSEC_SANDBOX_LIMITS_OPTIONAL, err);
}

int keeper_create(struct keeper *k, bool spare, struct dsec_error *err)
{
	struct launcher *l = k->launcher;
	struct dsec__cglimits limits = limits_of(k);
	int r = dsec__sbdir_create(&l->state, k->spec.id, &l->cgroot, l->privileged, &k->dir, err);

	if (r < 0)
		return r;
	k->has_dir = true;
	if (k->spec.top == DSEC_TOP_DISK && mkdirat(k->dir.fd, "top", 0700) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir for the writable top");
	if (l->privileged && mkdirat(k->dir.fd, "m", 0700) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "mkdir for mounts");
	r = dsec__image_resolve(k->spec.image, l->state.images, &k->image, err);
	if (r < 0)
		return r;
	r = dsec__cgroup_make(&k->cgroup, &l->cgroot, k->spec.id, &limits, err);
	if (r < 0)
		return r;
	k->has_cgroup = true;
	if (!spare)
		r = keeper_describe(k, err);
	if (r == 0)
		r = make_agent(k, err);
	if (r == 0)
		keeper_group_ahead(k);
	return r;
}

void keeper_destroy(struct keeper *k)
{
	dsec__closep(&k->group_ahead);
	if (k->has_cgroup)
		dsec__cgroup_kill(&k->cgroup);
	if (k->agent_pid > 0) {
		/* Its death is that of its pid namespace: the wait ends when no process of the sandbox is left. */
		(void)syscall(SYS_pidfd_send_signal, k->agent_death, SIGKILL, NULL, 0);
		while (waitpid(k->agent_pid, NULL, 0) < 0 && errno == EINTR)
			;
		k->agent_pid = 0;
	}
	dsec__chan_done(&k->agent);
	/* Groups that stay are found by the next reap, for which the directory has to stay too: our lock on it ends with us. */
	if (k->has_cgroup && dsec__cgroup_remove(&k->cgroup, 5000) < 0)
		k->has_dir = false;
	k->has_cgroup = false;
	if (k->has_dir)
		dsec__sbdir_remove(&k->launcher->state, &k->dir, k->spec.name);
	k->has_dir = false;
}
