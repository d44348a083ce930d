/* SPDX-License-Identifier: MIT */
/*
 * Which system calls a sandbox has. Three tables, asked in this order by the filter that filter.c compiles:
 *
 *   allowed      always
 *   conditions   allowed where an argument fits
 *   refused      answered with the row's error: known, and kept from sandboxes on purpose
 *
 * What is in none of them does not exist (ENOSYS): programs and C libraries probe for new calls that way and have a
 * fallback; any other error would break them. A name that the libseccomp of the build does not know is skipped, and so
 * does not exist either.
 */
#ifndef DSEC__SYSCALLS_H
#define DSEC__SYSCALLS_H

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/socket.h>

struct dsec__syscalls {
	const char *names;  /* separated by one space */
	int error;          /* refused only */
	const char *reason;
};

static const struct dsec__syscalls dsec__syscalls_allowed[] = {
	{ "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 creat close "
	  "close_range dup dup2 dup3 fcntl fcntl64 flock lseek _llseek ftruncate ftruncate64 truncate truncate64 "
	  "fallocate fsync fdatasync sync syncfs sync_file_range readahead fadvise64 fadvise64_64 copy_file_range "
	  "sendfile sendfile64 splice tee vmsplice pipe pipe2",
	  0, "open files and their bytes; the descriptor's own rights hold" },
	{ "access faccessat faccessat2 stat stat64 lstat lstat64 fstat fstat64 newfstatat fstatat64 statx statfs "
	  "statfs64 fstatfs fstatfs64 oldstat oldlstat oldfstat readlink readlinkat getdents getdents64 readdir "
	  "getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink "
	  "symlinkat umask chroot",
	  0, "names; all of them lie in the sandbox's own mounts. chroot needs its capability and leaves nothing" },
	{ "mknod mknodat", 0, "FIFOs and sockets; the kernel makes no device node in a user namespace" },
	{ "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat chown32 fchown32 lchown32 utime utimes "
	  "futimesat utimensat utimensat_time64 getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr "
	  "lsetxattr fsetxattr removexattr lremovexattr fremovexattr getxattrat setxattrat listxattrat removexattrat "
	  "name_to_handle_at",
	  0,
	  "attributes; ids are those of the user namespace. A handle is a number: opening by it is what is refused" },
	{ "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch", 0, "watching own files" },
	{ "select _newselect pselect6 pselect6_time64 poll ppoll ppoll_time64 epoll_create epoll_create1 epoll_ctl "
	  "epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd signalfd4",
	  0, "waiting" },
	{ "brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 munlock mlockall munlockall "
	  "remap_file_pages memfd_create memfd_secret pkey_alloc pkey_free pkey_mprotect membarrier process_madvise "
	  "process_mrelease cachestat mseal map_shadow_stack",
	  0, "own memory; locking is bounded by a resource limit, its size by the control group" },
	{ "get_mempolicy set_mempolicy set_mempolicy_home_node mbind", 0,
	  "placement of own memory: numeric libraries" },
	{ "clone3", 0,
	  "the agent only, which starts a command inside its control group with it; its flags lie in memory, out of a "
	  "filter's sight, so commands find it absent (lib/agent/spawn.c)" },
	{ "fork vfork execve execveat exit exit_group wait4 waitid waitpid set_tid_address restart_syscall getpid "
	  "getppid gettid getpgid getpgrp setpgid getsid setsid kill tkill tgkill pidfd_open pidfd_send_signal",
	  0, "processes, in a pid namespace of their own" },
	{ "signal sigaction sigprocmask sigpending sigsuspend sigreturn sigaltstack sgetmask ssetmask pause "
	  "rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigreturn rt_sigqueueinfo rt_tgsigqueueinfo "
	  "rt_sigtimedwait rt_sigtimedwait_time64",
	  0, "signals" },
	{ "futex futex_time64 futex_waitv futex_wake futex_wait futex_requeue set_robust_list get_robust_list rseq "
	  "set_thread_area get_thread_area arch_prctl",
	  0, "threads" },
	{ "getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getresuid getresuid32 getresgid "
	  "getresgid32 getgroups getgroups32 setuid setuid32 setgid setgid32 setreuid setreuid32 setregid setregid32 "
	  "setresuid setresuid32 setresgid setresgid32 setgroups setgroups32 setfsuid setfsuid32 setfsgid setfsgid32 "
	  "capget capset",
	  0, "users; ids are those of the user namespace, and rights only get fewer" },
	{ "getpriority setpriority nice ioprio_get ioprio_set sched_yield sched_getparam sched_setparam "
	  "sched_getscheduler sched_setscheduler sched_getattr sched_setattr sched_getaffinity sched_setaffinity "
	  "sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_rr_get_interval_time64 getcpu",
	  0, "scheduling of own processes; real-time classes need a right that sandboxes lack" },
	{ "getrlimit ugetrlimit setrlimit getrusage times sysinfo uname olduname oldolduname getrandom", 0,
	  "asking and lowering" },
	{ "time gettimeofday clock_gettime clock_gettime64 clock_getres clock_getres_time64 clock_nanosleep "
	  "clock_nanosleep_time64 nanosleep alarm getitimer setitimer timer_create timer_delete timer_getoverrun "
	  "timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime "
	  "timerfd_gettime64 timerfd_settime timerfd_settime64",
	  0, "reading clocks and being woken" },
	{ "adjtimex clock_adjtime clock_adjtime64", 0,
	  "reading the clock's state; what to set lies in memory, and the kernel wants a right over the host for it" },
	{ "bind connect listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown send recv sendto "
	  "recvfrom sendmsg recvmsg sendmmsg recvmmsg recvmmsg_time64",
	  0, "sockets, of the families that the conditions let through" },
	{ "msgget msgctl msgsnd msgrcv semget semctl semop semtimedop semtimedop_time64 shmget shmctl shmat shmdt "
	  "mq_open mq_unlink mq_timedsend mq_timedsend_time64 mq_timedreceive mq_timedreceive_time64 mq_notify "
	  "mq_getsetattr",
	  0, "messages and shared memory, in an ipc namespace of their own" },
	{ "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp", 0,
	  "debuggers and tracers; the kernel allows it on processes of the same user in the same user namespace" },
	{ "prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self", 0,
	  "programs that lock themselves down further; a filter added later cannot allow what this one refuses" },
};

/* Allowed where (argument & mask) == value. Only the low 32 bits count: the kernel ignores the others here. */
struct dsec__syscall_condition {
	const char *name;
	unsigned int arg;
	uint32_t mask, value;
	/* A second condition on an argument, where mask2 is not 0. */
	unsigned int arg2;
	uint32_t mask2, value2;
	const char *reason;
};

#define DSEC__NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define DSEC__ALL 0xffffffffu

/* Without effect on protection; READ_IMPLIES_EXEC and MMAP_PAGE_ZERO would weaken it. */
#define DSEC__PERSONALITIES \
	(PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE | WHOLE_SECONDS | STICKY_TIMEOUTS | SHORT_INODE | ADDR_LIMIT_3GB | \
	 ADDR_LIMIT_32BIT)

static const struct dsec__syscall_condition dsec__syscall_conditions[] = {
	{ "clone", 0, DSEC__NAMESPACES, 0, 0, 0, 0, "processes and threads, but no namespaces" },
	{ "prlimit64", 0, DSEC__ALL, 0, 0, 0, 0, "own limits" },
	{ "personality", 0, ~(uint32_t)DSEC__PERSONALITIES, 0, 0, 0, 0,
	  "gdb, setarch: no address randomisation, 32 bits" },
	{ "personality", 0, DSEC__ALL, DSEC__ALL, 0, 0, 0, "asking for the present one" },
	{ "socket", 0, DSEC__ALL, AF_UNIX, 0, 0, 0, "local" },
	{ "socket", 0, DSEC__ALL, AF_INET, 0, 0, 0, "the sandbox's own network" },
	{ "socket", 0, DSEC__ALL, AF_INET6, 0, 0, 0, "the same" },
	{ "socket", 0, DSEC__ALL, AF_NETLINK, 2, DSEC__ALL, NETLINK_ROUTE, "listing interfaces and addresses" },
	{ "socketpair", 0, DSEC__ALL, AF_UNIX, 0, 0, 0, "the one family that is more than a source of kernel bugs" },
};

/* Refused where (argument & mask) == value; asked before all tables. ioctl is allowed otherwise. */
static const struct dsec__syscall_condition dsec__syscall_traps[] = {
	{ "ioctl", 1, DSEC__ALL, 0x5412, 0, 0, 0, "TIOCSTI types into a terminal that is shared with the outside" },
	{ "ioctl", 1, DSEC__ALL, 0x541c, 0, 0, 0, "TIOCLINUX pastes into a console" },
};

static const struct dsec__syscalls dsec__syscalls_refused[] = {
	{ "mount umount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsmount fsconfig fspick "
	  "mount_setattr",
	  EPERM, "the mounts are the sandbox's walls" },
	{ "unshare setns clone", EPERM, "new namespaces bring capabilities over kernel code that few have tested" },
	{ "bpf perf_event_open userfaultfd", EPERM, "kernel code reached by them is a frequent way out" },
	{ "io_uring_setup io_uring_enter io_uring_register", EPERM,
	  "the same, and its operations pass by this filter" },
	{ "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents io_pgetevents_time64", ENOSYS,
	  "the machine has one count of contexts (fs.aio-max-nr), which one sandbox could use up; databases and "
	  "emulators fall back to threads" },
	{ "prlimit64", EPERM, "limits of other processes: those of the agent are handed on to commands" },
	{ "keyctl add_key request_key", EPERM, "keyrings are not fully divided by namespaces" },
	{ "init_module finit_module delete_module create_module query_module get_kernel_syms", EPERM,
	  "kernel modules" },
	{ "kexec_load kexec_file_load reboot", EPERM, "ends the host" },
	{ "swapon swapoff acct quotactl quotactl_fd vhangup sethostname setdomainname", EPERM,
	  "administration of the host" },
	{ "settimeofday stime clock_settime clock_settime64", EPERM, "the host's clock" },
	{ "iopl ioperm", EPERM, "the host's devices" },
	{ "open_by_handle_at", EPERM, "opens files of a file system outside of all mounts" },
	{ "fanotify_init fanotify_mark", EPERM, "watches whole file systems" },
	{ "lookup_dcookie syslog", EPERM, "tells about the host and its kernel's addresses" },
	{ "move_pages migrate_pages", EPERM, "tells and changes where shared pages lie" },
	{ "vm86 vm86old modify_ldt", EPERM, "16-bit code: rare, and a source of kernel bugs" },
	{ "nfsservctl uselib ustat sysfs _sysctl bdflush", EPERM, "obsolete" },
	{ "personality", EPERM, "those that weaken protection" },
	{ "socket socketpair", EAFNOSUPPORT,
	  "as on a kernel without the family; AF_VSOCK talks to a machine around this one, AF_ALG, AF_PACKET and "
	  "others are frequent ways out. libaudit, asked by useradd and su, goes on after this error and no other" },
};

#endif
