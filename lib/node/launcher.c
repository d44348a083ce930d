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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

#define SPARE_MS 5000 /* without a create, spares are let go */

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

#define FILTER_BYTES (64u << 10) /* what a pipe holds; a filter has about 4 KiB */

static _Noreturn void compile_child(int to)
{
	const struct rlimit cpu = { 5, 5 }; /* seconds, for a millisecond's work: without memory the compiler may loop */
	struct dsec_error err = { 0 };
	struct sock_fprog filter, again;
	size_t n;

	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(2);
	if (dsec__filter_compile(&filter, &err) < 0 || dsec__filter_compile(&again, &err) < 0)
		_exit(write(to, &err, sizeof err) == sizeof err ? 1 : 2);
	n = filter.len * sizeof *filter.filter;
	/* Twice, since without memory the compiler has also been seen to leave out rules without a word. */
	if (filter.len != again.len || memcmp(filter.filter, again.filter, n) != 0)
		_exit(2);
	_exit(n > FILTER_BYTES || write(to, filter.filter, n) != (ssize_t)n ? 2 : 0);
}

/* In a child: what the compiler leaves of the heap would cost every keeper pages of its own. */
static int compile_filter(struct sock_fprog *ret_filter, struct dsec_error *err)
{
	AUTO_FREE uint8_t *code = malloc(FILTER_BYTES);
	struct dsec_error e;
	int fds[2], status = -1;
	ssize_t n;
	pid_t pid;

	if (!code)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "the filter");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "pipe2");
	pid = fork();
	if (pid < 0) {
		int r = dsec__fail(err, -errno, DSEC_STEP_SECURITY, "fork to compile the filter");

		dsec__closep(&fds[0]);
		dsec__closep(&fds[1]);
		return r;
	}
	if (pid == 0)
		compile_child(fds[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) /* it fits into the pipe */
		;
	dsec__closep(&fds[1]);
	n = read(fds[0], code, FILTER_BYTES);
	dsec__closep(&fds[0]);
	if (status == 0 && n > 0 && n % (ssize_t)sizeof *ret_filter->filter == 0) {
		ret_filter->len = (unsigned short)((size_t)n / sizeof *ret_filter->filter);
		ret_filter->filter = realloc(code, (size_t)n); /* shrinks in place */
		(void)TAKE_PTR(code);
		return ret_filter->filter ? 0 : dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "the filter");
	}
	if (n != sizeof e)
		return dsec__fail(err, -EAGAIN, DSEC_STEP_SECURITY, "compile the filter in a child");
	memcpy(&e, code, sizeof e);
	e.text[sizeof e.text - 1] = 0;
	*err = e;
	return e.code < 0 ? e.code : -EPROTO;
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
	l->privileged = is_privileged();
	l->has_ptrace = l->privileged && prctl(PR_CAPBSET_READ, 19 /* CAP_SYS_PTRACE */) == 1;
	l->by_path = secure_getenv("DSEC_TEST_LAYERS_BY_PATH");
	l->dev = -EBADF;
	if (l->privileged)
		r = private_mounts(err); /* first: what is opened before lies in mounts that an overlay cannot use */
	if (r == 0)
		r = dsec__state_open(&l->state, err);
	if (r == 0)
		r = dsec__cgroot_open(&l->cgroot, err);
	if (r == 0)
		r = compile_filter(&l->filter, err);
	if (r == 0 && l->privileged)
		r = l->dev = dsec__rootfs_dev(err);
	return r < 0 ? r : 0;
}

ssize_t dsec__launcher_receive(int socket, void *buf, size_t size, int *ret_conn)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { buf, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (!h || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof *ret_conn))
		return -EBADMSG;
	memcpy(ret_conn, CMSG_DATA(h), sizeof *ret_conn);
	return n;
}

static int forward(int spare, const void *spec, size_t n, int conn)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { 0 };
	struct iovec iov = { (void *)(uintptr_t)spec, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof conn);
	memcpy(CMSG_DATA(h), &conn, sizeof conn);
	return sendmsg(spare, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static char *title;
static size_t title_size;

void dsec__title_init(int argc, char **argv)
{
	title = argv[0];
	title_size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]); /* the kernel lays them in a row */
}

void dsec__title_set(const char *text)
{
	if (!title)
		return;
	memset(title, 0, title_size);
	(void)snprintf(title, title_size, "%s", text); /* a longer one is cut */
}

void dsec__launcher_leave(struct launcher *l, const char *name)
{
	(void)prctl(PR_SET_NAME, name);
	dsec__title_set(name);
	dsec__closep(&l->socket);
	dsec__closep(&l->signals);
	for (size_t i = 0; i < DSEC__SPARES; i++)
		dsec__closep(&l->spares[i]);
}

/* A spare sees its socket end, and removes itself. */
static void spares_drop(struct launcher *l)
{
	for (size_t i = 0; i < DSEC__SPARES; i++)
		dsec__closep(&l->spares[i]);
}

static bool spare_use(struct launcher *l, const void *spec, size_t n, int conn)
{
	for (size_t i = 0; i < DSEC__SPARES; i++) {
		AUTO_CLOSE int spare = TAKE_FD(l->spares[i]);

		if (spare >= 0 && forward(spare, spec, n, conn) == 0)
			return true; /* oldest first: it is the likeliest to be finished */
	}
	return false;
}

/* Remembers what was asked for; a change of shape lets go of the spares when it proves to last. */
static bool note_shape(struct launcher *l, const uint8_t *spec, size_t n)
{
	struct dsec__spec s;
	bool same;
	uint8_t *copy;

	if (dsec__spec_decode(&s, spec, n) < 0)
		return false; /* the keeper refuses it */
	same = l->shape_message && dsec__spec_same_shape(&s, &l->shape);
	dsec__spec_done(&s);
	l->repeated = same;
	if (same)
		return true;
	copy = malloc(n);
	spares_drop(l);
	if (!copy)
		return false;
	dsec__spec_done(&l->shape);
	free(l->shape_message);
	memcpy(copy, spec, n);
	l->shape_message = copy;
	if (dsec__spec_decode(&l->shape, copy, n) < 0) {
		free(copy); /* out of memory */
		l->shape_message = NULL;
	}
	return false;
}

/* One create: the answer comes from the keeper; a message that is none is dropped with its connection. False at the end. */
static bool on_create(struct launcher *l)
{
	static uint8_t spec[DSEC__SPEC_MESSAGE_MAX];
	AUTO_CLOSE int conn = -EBADF;
	struct dsec__chan c;
	struct dsec_error err;
	ssize_t n = dsec__launcher_receive(l->socket, spec, sizeof spec, &conn);
	pid_t pid;

	if (n <= 0 || (note_shape(l, spec, (size_t)n) && spare_use(l, spec, (size_t)n, conn)))
		return n != 0;
	pid = fork();
	if (pid == 0)
		dsec__keeper_main(l, spec, (size_t)n, TAKE_FD(conn), -EBADF);
	if (pid < 0) {
		(void)dsec__fail_retry(&err, -errno, DSEC_STEP_KEEPER, "fork a keeper");
		dsec__chan_init(&c, TAKE_FD(conn));
		dsec__chan_send(&c, DSEC_FRAME_FAILED, 0, &err, sizeof err);
		dsec__chan_done(&c);
	}
	return true;
}

/* Makes one spare if one is wanted; nobody waits for it, so a failure is left to the next create to tell. */
static bool spare_make(struct launcher *l)
{
	struct dsec__spec spec = l->shape;
	struct dsec__buf b = { 0 };
	char id[DSEC__ID_LEN + 1];
	size_t i = 0;
	int pair[2];
	pid_t pid;

	while (i < DSEC__SPARES && l->spares[i] >= 0)
		i++;
	if (i == DSEC__SPARES || !l->repeated || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	dsec__id_new(id);
	spec.id = id;
	spec.name = spec.run = NULL;
	dsec__spec_encode(&b, &spec);
	pid = b.failed ? -1 : fork();
	if (pid == 0) {
		dsec__closep(&pair[0]);
		dsec__keeper_main(l, b.data, b.len, -EBADF, pair[1]);
	}
	dsec__buf_done(&b);
	dsec__closep(&pair[1]);
	if (pid < 0)
		dsec__closep(&pair[0]);
	else
		l->spares[i] = pair[0];
	return pid >= 0;
}

static void reap(struct launcher *l)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof info) > 0)
		;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void loop(struct launcher *l)
{
	for (;;) {
		struct pollfd p[] = { { .fd = l->socket, .events = POLLIN },
				      { .fd = l->trainer, .events = POLLIN },
				      { .fd = l->signals, .events = POLLIN } };
		int n = poll(p, ARRAY_LEN(p), 0);

		if (n == 0 && spare_make(l))
			continue; /* only when nothing else is to be done */
		if (n == 0)
			n = poll(p, ARRAY_LEN(p), l->repeated ? SPARE_MS : -1);
		if (n == 0) {
			spares_drop(l);
			l->repeated = false;
		}
		if (p[2].revents)
			reap(l);
		if (p[1].revents || (p[0].revents && !on_create(l)))
			return;
	}
}

/* Descriptors 0 to 2 on /dev/null, the socket on 3, nothing else; default signals; no terminal, no working directory
   to keep busy; memory that the trainer locked or limits it set stay its own. */
static int detach(void)
{
	static const unsigned long default_action[4]; /* the kernel's structure, all zero: SIG_DFL */
	sigset_t none;
	int null;

	if (setsid() < 0 || chdir("/") < 0 || prctl(PR_SET_NAME, "dsec-launcher") < 0)
		return -errno;
	(void)umask(022);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return -errno;
	if (close_range(DSEC__LAUNCHER_FD + 1, ~0u, 0) < 0 || fcntl(DSEC__LAUNCHER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	/* All 64, also the two that libc keeps for itself and so would not set: a trainer may have been started with any
	   of them ignored, and commands inherit that. Those that cannot be set need not be. */
	for (int s = 1; s <= 64; s++)
		(void)syscall(SYS_rt_sigaction, s, default_action, NULL, 8);
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
	char own_root[PATH_MAX], own_images[PATH_MAX];
	struct dsec_error err = { 0 };
	struct dsec__chan c;
	sigset_t chld;
	pid_t pid = fork();
	int r;

	if (pid != 0)
		return pid < 0; /* the first process has done its part */
	l.ending = mmap(NULL, sizeof *l.ending, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l.ending == MAP_FAILED)
		return 1;
	l.socket = DSEC__LAUNCHER_FD;
	for (size_t i = 0; i < ARRAY_LEN(l.cgroot.fd); i++)
		l.cgroot.fd[i] = -EBADF;
	(void)snprintf(own_root, sizeof own_root, "%s", root); /* checked by the library, which passed them */
	(void)snprintf(own_images, sizeof own_images, "%s", images);
	dsec__title_set("dsec-launcher");
	r = detach();
	if (r < 0)
		return 1;
	raise_nofile();
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	for (size_t i = 0; i < DSEC__SPARES; i++)
		l.spares[i] = -EBADF;
	l.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	r = l.signals < 0 ? dsec__fail(&err, -errno, DSEC_STEP_LAUNCHER, "signalfd") : prepare(&l, own_root, own_images, &err);
	dsec__chan_init(&c, l.socket);
	if (r < 0)
		dsec__chan_send(&c, DSEC_FRAME_FAILED, 0, &err, sizeof err);
	else
		dsec__chan_send(&c, DSEC__FRAME_READY, 0, &(uint8_t){ l.privileged }, 1);
	if (c.broken)
		return 1; /* the library sees the socket end, which is as good an answer */
	if (r == 0)
		loop(&l);
	spares_drop(&l);
	atomic_store(l.ending, true);
	dsec__cgroot_close(&l.cgroot);
	return r < 0;
}
