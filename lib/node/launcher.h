/* SPDX-License-Identifier: MIT */
/*
 * The launcher: one small process per opened node, from which keepers are forked, so that the trainer, which may hold
 * hundreds of gigabytes, never is. Its socket carries one kind of message, one datagram each: a spec with one descriptor,
 * the keeper's end of the sandbox's first connection. Answers go over that connection, none comes from the launcher,
 * but for one frame that says whether it started.
 *
 * Spares: sandboxes are asked for in runs of the same shape. After two in a row the launcher keeps a few finished ones of
 * that shape ahead, so that a create waits for a name and limits only. Unused ones are let go after some seconds.
 */
#ifndef DSEC__LAUNCHER_H
#define DSEC__LAUNCHER_H

#include <linux/filter.h>
#include <sys/types.h>

#include "../linux/cgroup.h"
#include "state.h"

#define DSEC__LAUNCHER_FD 3               /* where the helper finds its socket */
#define DSEC__SPEC_MESSAGE_MAX (1u << 20) /* bytes of one create */
#define DSEC__SPARES 2

/* What keepers inherit by fork. */
struct launcher {
	struct dsec__state state;
	struct dsec__cgroot cgroot;
	struct sock_fprog filter;
	bool privileged; /* may map any ids and mount on the host's side */
	bool has_ptrace; /* and reach the namespaces of a process of another id */
	bool by_path;    /* $DSEC_TEST_LAYERS_BY_PATH: overlays as on kernels that take no descriptors */
	int socket;
	int trainer;     /* pidfd of the process that opened the node */
	int signals;
	int dev;         /* dsec__rootfs_dev(), -EBADF without privilege */
	/* Shared with the keepers: set before the launcher removes the directories they have in common. Whoever comes last,
	   launcher or keeper, finds it set and them empty. */
	_Atomic bool *ending;
	int spares[DSEC__SPARES]; /* sockets of spare keepers, -EBADF where there is none */
	uint8_t *shape_message;   /* the last create, and its decoded spec */
	struct dsec__spec shape;
	bool repeated;            /* the one before was of the same shape */
};

/* The helper's main: never returns before its work is done. */
int dsec__launcher_main(const char *root, const char *images);

/* Receives a create: its bytes and its connection. Bytes, or 0 at the end, or -errno; -EBADMSG for no create. */
ssize_t dsec__launcher_receive(int socket, void *buf, size_t size, int *ret_conn);
/* Lets go of what is the launcher's own, in a keeper, and gives the process its name for ps. */
void dsec__launcher_leave(struct launcher *l, const char *name);
/* Writes over what ps shows of the arguments: the paths of the host are not for sandboxes, which see their pid 1. */
void dsec__title_set(const char *title);
void dsec__title_init(int argc, char **argv);

/*
 * keeper.c: runs a sandbox from create to its end, in a process forked for it. Either conn is the connection of the create,
 * or spare the socket over which one will come.
 */
_Noreturn void dsec__keeper_main(struct launcher *l, const void *spec, size_t n, int take_conn, int take_spare);

#endif
