/* SPDX-License-Identifier: MIT */
/*
 * The state directory, which is the truth about a node.
 *
 *   <root>/node        "dsec-node 1" and the boot id
 *   <root>/shm         counters and the table of id ranges, mapped by every process of the node
 *   <root>/mnt         an empty directory, where agents attach their root in their own mount namespaces
 *   <root>/names/NAME  link whose text is the id
 *   <root>/sb/<id>/    spec, keeper, sock, m/ (where its layers are put together), top/ (with DSEC_TOP_DISK)
 *
 * A sandbox lives exactly as long as its keeper holds its lock on <id>/keeper: the kernel lets go of it whatever ends the
 * keeper, so no pid is ever trusted or signalled. A directory is made as .new-<id>, complete, and renamed. Nothing is
 * synced: the directory means nothing after a reboot, and until then the page cache survives the death of any process.
 */
#ifndef DSEC__STATE_H
#define DSEC__STATE_H

#include <dsec/node.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "spec.h"

#define DSEC__SLOTS 16384u
#define DSEC__IDS_PER_SLOT 65536u
/* Slot n has the host ids from here + n * 65536: above what adduser and subuid files hand out, below the 1.8e9 where
   systemd's reserved ranges begin. */
#define DSEC__IDS_FIRST 0x20000000u

struct dsec__shm {
	uint64_t magic;
	_Atomic uint64_t created, create_failed, execs, reaped;
	/* 0: free, else the owner's random number, which its keeper file holds too */
	_Atomic uint64_t slots[DSEC__SLOTS];
};

struct dsec__state {
	char root[PATH_MAX], images[PATH_MAX];
	int root_fd, sb_fd, names_fd;
	struct dsec__shm *shm;
};

/* Resolves the two directories from options and environment. */
int dsec__state_paths(struct dsec__state *st, const char *root, const char *images, struct dsec_error *err);
/* Makes what is missing and opens it. st holds the paths; on failure nothing is open. */
int dsec__state_open(struct dsec__state *st, struct dsec_error *err);
void dsec__state_close(struct dsec__state *st);

struct dsec__cgroot;

/* The directory of a sandbox that is being made or lives; the keeper's own. */
struct dsec__sbdir {
	char id[DSEC__ID_LEN + 1];
	int fd;          /* its directory */
	int lock;        /* its keeper file, locked */
	int32_t slot;    /* -1: none */
	uint64_t nonce;
	bool named;
	const struct dsec__cgroot *cgroot; /* borrowed; recorded so that a reaper finds the groups */
};

void dsec__id_new(char ret_id[DSEC__ID_LEN + 1]);
/* cgroot may be NULL. want_slot: with an id range. On failure nothing is left. */
int dsec__sbdir_create(struct dsec__state *st, const char *id, const struct dsec__cgroot *cgroot, bool want_slot,
		       struct dsec__sbdir *ret_dir, struct dsec_error *err);
/* Writes its spec and claims its name. */
int dsec__sbdir_describe(struct dsec__state *st, struct dsec__sbdir *d, const struct dsec__spec *spec,
			 struct dsec_error *err);
/* Makes it visible under its id. */
int dsec__sbdir_publish(struct dsec__state *st, const struct dsec__sbdir *d, struct dsec_error *err);
/* Gives back name, slot and directory. */
void dsec__sbdir_remove(struct dsec__state *st, struct dsec__sbdir *d, const char *name);

/* Opens the directory of a sandbox by id or name. -ENOENT when there is none; -EINVAL for neither. */
int dsec__sbdir_find(struct dsec__state *st, const char *id_or_name, char ret_id[DSEC__ID_LEN + 1],
		     struct dsec_error *err);
/* Whether a keeper holds the lock of this directory: 1, 0, or -errno when that cannot be found out. */
int dsec__sbdir_alive(int dir_fd);
/* Whether anything of that id is left, or may be. */
bool dsec__sbdir_remains(const struct dsec__state *st, const char *id);
/* Reads and decodes the spec; the buffer holds its strings. */
int dsec__sbdir_spec(int dir_fd, struct dsec__buf *buf, struct dsec__spec *ret_spec);
int32_t dsec__sbdir_keeper_pid(int dir_fd);

/* [a-z0-9][a-z0-9._-]{0,62} */
bool dsec__name_ok(const char *name);

/* Removes all that dead sandboxes left; returns how many there were. */
int dsec__state_reap(struct dsec__state *st, struct dsec_error *err);

#endif
