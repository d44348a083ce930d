/* SPDX-License-Identifier: MIT */
/*
 * The agent: the process inside a sandbox that starts commands, moves their bytes and reaps what dies. Pid 1 of a
 * container. It trusts the keeper and nothing else: no file of the sandbox is opened or executed but for a command.
 */
#ifndef DSEC__AGENT_H
#define DSEC__AGENT_H

#include <sys/resource.h>
#include <sys/types.h>

#include "../io/chan.h"
#include "../node/spec.h"

struct agent;
struct command;

enum source_kind { SOURCE_KEEPER, SOURCE_SIGNAL, SOURCE_STDOUT, SOURCE_STDERR, SOURCE_STDIN };

/* What an epoll event points to. */
struct source {
	enum source_kind kind;
	int fd;
	uint32_t events; /* asked of epoll; 0 while it is not registered */
	struct command *command;
};

struct command {
	struct command *next;
	uint32_t channel;
	uint32_t kind; /* DSEC_EXEC_* */
	pid_t pid;
	bool tty, ended, reported;
	int wait_status;
	int error; /* negative errno: input or output was lost */
	struct rusage usage;
	struct source out[2], in; /* a terminal has its master in out[0] and a duplicate in `in` */
	int64_t drain[2];         /* after the end: bytes that were in the pipe then; -1 before */
	uint64_t unacked;         /* bytes of output sent and not taken */
	struct dsec__buf input;   /* stdin that the command has not read */
	bool input_eof, input_gone, inside_line;
};

struct agent {
	struct dsec__chan keeper;
	int epoll, signals;
	struct source keeper_source, signal_source;
	struct command *commands;
	const struct dsec__spec *spec;
	struct rlimit files; /* of commands: the agent's own descriptors are three for each of them */
	bool has_groups; /* commands come with a control group */
	bool single_id;  /* only root exists inside: an ordinary user's sandbox */
};

/* Runs until the keeper is gone; then exits, and the kernel ends the sandbox with its pid 1. Never returns. */
_Noreturn void dsec__agent_run(int take_keeper_fd, const struct dsec__spec *spec, bool has_groups, bool single_id);

/* spawn.c: starts the command of a request. group: borrowed; dsec__cgroup_exec_open() says what it is; -EBADF: none. */
int dsec__agent_spawn(struct agent *a, struct command *c, const struct dsec__request *q, int group, bool birth,
		      struct dsec_error *err);

/* file.c: the child that reads or writes a file: stdin and stdout are in place. Exits with an errno value or 0. */
_Noreturn void dsec__agent_file(const struct dsec__request *q, const char *workdir);

/* tree.c: where there are no control groups, kills what can be found of a command's process tree. */
void dsec__agent_kill_tree(pid_t leader, uint32_t channel);
/* The variable that marks processes of a command there: "DSEC_EXEC=<channel>". */
#define DSEC__TREE_MARK "DSEC_EXEC="

#endif
