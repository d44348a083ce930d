/* SPDX-License-Identifier: MIT */
/*
 * Starting the launcher. The helper program is written into a sealed memory file and spawned from it: nothing is installed
 * beside the library, and nobody can change what runs. posix_spawn shares the caller's memory until the new program runs,
 * so that a trainer of any size is never copied.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../node/launcher.h"
#include "../util/cleanup.h"
#include "../util/error.h"
#include "../util/fs.h"
#include "core.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* from Linux 6.3, where leaving it out may be an error */
#endif

#define START_MS 30000
#define SEAL_TRIES 100
#define HIGH_FD 10 /* above what the spawned program finds in place, whatever the trainer has closed of 0 to 2 */

extern const char dsec__helper_start[], dsec__helper_end[];
extern char **environ;

static int move_high(int take_fd)
{
	int fd = take_fd < 0 ? -1 : fcntl(take_fd, F_DUPFD_CLOEXEC, HIGH_FD);

	dsec__closep(&take_fd);
	return fd;
}

/* A page of the file that someone else looks at for a moment (to move or merge it) makes it busy. */
static int seal(int fd)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int r;

	for (int i = 0; i < SEAL_TRIES; i++) {
		r = fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		if (r == 0 || errno != EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return r < 0 ? -errno : 0;
}

static int helper_file(struct dsec_error *err)
{
	size_t size = (uintptr_t)dsec__helper_end - (uintptr_t)dsec__helper_start;
	AUTO_CLOSE int fd = memfd_create("dsec-helper", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	int r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("dsec-helper", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fd = move_high(TAKE_FD(fd));
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "memfd_create (is vm.memfd_noexec set to 2?)");
	r = dsec__write_all(fd, dsec__helper_start, size);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_LAUNCHER, "write the helper to memory");
	r = seal(fd);
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_LAUNCHER, "seal the helper: %s", strerror(-r)) : TAKE_FD(fd);
}

static int spawn(int file, int socket, const struct dsec__state *st, struct dsec_error *err)
{
	char path[32], name[] = "dsec-launcher";
	char *argv[] = { name, (char *)(uintptr_t)st->root, (char *)(uintptr_t)st->images, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file); /* fits */
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return dsec__fail(err, -r, DSEC_STEP_LAUNCHER, "posix_spawn_file_actions_init");
	r = posix_spawn_file_actions_adddup2(&actions, socket, DSEC__LAUNCHER_FD);
	if (!r)
		r = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r)
		return dsec__fail(err, -r, DSEC_STEP_LAUNCHER, "posix_spawn of the helper");
	/* It exits at once; its child is the launcher. A host that ignores SIGCHLD, or reaps all, has done this for us. */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* The launcher's one frame. */
static int await(int fd, bool *ret_has_ids, struct dsec_error *err)
{
	struct dsec__chan c;
	const uint8_t *payload;
	struct dsec_frame f;
	int r;

	dsec__chan_init(&c, fd);
	r = dsec__chan_wait(&c, START_MS);
	if (r > 0)
		dsec__chan_fill(&c);
	if (r <= 0)
		r = dsec__fail(err, r < 0 ? r : -ETIMEDOUT, DSEC_STEP_LAUNCHER, "wait for the launcher");
	else if (!dsec__chan_next(&c, &f, &payload))
		r = dsec__fail(err, -EPIPE, DSEC_STEP_LAUNCHER, "the launcher ended while it started");
	else if (f.type != DSEC__FRAME_READY || f.len != 1)
		r = dsec__frame_error(&f, payload, err);
	else
		r = 0;
	if (r == 0)
		*ret_has_ids = payload[0];
	c.fd = -EBADF; /* the caller's */
	dsec__chan_done(&c);
	return r;
}

int dsec__launcher_start(const struct dsec__state *st, bool *ret_has_ids, struct dsec_error *err)
{
	AUTO_CLOSE int ours = -EBADF;
	AUTO_CLOSE int theirs = -EBADF;
	AUTO_CLOSE int file = helper_file(err);
	int size = 4 << 20, pair[2];
	int r;

	if (file < 0)
		return file;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "socketpair");
	ours = move_high(pair[0]);
	theirs = move_high(pair[1]);
	if (ours < 0 || theirs < 0)
		return dsec__fail(err, -errno, DSEC_STEP_LAUNCHER, "move a descriptor");
	/* Room for a create with a large environment; without the privilege for it the system's own limit serves. */
	if (setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
		(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	r = spawn(file, theirs, st, err);
	if (r < 0)
		return r;
	dsec__closep(&theirs);
	r = await(ours, ret_has_ids, err);
	return r < 0 ? r : TAKE_FD(ours);
}
