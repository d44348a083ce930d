/* SPDX-License-Identifier: MIT */
/*
 * Start: the library spawns the helper, which forks the launcher and exits at once, so that the trainer has no child of
 * ours to reap and gets no SIGCHLD later. End: when the trainer's end of the socket closes or the trainer dies.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../io/chan.h"
#include "../linux/rootfs.h"
#include "../linux/security.h"
#include "../util/cleanup.h"
#include "../util/error.h"

/* Whether this process may give a sandbox ids of its own: it has the capabilities and those ids exist here. */
static bool is_privileged(void)
{
	unsigned long long inside, outside, count, top = DSEC__IDS_FIRST + (uint64_t)DSEC__SLOTS * DSEC__IDS_PER_SLOT;
	FILE *map;
	bool mapped = false;

	if (geteuid() != 0 || prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */) != 1)
		return false;
	map = fopen("/proc/self/uid_map", "re");
	while (map && fscanf(map, "%llu %llu %llu", &inside, &outside, &count) == 3)
		mapped |= inside <= DSEC__IDS_FIRST && inside + count >= top;
	if (map)
		(void)fclose(map);
	return mapped;
}

/* Mounts that the host makes later shall appear here, and none of ours there. */
static int private_mounts(struct dsec_error *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "unshare mounts");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "make mounts slaves of the host's");
	return 0;
}

static int prepare(struct launcher *l, const char *root, const char *images, struct dsec_error *err)
{
	struct ucred trainer;
	socklen_t n = sizeof trainer;
	int r = dsec__state_paths(&l->state, root, images, err);

	if (r < 0)
		return r;
	if (getsockopt(l->socket, SOL_SOCKET, SO_PEERCRED, &trainer, &n) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "ask who opened the node");
	l->trainer = (int)syscall(SYS_pidfd_open, trainer.pid, 0);
	if (l->trainer < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "pidfd_open of the process that opened the node");
	r = dsec__state_open(&l->state, err);
	if (r == 0)
		r = dsec__cgroot_open(&l->cgroot, err);
	if (r == 0)
		r = dsec__filter_compile(&l->filter, err);
	l->privileged = is_privileged();
	l->dev = -EBADF;
	if (r == 0 && l->privileged) {
		r = private_mounts(err);
		if (r == 0)
			r = l->dev = dsec__rootfs_dev(err);
	}
	return r < 0 ? r : 0;
}

/* One create: the answer comes from the keeper; a message that is none is dropped with its connection. */
static void on_create(struct launcher *l)
{
	static uint8_t spec[DSEC__SPEC_MESSAGE_MAX];
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { spec, sizeof spec };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	AUTO_CLOSE int conn = -EBADF;
	struct cmsghdr *h;
	struct dsec__chan c;
	struct dsec_error err;
	ssize_t n = recvmsg(l->socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	pid_t pid;

	if (n <= 0)
		return;
	h = CMSG_FIRSTHDR(&msg);
	if (!h || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof conn))
		return;
	memcpy(&conn, CMSG_DATA(h), sizeof conn);
	pid = fork();
	if (pid == 0)
		dsec__keeper_main(l, spec, (size_t)n, TAKE_FD(conn));
	if (pid < 0) {
		(void)dsec__fail_retry(&err, -errno, DSEC_STEP_KEEPER, "fork a keeper");
		dsec__chan_init(&c, TAKE_FD(conn));
		dsec__chan_send(&c, DSEC_FRAME_FAILED, 0, &err, sizeof err);
		dsec__chan_done(&c);
	}
}

static void loop(struct launcher *l, int signals)
{
	for (;;) {
		struct pollfd p[] = { { .fd = l->socket, .events = POLLIN },
				      { .fd = l->trainer, .events = POLLIN },
				      { .fd = signals, .events = POLLIN } };
		struct signalfd_siginfo info;

		if (poll(p, ARRAY_LEN(p), -1) < 0)
			continue; /* EINTR */
		if (p[2].revents) {
			while (read(signals, &info, sizeof info) > 0)
				;
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
		if (p[0].revents & POLLIN)
			on_create(l);
		if (p[1].revents || (p[0].revents & POLLHUP && !(p[0].revents & POLLIN)))
			return;
	}
}

/* Descriptors 0 to 2 on /dev/null, the socket on 3, nothing else; default signals; no terminal, no working directory
   to keep busy; memory that the trainer locked or limits it set stay its own. */
static int detach(void)
{
	sigset_t none;
	int null;

	if (setsid() < 0 || chdir("/") < 0 || prctl(PR_SET_NAME, "dsec-launcher") < 0)
		return -errno;
	(void)umask(022);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return -errno;
	if (close_range(DSEC__LAUNCHER_FD + 1, ~0u, 0) < 0 || fcntl(DSEC__LAUNCHER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL); /* those that cannot be set need not be */
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static void raise_nofile(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l); /* the lower limit serves too, with fewer commands at once */
	}
}

int dsec__launcher_main(const char *root, const char *images)
{
	static struct launcher l;
	struct dsec_error err = { 0 };
	AUTO_CLOSE int signals = -EBADF;
	struct dsec__chan c;
	sigset_t chld;
	pid_t pid = fork();
	int r;

	if (pid != 0)
		return pid < 0; /* the first process has done its part */
	l.pid = getpid();
	l.socket = DSEC__LAUNCHER_FD;
	r = detach();
	if (r < 0)
		return 1;
	raise_nofile();
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	r = signals < 0 ? dsec__fail(&err, -errno, DSEC_STEP_LAUNCHER, "signalfd") : prepare(&l, root, images, &err);
	dsec__chan_init(&c, l.socket);
	dsec__chan_send(&c, r < 0 ? DSEC_FRAME_FAILED : DSEC__FRAME_READY, 0, &err, r < 0 ? sizeof err : 0);
	if (r == 0)
		loop(&l, signals);
	dsec__cgroot_close(&l.cgroot);
	return r < 0;
}
