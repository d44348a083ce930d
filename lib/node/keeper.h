/* SPDX-License-Identifier: MIT */
/*
 * The keeper: one small process per sandbox, outside it. It owns the sandbox's control groups, directory and results; it
 * trusts its own user's processes and nothing that comes from inside.
 *
 *   keeper.c         its loop, its connections, its end
 *   keeper_create.c  from a spec to a sandbox that takes commands
 *   keeper_exec.c    a command from request to result
 */
#ifndef DSEC__KEEPER_H
#define DSEC__KEEPER_H

#include "../image/image.h"
#include "../io/chan.h"
#include "../linux/rootfs.h"
#include "launcher.h"

struct keeper;

enum watch_kind { WATCH_LISTEN, WATCH_AGENT, WATCH_DEATH, WATCH_TRAINER, WATCH_CONN };

struct watch {
	enum watch_kind kind;
	int fd;
	uint32_t events;
	struct conn *conn;
};

/* A connection of the library: commands one at a time, or the handle's control connection. */
struct conn {
	struct conn *next;
	struct dsec__chan chan;
	struct watch watch;
	struct run *run; /* the command that it carries now */
	bool owner;      /* of the creator: its end is the sandbox's, unless retained */
	bool wants_stop; /* to be told when the sandbox is gone */
};

/* What is kept of a stream: its head went out as it came, the tail is held back until the end. */
struct stream {
	uint64_t total, head;
	struct dsec__buf tail;
};

/* One command that runs. */
struct run {
	struct run *next;
	struct conn *conn; /* NULL: nobody waits for it any more */
	uint64_t seq;
	uint32_t kind; /* DSEC_EXEC_* */
	uint64_t flags, head_max, tail_max; /* bytes kept of each stream */
	uint64_t started_ns;
	uint64_t oom_before;  /* out-of-memory kills of the sandbox when it began */
	int64_t deadline_ms;  /* -1: none */
	int64_t give_up_ms;   /* after a kill: when the result is given without the agent; -1 before */
	uint32_t reason;      /* why it was ended by us, 0 if it was not */
	uint64_t owed;        /* bytes of output that the agent has not been told were taken */
	uint64_t stdin_credit;
	bool has_group;
	struct stream streams[2];
};

/* The group of a command that ended while processes of it live on. */
struct lingering {
	uint64_t seq;
	bool doomed; /* we ended the command: they are killed until none is left */
};

struct keeper {
	struct launcher *launcher;
	uint8_t *message; /* of a create that a spare was given; k->spec lies in it */
	struct dsec__spec spec;
	struct dsec__image image;
	struct dsec__sbdir dir;
	struct dsec__cgroup cgroup;
	struct dsec__rootfs rootfs; /* what it holds; the mounts themselves are the agent's */
	bool has_cgroup, has_dir;
	pid_t agent_pid;
	int agent_death; /* pidfd */
	struct dsec__chan agent;
	int epoll;
	struct watch listen_watch, agent_watch, death_watch, trainer_watch;
	struct conn *conns;
	struct run *runs;
	uint64_t seq;
	int group_ahead;     /* the group of the next command, made while nobody waits; -EBADF if there is none */
	bool group_birth;
	struct lingering *lingering;
	size_t n_lingering;
	int64_t sweep_ms; /* when they are looked at next, if any is doomed */
	bool ending;
};

void keeper_watch(struct keeper *k, struct watch *w, uint32_t events);
void keeper_conn_add(struct keeper *k, int take_fd, bool owner);

/* Makes the sandbox, a spare without name and limits; on failure what was made is left to keeper_destroy(). */
int keeper_create(struct keeper *k, bool spare, struct dsec_error *err);
/* Gives a sandbox its entry in the state directory, its name and its limits. */
int keeper_describe(struct keeper *k, struct dsec_error *err);
/* The host's id of the sandbox's root; 0 where it has no ids of its own. */
uint32_t keeper_first_id(const struct keeper *k);
/* Ends the sandbox and removes all that it had on this machine. */
void keeper_destroy(struct keeper *k);

/* Makes the control group of the next command. */
void keeper_group_ahead(struct keeper *k);
void keeper_on_exec(struct keeper *k, struct conn *c, const uint8_t *payload, size_t n);
void keeper_on_exec_frame(struct keeper *k, struct conn *c, const struct dsec_frame *f, const uint8_t *payload);
void keeper_on_agent(struct keeper *k);
/* The connection of a command was lost: the command is ended. */
void keeper_run_orphan(struct keeper *k, struct run *run);
/* Output that waited for the connection has gone: the agent may send more. */
void keeper_run_drained(struct keeper *k, struct run *run);
/* Ends what passed its deadline; returns the milliseconds until the next, -1 for none. */
int keeper_deadlines(struct keeper *k);
/* The sandbox is lost under its commands: they get their results. */
void keeper_runs_lost(struct keeper *k);

#endif
