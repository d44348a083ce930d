# Calls that can fail in the fault variants; each has a shim in wrap.c.
WRAPPED := malloc calloc realloc strdup open openat mkdir mkdirat renameat unlinkat symlinkat fchownat fchmodat read write \
	pwrite send sendmsg recvmsg socket socketpair bind listen pipe2 dup2 fcntl ioctl flock fork epoll_create1 epoll_ctl \
	signalfd fsopen fsconfig fsmount open_tree move_mount mount_setattr mount umount2 chdir fchdir unshare sethostname \
	setresuid setresgid setrlimit close_range setsid fstat syscall prctl
