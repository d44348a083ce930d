/* SPDX-License-Identifier: MIT */
/*
 * Starting a command: dsec_sandbox_exec() ends here. Stages in the child, each with what holds after it:
 *
 *   group    it and all it will start are in the command's control group   must be first: a kill has to find it
 *   session  it leads a session of its own, with its terminal if it has one
 *   streams  0, 1 and 2 are its own, nothing above is open
 *   clone3   is gone: the agent needs it for the first stage, and no filter can see the flags it is given
 *   user     ids and limits are the command's, the working directory was entered as that user
 *   execve
 *
 * The child shares the agent's memory until execve, which spares copying page tables: it must not allocate, must not touch
 * the agent's state and must use raw system calls for ids, which libc would spread to threads. How far it came is told
 * over a pipe that closes with execve. Until then it is a process like others to the sandbox, which may stop it.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../linux/clone.h"
#include "../util/cleanup.h"
#include "../util/error.h"

#define STACK_BYTES (64u << 10)
#define STATUS_FD 3     /* in the child, once its streams are in place */
#define STOPPED_MS 100  /* between looks at a child that does not start */
#define STOPPED_LOOKS 10 /* at which it was stopped before it is given up; a slow disk is waited for */

struct plan {
	const struct dsec__request *q;
	const char *workdir;
	char *const *env;
	const char *path;        /* PATH of that environment */
	uint32_t uid, gid;
	int fds[3];
	int group;               /* directory to be born in, or cgroup.procs to write to; -EBADF */
	int status;              /* where the child writes a struct failure; the child's own to change */
	bool birth, tty;
	struct rlimit files;
};

struct failure {
	int error; /* negative errno; 0: it started */
	uint32_t step;
};

static _Noreturn void give_up(const struct plan *p, uint32_t step)
{
	struct failure f = { -errno, step };

	_exit(write(p->status, &f, sizeof f) == sizeof f ? 127 : 126);
}

/* Tries each directory of PATH; a file that is there and may not be executed is reported in the end, as shells do. */
static void exec_search(const struct plan *p)
{
	char *const *argv = p->q->argv;
	size_t name = strlen(argv[0]);
	int denied = 0;

	if (strchr(argv[0], '/')) {
		(void)execve(argv[0], argv, p->env);
		return;
	}
	errno = ENOENT;
	for (const char *dir = p->path; name && *dir;) {
		size_t n = strcspn(dir, ":");
		char file[4096];

		if (n && n + name + 2 <= sizeof file) {
			memcpy(file, dir, n);
			file[n] = '/';
			memcpy(file + n + 1, argv[0], name + 1);
			(void)execve(file, argv, p->env);
			if (errno == EACCES)
				denied = EACCES;
			else if (errno != ENOENT && errno != ENOTDIR)
				return;
		}
		dir += n;
		dir += *dir == ':';
	}
	errno = denied ? denied : ENOENT;
}

static void stage_user(struct plan *p)
{
	if (setrlimit(RLIMIT_NOFILE, &p->files) < 0)
		give_up(p, DSEC_STEP_SPAWN);
	/* setgroups is refused where only one id is mapped; there the agent has no other group anyway. */
	if (p->uid || p->gid) {
		if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0 ||
		    syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0)
			give_up(p, DSEC_STEP_SPAWN);
		/* What a change of ids sets for the memory, still the agent's, is a matter of fs.suid_dumpable. */
		if (prctl(PR_SET_DUMPABLE, 0) < 0)
			give_up(p, DSEC_STEP_SPAWN);
	}
	if (chdir(p->workdir) < 0)
		give_up(p, DSEC_STEP_SPAWN);
}

static void stage_streams(struct plan *p)
{
	for (int i = 0; i < 3; i++)
		if (dup2(p->fds[i], i) < 0)
			give_up(p, DSEC_STEP_SPAWN);
	if (p->status != STATUS_FD && dup3(p->status, STATUS_FD, O_CLOEXEC) < 0)
		give_up(p, DSEC_STEP_SPAWN);
	p->status = STATUS_FD;
	if (close_range(STATUS_FD + 1, ~0u, 0) < 0)
		give_up(p, DSEC_STEP_SPAWN);
}

/* On every architecture it has the number 435; programs and C libraries fall back to clone. */
static void stage_clone3(struct plan *p)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
		give_up(p, DSEC_STEP_SECURITY);
}

static int child(void *arg)
{
	struct plan *p = arg;
	sigset_t none;

	if (p->group >= 0 && !p->birth && write(p->group, "0", 1) != 1)
		give_up(p, DSEC_STEP_CGROUP);
	if (setsid() < 0 || (p->tty && ioctl(p->fds[0], TIOCSCTTY, 0) < 0))
		give_up(p, DSEC_STEP_SPAWN);
	stage_streams(p);
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		give_up(p, DSEC_STEP_SPAWN);
	stage_clone3(p);
	if (p->q->kind != DSEC_EXEC_COMMAND) {
		(void)close(STATUS_FD);
		dsec__agent_file(p->q, p->workdir);
	}
	stage_user(p);
	exec_search(p);
	give_up(p, DSEC_STEP_EXEC);
}

/* Environment: the defaults, then the sandbox's, then the request's; a later one of the same name wins. */
static char **env_merge(const struct agent *a, const struct dsec__request *q, uint32_t uid, char *mark)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char root_home[] = "HOME=/root", home[] = "HOME=/tmp"; /* no file of the sandbox is asked who lives where */
	static char lang[] = "LANG=C.UTF-8", term[] = "TERM=xterm-256color";
	char *const base[] = { path, uid ? home : root_home, lang, q->flags & DSEC_EXEC_TTY ? term : NULL, NULL };
	char *const *from[] = { base, a->spec->env, q->env };
	size_t first = q->flags & DSEC_EXEC_CLEAN_ENV ? 2 : 0;
	size_t max = 2, n = 0;
	char **env;

	for (size_t i = first; i < ARRAY_LEN(from); i++)
		for (char *const *e = from[i]; e && *e; e++)
			max++;
	env = calloc(max, sizeof *env);
	if (!env)
		return NULL;
	if (*mark)
		env[n++] = mark;
	for (size_t i = first; i < ARRAY_LEN(from); i++) {
		for (char *const *e = from[i]; e && *e; e++) {
			size_t len = strcspn(*e, "=") + 1, k = 0;

			while (k < n && strncmp(env[k], *e, len) != 0)
				k++;
			env[k] = *e;
			n += k == n;
		}
	}
	return env;
}

static const char *env_path(char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return "/usr/bin:/bin";
}

static int tty_open(struct command *c, const struct dsec__request *q, uint32_t uid, int *ret_peer,
		    struct dsec_error *err)
{
	struct winsize size = { .ws_row = q->rows ? q->rows : 24, .ws_col = q->cols ? q->cols : 80 };
	AUTO_CLOSE int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int peer = -EBADF;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SPAWN, "open a terminal");
	peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (peer < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SPAWN, "open the command's side of a terminal");
	if (uid && fchown(peer, uid, (gid_t)-1) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SPAWN, "give the terminal to user %u", uid);
	c->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (c->in.fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_SPAWN, "duplicate the terminal");
	c->out[0].fd = TAKE_FD(master);
	*ret_peer = TAKE_FD(peer);
	return 0;
}

/* One pipe; ours is the end that does not block. */
static int pipe_open(int *ret_ours, int *ret_theirs, int ours)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = fds[ours];
	*ret_theirs = fds[!ours];
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int streams_open(struct command *c, const struct dsec__request *q, uint32_t uid, int theirs[3],
			struct dsec_error *err)
{
	bool wants_input = q->input_len || q->flags & DSEC_EXEC_STDIN || q->kind == DSEC_EXEC_FILE_WRITE;
	int r;

	if (q->flags & DSEC_EXEC_TTY) {
		r = tty_open(c, q, uid, &theirs[0], err);
		if (r < 0)
			return r;
		c->tty = true;
		return 0;
	}
	r = wants_input ? pipe_open(&c->in.fd, &theirs[0], 1) : 0;
	if (r == 0)
		r = pipe_open(&c->out[0].fd, &theirs[1], 0);
	if (r == 0)
		r = pipe_open(&c->out[1].fd, &theirs[2], 0);
	return r < 0 ? dsec__fail(err, r, DSEC_STEP_SPAWN, "make the pipes of a command") : 0;
}

/* Whether a child that has not started yet is stopped now. */
static bool is_stopped(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Waits until the child has started or said why not. */
static struct failure await_start(pid_t pid, int status)
{
	struct pollfd p = { .fd = status, .events = POLLIN };
	struct failure f = { 0 };

	for (int stopped = 0; poll(&p, 1, STOPPED_MS) <= 0;) {
		stopped += is_stopped(pid);
		if (stopped < STOPPED_LOOKS)
			continue;
		(void)kill(pid, SIGKILL); /* ours and not reaped: the pid is still its own */
		return (struct failure){ -EAGAIN, DSEC_STEP_SPAWN };
	}
	if (read(status, &f, sizeof f) != sizeof f)
		f.error = 0; /* the end: it executes, or died, which its result will tell */
	return f;
}

static pid_t start(struct plan *p, struct failure *ret_failure)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	int group = p->birth ? p->group : -EBADF;
	AUTO_CLOSE int ours = -EBADF;
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ours = pair[0];
	p->status = pair[1];
	if (p->q->kind == DSEC_EXEC_COMMAND) {
		pid = dsec__clone_into(group, child, p, stack, sizeof stack);
	} else {
		/* A file transfer runs our own code for as long as it takes: it needs memory of its own. */
		pid = dsec__fork_into(group);
		if (pid == 0)
			(void)child(p);
	}
	dsec__closep(&pair[1]);
	if (pid > 0)
		*ret_failure = await_start(pid, ours);
	return pid;
}

static int failed(const struct plan *p, const struct failure *f, struct dsec_error *err)
{
	if (f->step == DSEC_STEP_EXEC)
		return dsec__fail(err, f->error, f->step, "execve \"%s\"", p->q->argv[0]);
	if (f->step == DSEC_STEP_CGROUP)
		return dsec__fail(err, f->error, f->step, "join the command's control group");
	if (f->error == -EAGAIN)
		return dsec__fail(err, f->error, f->step, "a process of the sandbox stops what is started in it");
	return dsec__fail(err, f->error, f->step, "prepare the command: user %u:%u, working directory \"%s\"", p->uid,
			  p->gid, p->workdir);
}

int dsec__agent_spawn(struct agent *a, struct command *c, const struct dsec__request *q, int group, bool birth,
		      struct dsec_error *err)
{
	int theirs[3] = { -EBADF, -EBADF, -EBADF };
	AUTO_CLOSE int in = -EBADF;
	AUTO_CLOSE int out = -EBADF;
	AUTO_CLOSE int errfd = -EBADF;
	AUTO_FREE char **env = NULL;
	char mark[32] = "";
	struct plan p = { .q = q, .group = group, .birth = birth, .tty = q->flags & DSEC_EXEC_TTY, .files = a->files };
	struct failure f = { 0 };
	int r;

	if (!a->has_groups)
		(void)snprintf(mark, sizeof mark, DSEC__TREE_MARK "%u", c->channel); /* fits */
	p.uid = q->uid == UINT32_MAX ? a->spec->uid : q->uid;
	p.gid = q->uid == UINT32_MAX ? a->spec->gid : q->gid;
	if (a->single_id && (p.uid || p.gid))
		return dsec__fail(err, -ENOTSUP, DSEC_STEP_OPTIONS, "user: an ordinary user's sandbox has root only");
	env = env_merge(a, q, p.uid, mark);
	if (!env)
		return dsec__fail(err, -ENOMEM, DSEC_STEP_MEMORY, "environment of a command");
	p.workdir = q->workdir ? q->workdir : a->spec->workdir;
	p.env = env;
	p.path = env_path(env);
	r = streams_open(c, q, p.uid, theirs, err);
	in = theirs[0];
	out = theirs[1];
	errfd = theirs[2];
	if (r < 0)
		return r;
	p.fds[0] = in >= 0 ? in : 0; /* the agent's own 0 is /dev/null */
	p.fds[1] = p.tty ? in : out;
	p.fds[2] = p.tty ? in : errfd;
	c->pid = start(&p, &f);
	if (c->pid < 0)
		return dsec__fail(err, c->pid, DSEC_STEP_SPAWN, "start a process (is the limit \"pids\" reached?)");
	if (f.error) {
		(void)waitpid(c->pid, NULL, 0); /* it exits, or was killed */
		c->pid = 0;
		return failed(&p, &f, err);
	}
	return 0;
}
