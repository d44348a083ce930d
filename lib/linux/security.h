/* SPDX-License-Identifier: MIT */
/*
 * What a process inside a sandbox may not do: system call filter, capabilities, resource limits. Tables with the reason
 * beside each row. Compiled once by the launcher, applied once by each sandbox's agent, inherited by all commands.
 */
#ifndef DSEC__SECURITY_H
#define DSEC__SECURITY_H

#include <dsec/error.h>

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* Compiles the filter table to BPF with libseccomp; release with dsec__filter_done(). */
int dsec__filter_compile(struct sock_fprog *ret_prog, struct dsec_error *err);
void dsec__filter_done(struct sock_fprog *prog);

/*
 * Locks the calling process down, in stages (each says what holds afterwards): resource limits, securebits untouched,
 * empty inheritable and ambient sets, bounding set to the table, permitted and effective sets to the table,
 * no-new-privs, filter. The caller is root of its user namespace, single-threaded, and goes on to start commands: it
 * keeps CAP_KILL, CAP_SETUID, CAP_SETGID and what else the table has.
 */
int dsec__security_apply(const struct sock_fprog *filter, struct dsec_error *err);

#endif
