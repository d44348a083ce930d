/* SPDX-License-Identifier: MIT */
/*
 * Ending a command's process tree where there are no control groups (an ordinary user without delegation). A process is
 * the command's if it leads or belongs to the command's session, descends from one that is, or carries its mark in the
 * environment it was executed with. One that left the session, was orphaned and cleared its environment is not found
 * before the sandbox ends: the probe item cgroup_exec says so.
 */
#include "agent.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../util/cleanup.h"

#define STOP_PASSES 10 /* each stops all it sees: a second finds what was started meanwhile, a third hardly any */
#define KILL_PASSES 50 /* of a millisecond and more each: what cannot die by then waits for a disk, and we do not for it */

static ssize_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
	char path[64];
	AUTO_CLOSE int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file); /* fits */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	if (n >= 0)
		buf[n] = 0;
	return n;
}

/* A shell hands variables on in an order of its own. A longer environment than is read here hides the mark at its end. */
static bool has_mark(pid_t pid, uint32_t channel)
{
	static char env[256 << 10];
	char want[32];
	ssize_t n;

	(void)snprintf(want, sizeof want, DSEC__TREE_MARK "%u", channel); /* fits */
	n = read_proc(pid, "environ", env, sizeof env);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(env + at) + 1)
		if (strcmp(env + at, want) == 0)
			return true;
	return false;
}

/* Parent, session and state of a live process; false when it is gone or a zombie. */
static bool relations(pid_t pid, pid_t *ret_parent, pid_t *ret_session, char *ret_state)
{
	char stat[512];
	const char *p;
	int pgrp;

	if (read_proc(pid, "stat", stat, sizeof stat) <= 0)
		return false;
	p = strrchr(stat, ')'); /* the name before it may hold anything */
	return p && sscanf(p + 1, " %c %d %d %d", ret_state, ret_parent, &pgrp, ret_session) == 4 && *ret_state != 'Z' &&
	       *ret_state != 'X';
}

static bool belongs(pid_t pid, pid_t leader, uint32_t channel)
{
	pid_t parent, session;
	char state;

	for (int depth = 0; pid > 1 && depth < 1000; depth++) {
		if (pid == leader)
			return true;
		if (!relations(pid, &parent, &session, &state))
			return false;
		if (session == leader || has_mark(pid, channel))
			return true;
		pid = parent;
	}
	return false;
}

/* Sends a signal to each live process of the command, but for those in state `but`; returns how many they were. */
static int signal_tree(pid_t leader, uint32_t channel, int signo, char but)
{
	AUTO_CLOSEDIR DIR *dir = opendir("/proc");
	int n = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;
		pid_t parent, session;
		char state;

		/* pid 1 is the agent, and in its namespace a pid seen now cannot be recycled before it is reaped, which only
		   the agent or the process's own parent does */
		if (pid > 1 && relations(pid, &parent, &session, &state) && state != but && belongs(pid, leader, channel))
			n += kill(pid, signo) == 0;
	}
	return n;
}

void dsec__agent_kill_tree(pid_t leader, uint32_t channel)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	/* Stopped first: what is stopped starts no more, and its descendants are still known by their parents. */
	for (int i = 0; i < STOP_PASSES && signal_tree(leader, channel, SIGSTOP, 'T') > 0; i++)
		;
	/* Then until none lives: a limit on processes counts them as long as they do. */
	for (int i = 0; i < KILL_PASSES && signal_tree(leader, channel, SIGKILL, 0) > 0; i++)
		(void)nanosleep(&pause, NULL);
}
