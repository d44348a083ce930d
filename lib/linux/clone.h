/* SPDX-License-Identifier: MIT */
/* Starting a process that shares the caller's memory, on a stack of its own and born in a control group. */
#ifndef DSEC__CLONE_H
#define DSEC__CLONE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Runs fn(arg) in a new process that shares the caller's memory until it executes a program or exits: the stack and what
 * arg points to must stay until then, and fn must change nothing else. It ends by execve or _exit. Not by vfork, whose
 * caller cannot be woken while the child is stopped.
 *
 * group: directory of a v2 control group that the child is born in, -EBADF for none. The caller's own group and this one
 * must be delegated to the caller (cgroup.procs of both writable). Moving there afterwards would wait for an RCU grace
 * period, some 10 ms on an idle machine.
 * stack, size: memory for the child alone. Returns its pid, or -errno.
 */
pid_t dsec__clone_into(int group, int (*fn)(void *), void *arg, void *stack, size_t size);

/* A fork that is born in `group` (-EBADF: none): 0 in the child, its pid, or -errno. */
pid_t dsec__fork_into(int group);

#endif
