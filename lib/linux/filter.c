/* SPDX-License-Identifier: MIT */
/*
 * The system call filter: from the tables of syscalls.h to BPF, with libseccomp.
 *
 * One libseccomp filter cannot say "allow these arguments, refuse all others with another error than the default", nor
 * compare 32 bits for inequality. So there are three, chained into one program: where one would return its default, it
 * jumps to the next. The order is that of the tables: traps, allowed, refused.
 *
 * 32-bit x86 is part of each. Its socketcall has the arguments in memory, where a filter cannot see them, so there
 * socket() and socketpair() are refused as a whole. The x32 variant and other architectures: nothing exists.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "security.h"
#include "syscalls.h"

#define PARTS 3
#define ABSENT SCMP_ACT_ERRNO(ENOSYS)

static void ctx_done(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
	*ctx = NULL;
}

#define AUTO_CTX CLEANUP(ctx_done)

/* Adds one rule; a name that this libseccomp or this architecture lacks is no failure. */
static int add(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned int n, const struct scmp_arg_cmp *args,
	       struct dsec_error *err)
{
	int nr = seccomp_syscall_resolve_name(name);
	int r;

	if (nr == __NR_SCMP_ERROR || action == ABSENT)
		return 0; /* ABSENT is the default where it is used */
	r = seccomp_rule_add_array(ctx, action, nr, n, args);
	/* A call that only the other architecture has. */
	if (r == -EDOM)
		return 0;
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_SECURITY, "add a rule for \"%s\"", name) : 0;
}

static int add_names(scmp_filter_ctx ctx, uint32_t action, const char *names, struct dsec_error *err)
{
	AUTO_FREE char *copy = strdup(names);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "copy a row of system calls");
	for (char *s = strtok_r(copy, " ", &save); s && r == 0; s = strtok_r(NULL, " ", &save))
		r = add(ctx, action, s, 0, NULL, err);
	return r;
}

static int add_condition(scmp_filter_ctx ctx, uint32_t action, const struct dsec__syscall_condition *c,
			 struct dsec_error *err)
{
	const struct scmp_arg_cmp args[] = {
		{ c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value },
		{ c->arg2, SCMP_CMP_MASKED_EQ, c->mask2, c->value2 },
	};

	return add(ctx, action, c->name, c->mask2 ? 2 : 1, args, err);
}

static int fill_traps(scmp_filter_ctx ctx, bool sockets, struct dsec_error *err)
{
	int r = 0;

	(void)sockets;
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_traps) && r == 0; i++)
		r = add_condition(ctx, SCMP_ACT_ERRNO(EPERM), &dsec__syscall_traps[i], err);
	return r;
}

static int fill_allowed(scmp_filter_ctx ctx, bool sockets, struct dsec_error *err)
{
	int r = add(ctx, SCMP_ACT_ALLOW, "ioctl", 0, NULL, err);

	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_allowed) && r == 0; i++)
		r = add_names(ctx, SCMP_ACT_ALLOW, dsec__syscalls_allowed[i].names, err);
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_conditions) && r == 0; i++)
		if (sockets || strncmp(dsec__syscall_conditions[i].name, "socket", 6) != 0)
			r = add_condition(ctx, SCMP_ACT_ALLOW, &dsec__syscall_conditions[i], err);
	return r;
}

static int fill_refused(scmp_filter_ctx ctx, bool sockets, struct dsec_error *err)
{
	int r = 0;

	(void)sockets;
	for (size_t i = 0; i < ARRAY_LEN(dsec__syscalls_refused) && r == 0; i++) {
		const struct dsec__syscalls *row = &dsec__syscalls_refused[i];

		r = add_names(ctx, SCMP_ACT_ERRNO((uint32_t)row->error), row->names, err);
	}
	return r;
}

static const struct {
	int (*fill)(scmp_filter_ctx ctx, bool sockets, struct dsec_error *err);
	uint32_t otherwise; /* in all but the last part: what marks a jump to the next */
} parts[PARTS] = {
	{ fill_traps, SCMP_ACT_ALLOW },
	{ fill_allowed, ABSENT },
	{ fill_refused, ABSENT },
};

/* A filter of one part for one architecture. */
static int make_arch(size_t part, uint32_t arch, scmp_filter_ctx *ret_ctx, struct dsec_error *err)
{
	AUTO_CTX scmp_filter_ctx ctx = seccomp_init(parts[part].otherwise);
	int r;

	if (!ctx)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_SECURITY, "seccomp_init");
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, ABSENT);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree, not a list of 350 compares */
	if (r == 0 && arch != seccomp_arch_native()) {
		r = seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE);
		if (r == 0)
			r = seccomp_arch_add(ctx, arch);
	}
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_SECURITY, "set up a filter with libseccomp");
	r = parts[part].fill(ctx, arch != SCMP_ARCH_X86, err);
	if (r == 0)
		*ret_ctx = TAKE_PTR(ctx);
	return r;
}

/* BPF of a filter, by way of a memory file: libseccomp of Debian 12 writes it to descriptors only. */
static int export(scmp_filter_ctx ctx, struct sock_filter **ret_code, size_t *ret_n, struct dsec_error *err)
{
	AUTO_CLOSE int fd = memfd_create("dsec-filter", MFD_CLOEXEC);
	AUTO_FREE struct sock_filter *code = NULL;
	struct stat st;
	int r;

	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "memfd_create for the filter");
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_SECURITY, "seccomp_export_bpf");
	if (fstat(fd, &st) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "stat the exported filter");
	code = malloc((size_t)st.st_size);
	if (!code)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "allocate the filter");
	if (pread(fd, code, (size_t)st.st_size, 0) != st.st_size)
		return dsec__fail(err, -EIO, DSEC_STEP_SECURITY, "read the exported filter");
	*ret_code = TAKE_PTR(code);
	*ret_n = (size_t)st.st_size / sizeof *code;
	return 0;
}

static int make_part(size_t part, struct sock_filter **ret_code, size_t *ret_n, struct dsec_error *err)
{
	AUTO_CTX scmp_filter_ctx ctx = NULL;
	int r = make_arch(part, seccomp_arch_native(), &ctx, err);

	if (r == 0 && seccomp_arch_native() == SCMP_ARCH_X86_64) {
		AUTO_CTX scmp_filter_ctx x86 = NULL;

		r = make_arch(part, SCMP_ARCH_X86, &x86, err);
		if (r < 0)
			return r;
		r = seccomp_merge(ctx, x86);
		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_SECURITY, "seccomp_merge");
		(void)TAKE_PTR(x86); /* the merge released it */
	}
	return r < 0 ? r : export(ctx, ret_code, ret_n, err);
}

/* Turns each return of the default at the end of `code` into a jump just behind it. */
static void chain(struct sock_filter *code, size_t n, uint32_t otherwise)
{
	for (size_t i = 0; i < n; i++)
		if (code[i].code == (BPF_RET | BPF_K) && code[i].k == otherwise)
			code[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(n - i - 1));
}

int dsec__filter_compile(struct sock_fprog *ret_prog, struct dsec_error *err)
{
	AUTO_FREE struct sock_filter *all = NULL;
	size_t total = 0;

	for (size_t part = 0; part < PARTS; part++) {
		AUTO_FREE struct sock_filter *code = NULL;
		struct sock_filter *more;
		size_t n = 0;
		int r = make_part(part, &code, &n, err);

		if (r < 0)
			return r;
		if (part + 1 < PARTS)
			chain(code, n, parts[part].otherwise);
		more = total + n > BPF_MAXINSNS ? NULL : realloc(all, (total + n) * sizeof *all);
		if (!more)
			return dsec__fail(err, -ENOMEM, DSEC_STEP_SECURITY, "join the filter, %zu instructions", total + n);
		all = more;
		memcpy(all + total, code, n * sizeof *all);
		total += n;
	}
	*ret_prog = (struct sock_fprog){ .len = (unsigned short)total, .filter = TAKE_PTR(all) };
	return 0;
}

void dsec__filter_done(struct sock_fprog *prog)
{
	free(prog->filter);
	*prog = (struct sock_fprog){ 0 };
}
