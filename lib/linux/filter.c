/* SPDX-License-Identifier: MIT */
/*
 * The system call filter: from the tables of syscalls.h to BPF.
 *
 * Six calls are decided by their arguments. They go through three small libseccomp filters, since one cannot say
 * "allow these arguments, refuse all others with an error that is not the default", nor compare 32 bits for inequality:
 * traps, then what is allowed, then what is refused. They are chained: where one would return its default, it jumps to
 * the next.
 *
 * All other calls are decided by their number, and by a table before that chain: a binary tree over ranges of numbers
 * with the same answer. Each sandbox loads the filter anew, and the kernel compiles it and runs it once for each
 * number: libseccomp's code for the same (a thousand instructions, two or three for each name) takes three times as
 * long.
 *
 * 32-bit x86 is part of each. Its socketcall has the arguments in memory, where a filter cannot see them, so there
 * socket() and socketpair() are refused as a whole. The x32 variant and other architectures: nothing exists.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "security.h"
#include "syscalls.h"

#define ABSENT SCMP_ACT_ERRNO(ENOSYS)
#define NUMBERS 1024 /* of system calls in the table: twice what there are; the rest is absent */
#define RANGES 256   /* with the same answer: with more, the tree's jumps would be too far for 8 bits */

/* A program that grows. */
struct code {
	struct sock_filter *insn;
	size_t n;
	bool failed; /* memory ran out */
};

static void code_done(struct code *c)
{
	free(c->insn);
	*c = (struct code){ 0 };
}

#define AUTO_CODE CLEANUP(code_done)

static void append(struct code *c, const struct sock_filter *insn, size_t n)
{
	struct sock_filter *more = c->failed ? NULL : realloc(c->insn, (c->n + n) * sizeof *more);

	c->failed = !more;
	if (!more)
		return;
	memcpy(more + c->n, insn, n * sizeof *more);
	c->insn = more;
	c->n += n;
}

static void emit(struct code *c, uint16_t op, uint32_t k, uint8_t yes, uint8_t no)
{
	append(c, &(struct sock_filter)BPF_JUMP(op, k, yes, no), 1);
}

/* Turns each return of `otherwise` from instruction `from` on into a jump behind the end. */
static void chain(struct code *c, size_t from, uint32_t otherwise)
{
	for (size_t i = from; i < c->n; i++)
		if (c->insn[i].code == (BPF_RET | BPF_K) && c->insn[i].k == otherwise)
			c->insn[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(c->n - i - 1));
}

/* The number of a call in the table, -1 where it is not for the table: decided by arguments, multiplexed, unknown. */
static int table_number(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_conditions); i++)
		if (strcmp(dsec__syscall_conditions[i].name, name) == 0)
			return -1;
	return nr >= 0 && nr < NUMBERS ? nr : -1;
}

typedef int (*name_fn)(void *data, const char *name, uint32_t action, struct dsec_error *err);

static int each_name(const struct dsec__syscalls *row, uint32_t action, name_fn fn, void *data, struct dsec_error *err)
{
	AUTO_FREE char *copy = strdup(row->names);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "copy a row of system calls");
	for (char *s = strtok_r(copy, " ", &save); s && r == 0; s = strtok_r(NULL, " ", &save))
		r = fn(data, s, action, err);
	return r;
}

static int each_row(bool allowed, name_fn fn, void *data, struct dsec_error *err)
{
	int r = 0;

	for (size_t i = 0; allowed && i < ARRAY_LEN(dsec__syscalls_allowed) && r == 0; i++)
		r = each_name(&dsec__syscalls_allowed[i], SCMP_ACT_ALLOW, fn, data, err);
	for (size_t i = 0; !allowed && i < ARRAY_LEN(dsec__syscalls_refused) && r == 0; i++)
		r = each_name(&dsec__syscalls_refused[i], SCMP_ACT_ERRNO((uint32_t)dsec__syscalls_refused[i].error), fn,
			      data, err);
	return r;
}

/* The table: answers by number of one architecture. */
struct table {
	uint32_t arch;
	uint32_t action[NUMBERS];
};

static int table_add(void *data, const char *name, uint32_t action, struct dsec_error *err)
{
	struct table *t = data;
	int nr = table_number(t->arch, name);

	(void)err;
	if (nr >= 0)
		t->action[nr] = action;
	return 0;
}

struct range {
	uint32_t first, action;
};

/* n ranges become 2n - 1 instructions, the left half just behind its comparison. */
static void emit_tree(struct code *c, const struct range *r, size_t n)
{
	size_t left = n / 2;

	if (n == 1) {
		emit(c, BPF_RET | BPF_K, r->action, 0, 0);
		return;
	}
	emit(c, BPF_JMP | BPF_JGE | BPF_K, r[left].first, (uint8_t)(2 * left - 1), 0);
	emit_tree(c, r, left);
	emit_tree(c, r + left, n - left);
}

/* AUDIT_ARCH_* is what the kernel calls the architectures, and libseccomp too. */
static int emit_table(struct code *c, uint32_t arch, struct dsec_error *err)
{
	struct table t = { .arch = arch };
	struct range ranges[RANGES];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < NUMBERS; i++)
		t.action[i] = ABSENT;
	r = each_row(true, table_add, &t, err);
	if (r == 0)
		r = each_row(false, table_add, &t, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i <= NUMBERS; i++) {
		uint32_t action = i < NUMBERS ? t.action[i] : ABSENT;

		if (n > 0 && ranges[n - 1].action == action)
			continue;
		if (n == RANGES)
			return dsec__fail(err, -E2BIG, DSEC_STEP_SECURITY, "more than %d ranges of system calls",
					  RANGES);
		ranges[n++] = (struct range){ i, action };
	}
	emit(c, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
	emit(c, BPF_JMP | BPF_JA, (uint32_t)(2 * n), 0, 0);
	emit(c, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit_tree(c, ranges, n);
	return 0;
}

/* The chain: one libseccomp filter for one architecture. */
struct part {
	scmp_filter_ctx ctx;
	uint32_t arch;
};

static void part_done(struct part *p)
{
	if (p->ctx)
		seccomp_release(p->ctx);
	p->ctx = NULL;
}

#define AUTO_PART CLEANUP(part_done)

/* A name that this libseccomp or this architecture lacks is no failure. */
static int add(const struct part *p, uint32_t action, const char *name, unsigned int n, const struct scmp_arg_cmp *args,
	       struct dsec_error *err)
{
	int nr = seccomp_syscall_resolve_name(name);
	int r = nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(p->ctx, action, nr, n, args);

	if (r < 0 && r != -EDOM)
		return dsec__fail(err, r, DSEC_STEP_SECURITY, "add a rule for \"%s\"", name);
	return 0;
}

/* Names that are not in the table. */
static int part_add(void *data, const char *name, uint32_t action, struct dsec_error *err)
{
	const struct part *p = data;

	return action == ABSENT || table_number(p->arch, name) >= 0 ? 0 : add(p, action, name, 0, NULL, err);
}

static int add_condition(const struct part *p, uint32_t action, const struct dsec__syscall_condition *c,
			 struct dsec_error *err)
{
	const struct scmp_arg_cmp args[] = {
		{ c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value },
		{ c->arg2, SCMP_CMP_MASKED_EQ, c->mask2, c->value2 },
	};

	return add(p, action, c->name, c->mask2 ? 2 : 1, args, err);
}

static int fill_traps(struct part *p, struct dsec_error *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_traps) && r == 0; i++)
		r = add_condition(p, SCMP_ACT_ERRNO(EPERM), &dsec__syscall_traps[i], err);
	return r;
}

static int fill_allowed(struct part *p, struct dsec_error *err)
{
	int r = add(p, SCMP_ACT_ALLOW, "ioctl", 0, NULL, err);

	for (size_t i = 0; i < ARRAY_LEN(dsec__syscall_conditions) && r == 0; i++)
		if (p->arch != SCMP_ARCH_X86 || strncmp(dsec__syscall_conditions[i].name, "socket", 6) != 0)
			r = add_condition(p, SCMP_ACT_ALLOW, &dsec__syscall_conditions[i], err);
	return r < 0 ? r : each_row(true, part_add, p, err);
}

static int fill_refused(struct part *p, struct dsec_error *err)
{
	return each_row(false, part_add, p, err);
}

static const struct {
	int (*fill)(struct part *p, struct dsec_error *err);
	uint32_t otherwise; /* marks a jump to the next; the last one's is the answer */
} parts[] = {
	{ fill_traps, SCMP_ACT_ALLOW },
	{ fill_allowed, ABSENT },
	{ fill_refused, ABSENT },
};

static int make_part(size_t i, uint32_t arch, struct part *ret_part, struct dsec_error *err)
{
	AUTO_PART struct part p = { .ctx = seccomp_init(parts[i].otherwise), .arch = arch };
	int r;

	if (!p.ctx)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_SECURITY, "seccomp_init");
	r = seccomp_attr_set(p.ctx, SCMP_FLTATR_ACT_BADARCH, ABSENT);
	if (r == 0 && arch != seccomp_arch_native()) {
		r = seccomp_arch_remove(p.ctx, SCMP_ARCH_NATIVE);
		if (r == 0)
			r = seccomp_arch_add(p.ctx, arch);
	}
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_SECURITY, "set up a filter with libseccomp");
	r = parts[i].fill(&p, err);
	if (r == 0) {
		*ret_part = p;
		p.ctx = NULL;
	}
	return r;
}

/* By way of a memory file: libseccomp 2.5 exports BPF to descriptors only. */
static int export(const struct part *p, struct code *c, struct dsec_error *err)
{
	AUTO_CLOSE int fd = memfd_create("dsec-filter", MFD_CLOEXEC);
	struct sock_filter insn[64];
	ssize_t n;
	int r;

	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "memfd_create for the filter");
	r = seccomp_export_bpf(p->ctx, fd);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_SECURITY, "seccomp_export_bpf");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SECURITY, "seek in the exported filter");
	while ((n = read(fd, insn, sizeof insn)) > 0)
		append(c, insn, (size_t)n / sizeof *insn);
	return n < 0 ? dsec__fail(err, -errno, DSEC_STEP_SECURITY, "read the exported filter") : 0;
}

static int emit_part(size_t i, struct code *c, struct dsec_error *err)
{
	AUTO_PART struct part native = { 0 };
	int r = make_part(i, seccomp_arch_native(), &native, err);

	if (r == 0 && native.arch == SCMP_ARCH_X86_64) {
		AUTO_PART struct part x86 = { 0 };

		r = make_part(i, SCMP_ARCH_X86, &x86, err);
		if (r < 0)
			return r;
		r = seccomp_merge(native.ctx, x86.ctx);
		if (r < 0)
			return dsec__fail(err, r, DSEC_STEP_SECURITY, "seccomp_merge");
		x86.ctx = NULL; /* the merge released it */
	}
	return r < 0 ? r : export(&native, c, err);
}

int dsec__filter_compile(struct sock_fprog *ret_prog, struct dsec_error *err)
{
	AUTO_CODE struct code c = { 0 };
	int r = emit_table(&c, seccomp_arch_native(), err);

	if (r == 0 && seccomp_arch_native() == SCMP_ARCH_X86_64)
		r = emit_table(&c, SCMP_ARCH_X86, err);
	chain(&c, 0, ABSENT);
	for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
		size_t from = c.n;

		r = emit_part(i, &c, err);
		if (i + 1 < ARRAY_LEN(parts))
			chain(&c, from, parts[i].otherwise);
	}
	if (r < 0)
		return r;
	if (c.failed || c.n > BPF_MAXINSNS)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_SECURITY, "join the filter, %zu instructions", c.n);
	*ret_prog = (struct sock_fprog){ .len = (unsigned short)c.n, .filter = TAKE_PTR(c.insn) };
	return 0;
}

void dsec__filter_done(struct sock_fprog *prog)
{
	free(prog->filter);
	*prog = (struct sock_fprog){ 0 };
}
