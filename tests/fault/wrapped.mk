# Calls that can fail in the fault variants; each has a shim in wrap.c.
WRAPPED := malloc calloc realloc reallocarray strdup asprintf open openat fopen fdopendir mkdir mkdirat rename renameat renameat2 getline unlink \
	unlinkat symlinkat readlinkat mknodat fchown fchownat fchmod fchmodat fstat fstatat faccessat ftruncate posix_fallocate \
	read pread write pwrite mmap memfd_create send sendmsg recvmsg socket socketpair setsockopt bind listen connect accept4 \
	pipe2 dup2 dup3 fcntl ioctl flock poll fork clone posix_spawn execve epoll_create1 epoll_ctl epoll_wait signalfd \
	sigprocmask fsopen fsconfig fsmount open_tree move_mount mount_setattr mount umount2 chdir fchdir unshare sethostname \
	setgroups setresuid setresgid setrlimit close_range setsid prctl syscall \
	seccomp_init seccomp_merge seccomp_attr_set seccomp_arch_add seccomp_arch_remove seccomp_rule_add_array \
	seccomp_export_bpf capng_update capng_apply
