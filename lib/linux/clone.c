/* SPDX-License-Identifier: MIT */
/* clone3 with a shared memory map. libc has no wrapper for it: the child must not return through the parent's frames. */
#include "clone.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

/* fn and arg wait in registers that the kernel keeps, since the child has nothing else when it begins. */
static long start(struct clone_args *args, int (*fn)(void *), void *arg)
{
	register long r10 __asm__("r10") = (long)(uintptr_t)fn;
	register long r8 __asm__("r8") = (long)(uintptr_t)arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t" /* the outermost frame, for debuggers */
			 "mov %%r8, %%rdi\n\t"
			 "call *%%r10\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

static long start(struct clone_args *args, int (*fn)(void *), void *arg)
{
	register long x0 __asm__("x0") = (long)(uintptr_t)args;
	register long x1 __asm__("x1") = (long)sizeof *args;
	register long x8 __asm__("x8") = SYS_clone3;
	register long x9 __asm__("x9") = (long)(uintptr_t)fn;
	register long x10 __asm__("x10") = (long)(uintptr_t)arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), "r"(x9), "r"(x10)
			 : "memory", "cc");
	return x0;
}

#else

/* Elsewhere: a fork, with its copies of page tables. */
static long start(struct clone_args *args, int (*fn)(void *), void *arg)
{
	long ret;

	args->flags &= ~(uint64_t)CLONE_VM;
	args->stack = args->stack_size = 0;
	ret = syscall(SYS_clone3, args, sizeof *args);
	if (ret == 0)
		_exit(fn(arg));
	return ret < 0 ? -errno : ret;
}

#endif

pid_t dsec__clone_into(int group, int (*fn)(void *), void *arg, void *stack, size_t size)
{
	struct clone_args args = {
		.flags = CLONE_VM,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = size,
	};

	if (group >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group;
	}
	return (pid_t)start(&args, fn, arg);
}

pid_t dsec__fork_into(int group)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid;

	if (group >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group;
	}
	pid = syscall(SYS_clone3, &args, sizeof args);
	return pid < 0 ? -errno : (pid_t)pid;
}
