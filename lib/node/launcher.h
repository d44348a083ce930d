/* SPDX-License-Identifier: MIT */
/*
 * The launcher: one small process per opened node, from which keepers are forked, so that the trainer, which may hold
 * hundreds of gigabytes, never is. Its socket carries one kind of message, one datagram each: a spec with one descriptor,
 * the keeper's end of the sandbox's first connection. Answers go over that connection, none comes from the launcher,
 * but for one frame that says whether it started.
 */
#ifndef DSEC__LAUNCHER_H
#define DSEC__LAUNCHER_H

#include <linux/filter.h>
#include <sys/types.h>

#include "../linux/cgroup.h"
#include "state.h"

#define DSEC__LAUNCHER_FD 3          /* where the helper finds its socket */
#define DSEC__SPEC_MESSAGE_MAX (1u << 20) /* bytes of one create */

/* What keepers inherit by fork. */
struct launcher {
	struct dsec__state state;
	struct dsec__cgroot cgroot;
	struct sock_fprog filter;
	bool privileged; /* may map any ids and mount on the host's side */
	int socket;
	int trainer;     /* pidfd of the process that opened the node */
	int dev;         /* dsec__rootfs_dev(), -EBADF without privilege */
	pid_t pid;
};

/* The helper's main: never returns before its work is done. */
int dsec__launcher_main(const char *root, const char *images);

/* keeper.c: runs a sandbox from create to its end, in a process forked for it. */
_Noreturn void dsec__keeper_main(struct launcher *l, const void *spec, size_t n, int take_conn);

#endif
