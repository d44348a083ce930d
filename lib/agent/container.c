/* SPDX-License-Identifier: MIT */
/*
 * Becoming pid 1 of a container. Stages, each with what holds after it:
 *
 *   wait      the keeper has mapped ids, placed us in groups and sent mounts   must not touch ids before
 *   identity  root of the user namespace, own cgroup view, host name
 *   network   the loopback interface is up
 *   root      nothing of the host can be reached by path
 *   lock      limits, capabilities, no new privileges, system call filter      must be last
 *
 * From then on it is the agent (agent.c). Dying at any point ends the sandbox; the keeper removes the rest.
 */
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../linux/security.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "agent.h"

/* Takes mounts until the keeper says go. The keeper's end closing means that it gave up. */
static void stage_wait(struct dsec__chan *c, struct dsec__rootfs *fs)
{
	const uint8_t *payload;
	struct dsec_frame f;

	for (;;) {
		while (dsec__chan_next(c, &f, &payload)) {
			if (f.type == DSEC__FRAME_GO)
				return;
			if (f.type != DSEC__FRAME_MOUNT)
				continue;
			if (f.channel == DSEC__MOUNT_ROOT)
				fs->root = dsec__chan_claim_fd(c);
			else if (f.channel == DSEC__MOUNT_DEV)
				fs->dev = dsec__chan_claim_fd(c);
			else if (f.channel < ARRAY_LEN(fs->trees))
				fs->trees[f.channel] = dsec__chan_claim_fd(c);
		}
		if (c->eof || c->broken || dsec__chan_wait(c, -1) < 0)
			_exit(1);
		dsec__chan_fill(c);
	}
}

static int stage_identity(const struct launcher *l, const struct dsec__spec *spec, struct dsec_error *err)
{
	if (l->privileged && setgroups(0, NULL) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "drop supplementary groups");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IDS, "become root of the user namespace");
	/* Again: a change of ids clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "ask for death with the keeper");
	if (unshare(CLONE_NEWCGROUP) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_CLONE, "unshare the cgroup namespace");
	if (sethostname(spec->hostname, strlen(spec->hostname)) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_OPTIONS, "hostname: set \"%s\"", spec->hostname);
	return 0;
}

static int stage_network(const struct dsec__spec *spec, struct dsec_error *err)
{
	AUTO_CLOSE int fd = -EBADF;
	struct ifreq lo = { .ifr_name = "lo" };

	if (spec->network != DSEC_NETWORK_NONE)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	lo.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_NETWORK, "bring up the loopback interface");
	return 0;
}

static int stage_root(const struct dsec__container *b, struct dsec__rootfs *fs, int staging, struct dsec_error *err)
{
	const struct dsec__state *st = &b->launcher->state;
	char path[PATH_MAX + 64];
	int r = 0;

	if (!b->launcher->privileged) {
		struct dsec__rootfs_plan plan = { .image = b->image, .spec = b->spec, .userns = -EBADF, .dev = -EBADF,
						  .staging = staging, .by_path = b->launcher->by_path };

		(void)snprintf(path, sizeof path, "%s/sb/.new-%s/top", st->root, b->spec->id); /* fits */
		plan.top_dir = b->spec->top == DSEC_TOP_DISK ? path : NULL;
		r = dsec__rootfs_build(fs, &plan, err);
	}
	return r < 0 ? r : dsec__rootfs_enter(fs, b->image, b->spec, staging, err);
}

/* The control group's limit takes precedence; this one counts the processes of each user of the sandbox. */
static int stage_processes(const struct dsec__spec *spec, struct dsec_error *err)
{
	const struct rlimit limit = { DSEC__PIDS_DEFAULT, DSEC__PIDS_DEFAULT };

	if (spec->pids || setrlimit(RLIMIT_NPROC, &limit) == 0)
		return 0;
	return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "limit the number of processes");
}

static int make_workdir(const struct dsec__spec *spec, struct dsec_error *err)
{
	char part[PATH_MAX];

	(void)snprintf(part, sizeof part, "%s", spec->workdir); /* its length was checked with the options */
	for (size_t n = strlen(part); n > 1 && part[n - 1] == '/'; n--)
		part[n - 1] = 0; /* the last part is the command's user's */
	for (char *p = part + 1; part[1]; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0755) == 0) {
			if (!c && spec->uid && chown(part, spec->uid, spec->gid) < 0)
				return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "workdir: chown \"%s\"", part);
		} else if (errno != EEXIST) {
			return dsec__fail(err, -errno, DSEC_STEP_MOUNT, "workdir: mkdir \"%s\"", part);
		}
		*p = c;
		if (!c)
			break;
	}
	return 0;
}

/* Only the connection is kept, on descriptor 3: what the keeper holds open is not ours to see. The state directory is
   opened while we may: the sandbox's root has no right to it. */
static int stage_descriptors(const struct dsec__container *b)
{
	char path[PATH_MAX + 8];

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NAME, "dsec-agent") < 0)
		return -errno;
	dsec__title_set("dsec-agent");
	if (b->socket != 3 && dup2(b->socket, 3) < 0)
		return -errno;
	if (close_range(4, ~0u, 0) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	(void)snprintf(path, sizeof path, "%s/mnt", b->launcher->state.root); /* fits */
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void dsec__container_main(const struct dsec__container *b)
{
	struct dsec_error err = { 0 };
	struct dsec__rootfs fs;
	struct dsec__chan c;
	int staging = stage_descriptors(b);
	int r;

	if (staging < 0)
		_exit(1);
	dsec__rootfs_none(&fs);
	dsec__chan_init(&c, 3);
	stage_wait(&c, &fs);
	(void)umask(022);
	r = stage_identity(b->launcher, b->spec, &err);
	if (r == 0)
		r = stage_network(b->spec, &err);
	if (r == 0)
		r = stage_root(b, &fs, staging, &err);
	dsec__rootfs_done(&fs);
	dsec__closep(&staging);
	if (r == 0)
		r = make_workdir(b->spec, &err);
	if (r == 0)
		r = stage_processes(b->spec, &err);
	if (r == 0)
		r = dsec__security_apply(&b->launcher->filter, &err);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = dsec__fail(&err, -errno, DSEC_STEP_SECURITY, "become untraceable");
	if (r < 0) {
		dsec__chan_send(&c, DSEC_FRAME_FAILED, 0, &err, sizeof err);
		_exit(1);
	}
	dsec__agent_run(3, b->spec, b->has_groups, !b->launcher->privileged);
}
