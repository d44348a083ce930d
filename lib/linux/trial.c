/* SPDX-License-Identifier: MIT */
/*
 * Trials for the probe. Should use the same calls as the code that they speak for (rootfs.c, keeper_create.c), so that
 * a yes is a yes. Must not fork: the caller may be a trainer of hundreds of gigabytes with threads. The one child
 * shares its memory until it exits, as with vfork, with all signals blocked, and only writes to its stack and the page
 * for results.
 */
#include "trial.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util/cleanup.h"

#define STACK_BYTES (64u << 10)

/* A detached tmpfs. A descriptor or -errno. */
static int tmpfs(void)
{
	AUTO_CLOSE int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int mnt;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mnt < 0 ? -errno : mnt;
}

static int new_dir(int at, const char *name)
{
	int fd = mkdirat(at, name, 0755) < 0 ? -1 : openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* user: marks in user.* attributes, for those who may not write trusted.* ones. */
static int overlay(bool user)
{
	AUTO_CLOSE int top = tmpfs();
	AUTO_CLOSE int lower = top < 0 ? top : new_dir(top, "l");
	AUTO_CLOSE int upper = lower < 0 ? lower : new_dir(top, "u");
	AUTO_CLOSE int work = upper < 0 ? upper : new_dir(top, "w");
	AUTO_CLOSE int fs = -EBADF;

	if (work < 0)
		return work;
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0 || (user && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0) ||
	    fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, lower) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, upper) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, work) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return 0;
}

int dsec__trial_overlay(void)
{
	return overlay(false);
}

/*
 * In the child: what it was given, and its answers. On a page that both see, whether or not memory is shared otherwise.
 */
struct page {
	int socket; /* takes the descriptor of the user namespace */
	uid_t uid;
	gid_t gid;
	int map;
	int overlay;
};

static int write_text(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int map_self(uid_t uid, gid_t gid)
{
	char text[32];
	int r = write_text("/proc/self/setgroups", "deny");

	(void)snprintf(text, sizeof text, "0 %u 1", uid); /* fits, as the next */
	if (r == 0)
		r = write_text("/proc/self/uid_map", text);
	(void)snprintf(text, sizeof text, "0 %u 1", gid);
	return r < 0 ? r : write_text("/proc/self/gid_map", text);
}

/* A message with one descriptor. fd -EBADF: receives into *ret_fd. 0 or -errno. */
static int pass(int socket, int fd, int *ret_fd)
{
	char byte = 0;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (!ret_fd) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
		return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
	}
	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -EBADMSG;
	memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
	return 0;
}

/* Its return ends the process, without exit handlers. The open descriptor goes with it. */
static int child(void *arg)
{
	struct page *p = arg;
	int fd;

	p->map = p->overlay = map_self(p->uid, p->gid);
	if (p->map < 0)
		return 0;
	p->overlay = overlay(true);
	fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)pass(p->socket, fd, NULL); /* the parent notices that nothing has come */
	return 0;
}

/* Exit signal 0: the caller's SIGCHLD handler and its own waits for any child never see this one. */
static int run(struct page *p, char *stack)
{
	sigset_t all;
	sigset_t before;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before); /* these two cannot fail */
	pid = clone(child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWNS, p);
	error = pid < 0 ? -errno : 0;
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void dsec__trial_userns(struct dsec__trial *ret)
{
	int pair[2];
	size_t size = STACK_BYTES + 4096;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct page *p;
	int r;

	*ret = (struct dsec__trial){ -ENOMEM, -ENOMEM, -ENOMEM, -EBADF };
	if (memory == MAP_FAILED)
		return;
	p = (struct page *)(void *)(memory + STACK_BYTES);
	*p = (struct page){ .uid = geteuid(), .gid = getegid(), .map = -ECHILD, .overlay = -ECHILD };
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0) {
		ret->process = ret->map = ret->overlay = -errno;
		(void)munmap(memory, size);
		return;
	}
	p->socket = pair[1];
	r = run(p, memory);
	ret->process = r;
	ret->map = r < 0 ? r : p->map;
	ret->overlay = r < 0 ? r : p->overlay;
	if (ret->map == 0)
		(void)pass(pair[0], -EBADF, &ret->userns_fd); /* stays -EBADF otherwise */
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)munmap(memory, size);
}

/* The least EROFS image: a superblock, and behind it the inode of an empty directory. Little-endian. */
static void erofs_image(unsigned char image[4096])
{
	const uint32_t magic = htole32(0xe0f5e1e2);
	const uint16_t root = htole16((1024 + 128) / 32); /* inodes are counted in 32 bytes from the start */
	const uint64_t inodes = htole64(1);
	const uint32_t blocks = htole32(1);
	const uint16_t mode = htole16(S_IFDIR | 0755);
	const uint16_t links = htole16(2);
	unsigned char *super = image + 1024;
	unsigned char *inode = super + 128;

	memset(image, 0, 4096);
	memcpy(super, &magic, sizeof magic);
	super[12] = 12; /* blocks of 4096 */
	memcpy(super + 14, &root, sizeof root);
	memcpy(super + 16, &inodes, sizeof inodes);
	memcpy(super + 36, &blocks, sizeof blocks);
	memcpy(inode + 4, &mode, sizeof mode);
	memcpy(inode + 6, &links, sizeof links);
}

int dsec__trial_erofs(const char *dir)
{
	AUTO_CLOSE int file = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	AUTO_CLOSE int fs = file < 0 ? -EBADF : fsopen("erofs", FSOPEN_CLOEXEC);
	unsigned char image[4096];
	char path[32];

	if (fs < 0)
		return -errno;
	erofs_image(image);
	if (write(file, image, sizeof image) != (ssize_t)sizeof image)
		return -ENOSPC; /* the only cause of a short write that a file this small meets */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file); /* fits */
	if (fsconfig(fs, FSCONFIG_SET_STRING, "source", path, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return 0;
}

int dsec__trial_idmap(const char *dir, int userns_fd)
{
	AUTO_CLOSE int mnt = open_tree(AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct mount_attr map = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };

	if (mnt < 0 || mount_setattr(mnt, "", AT_EMPTY_PATH, &map, sizeof map) < 0)
		return -errno;
	return 0;
}
