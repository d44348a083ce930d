/* SPDX-License-Identifier: MIT */
/*
 * The agent's loop: frames of the keeper, deaths of processes, bytes of commands. Must never block on a command, and must
 * never give up: an error concerns one command, only the loss of the keeper ends it (and so the sandbox).
 */
#include "agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"

#define PIECE (64u << 10)

static void watch(struct agent *a, struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };
	int op = !s->events ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (s->fd < 0 || events == s->events)
		return;
	if (epoll_ctl(a->epoll, op, s->fd, &ev) == 0) {
		s->events = events;
		return;
	}
	/* Out of memory: its events would never come. The command ends, its result says so; without the keeper's, all ends. */
	if (!s->command)
		_exit(1);
	s->command->error = -errno;
	if (s->command->pid > 0 && !s->command->ended)
		(void)kill(-s->command->pid, SIGKILL);
}

static void source_close(struct agent *a, struct source *s)
{
	watch(a, s, 0);
	dsec__closep(&s->fd);
}

static struct command *find(struct agent *a, uint32_t channel)
{
	struct command *c = a->commands;

	while (c && (c->channel != channel || c->reported))
		c = c->next;
	return c;
}

static void command_free(struct agent *a, struct command *c)
{
	struct command **at = &a->commands;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	source_close(a, &c->in);
	source_close(a, &c->out[0]);
	source_close(a, &c->out[1]);
	dsec__buf_done(&c->input);
	free(c);
}

static bool stream_done(const struct command *c, int i)
{
	return c->out[i].fd < 0 || c->drain[i] == 0;
}

/* Once the command is dead and what it had written is on its way, the keeper is told. Who still holds the pipes may go
   on writing: it is read and dropped, so that a server left in the background does not die of a closed pipe. */
static void report(struct agent *a, struct command *c)
{
	struct dsec__ended e = {
		.wait_status = c->wait_status,
		.cpu_ns = (uint64_t)(c->usage.ru_utime.tv_sec + c->usage.ru_stime.tv_sec) * 1000000000u +
			  (uint64_t)(c->usage.ru_utime.tv_usec + c->usage.ru_stime.tv_usec) * 1000u,
		.memory_peak = (uint64_t)c->usage.ru_maxrss * 1024,
	};

	if (!c->ended || c->reported || !stream_done(c, 0) || !stream_done(c, 1))
		return;
	e.error = c->error;
	if (c->kind != DSEC_EXEC_COMMAND && WIFEXITED(c->wait_status) && !c->error)
		e.error = -WEXITSTATUS(c->wait_status);
	c->reported = true;
	source_close(a, &c->in);
	if (c->tty)
		source_close(a, &c->out[0]);
	dsec__chan_send(&a->keeper, DSEC__FRAME_ENDED, c->channel, &e, sizeof e);
	for (int i = 0; i < 2; i++)
		watch(a, &c->out[i], EPOLLIN);
}

static void stream_read(struct agent *a, struct command *c, int i)
{
	static uint8_t buf[PIECE];
	size_t room = c->reported || c->unacked >= DSEC__WINDOW ? sizeof buf : DSEC__WINDOW - c->unacked;
	ssize_t n;

	if (c->drain[i] > 0 && room > (size_t)c->drain[i])
		room = (size_t)c->drain[i];
	n = read(c->out[i].fd, buf, room < sizeof buf ? room : sizeof buf);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (c->ended)
			c->drain[i] = 0; /* a terminal may count bytes that its discipline then swallows */
		return;
	}
	if (n <= 0) { /* the end; EIO is how a terminal says it */
		if (n < 0 && !(c->tty && errno == EIO))
			c->error = -errno;
		source_close(a, &c->out[i]);
		return;
	}
	if (c->reported)
		return;
	if (c->drain[i] > 0)
		c->drain[i] -= n;
	c->unacked += (uint64_t)n;
	dsec__chan_send(&a->keeper, i ? DSEC_FRAME_STDERR : DSEC_FRAME_STDOUT, c->channel, buf, (size_t)n);
}

/* Reads while the window allows, asks epoll for as much, and reports if that was all. May free the command. */
static void streams_pump(struct agent *a, struct command *c)
{
	for (int i = 0; i < 2; i++) {
		while (c->ended && !c->reported && !stream_done(c, i) && c->unacked < DSEC__WINDOW)
			stream_read(a, c, i);
		if (!c->reported)
			watch(a, &c->out[i], c->unacked < DSEC__WINDOW && c->drain[i] ? EPOLLIN : 0);
	}
	report(a, c);
	if (c->reported && c->out[0].fd < 0 && c->out[1].fd < 0)
		command_free(a, c);
}

static void input_pump(struct agent *a, struct command *c)
{
	size_t taken = 0;

	while (c->input.len && c->in.fd >= 0) {
		ssize_t n = write(c->in.fd, c->input.data, c->input.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			c->input_gone = true;
			if (errno != EPIPE && !(c->tty && errno == EIO)) /* both say that nobody reads any more */
				c->error = -errno;
			break;
		}
		taken += (size_t)n;
		dsec__buf_drop_front(&c->input, (size_t)n);
	}
	if (c->input_gone || c->in.fd < 0) { /* nobody reads: take it so that the sender is not held up */
		taken += c->input.len;
		c->input.len = 0;
	}
	if (taken) {
		uint32_t credit = (uint32_t)taken;

		dsec__chan_send(&a->keeper, DSEC_FRAME_CREDIT, c->channel, &credit, sizeof credit);
	}
	watch(a, &c->in, c->input.len ? EPOLLOUT : 0);
	if (!c->input.len && (c->input_eof || c->input_gone))
		source_close(a, &c->in);
}

static void on_stdin(struct agent *a, struct command *c, const uint8_t *data, size_t n)
{
	static const uint8_t end_of_file[2] = { 4, 4 }; /* ^D, what a terminal's user would type; twice inside a line */

	if (!n && c->tty)
		dsec__buf_put(&c->input, end_of_file, c->inside_line ? 2 : 1);
	else if (!n)
		c->input_eof = true;
	dsec__buf_put(&c->input, data, n);
	c->inside_line = n && data[n - 1] != '\n';
	if (c->input.failed) {
		dsec__buf_done(&c->input);
		c->input_gone = true;
		c->error = -ENOMEM;
	}
	input_pump(a, c);
}

static void command_end(struct agent *a, struct command *c, int status, const struct rusage *usage)
{
	c->ended = true;
	c->wait_status = status;
	c->usage = *usage;
	for (int i = 0; i < 2; i++) {
		int left = 0;

		/* What others write from now on is not the command's output. */
		if (c->out[i].fd >= 0 && ioctl(c->out[i].fd, FIONREAD, &left) < 0)
			left = 0;
		c->drain[i] = c->tty ? left + (int)PIECE : left; /* a terminal counts whole lines only: read until it is dry */
	}
	streams_pump(a, c);
}

static void reap(struct agent *a)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	int status;
	pid_t pid;

	while (read(a->signals, &info, sizeof info) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		struct command *c = a->commands;

		while (c && (c->pid != pid || c->ended))
			c = c->next;
		if (c)
			command_end(a, c, status, &usage);
	}
}

static struct command *command_new(struct agent *a, uint32_t channel, uint32_t kind)
{
	struct command *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->channel = channel;
	c->kind = kind;
	c->drain[0] = c->drain[1] = -1;
	c->out[0] = (struct source){ .kind = SOURCE_STDOUT, .fd = -EBADF, .command = c };
	c->out[1] = (struct source){ .kind = SOURCE_STDERR, .fd = -EBADF, .command = c };
	c->in = (struct source){ .kind = SOURCE_STDIN, .fd = -EBADF, .command = c };
	c->next = a->commands;
	a->commands = c;
	return c;
}

static void on_start(struct agent *a, uint32_t channel, const uint8_t *payload, size_t n, int group, bool birth)
{
	struct dsec_error err = { 0 };
	struct dsec__request q;
	struct command *c = NULL;
	int r = dsec__request_decode(&q, payload, n);

	if (r < 0) {
		(void)dsec__fail(&err, r, DSEC_STEP_PROTOCOL, "decode a request in the agent");
		dsec__chan_send(&a->keeper, DSEC_FRAME_FAILED, channel, &err, sizeof err);
		return;
	}
	c = command_new(a, channel, q.kind);
	r = c ? dsec__agent_spawn(a, c, &q, group, birth, &err) :
		dsec__fail(&err, -ENOMEM, DSEC_STEP_MEMORY, "a command in the agent");
	if (r < 0) {
		if (c)
			command_free(a, c);
		dsec__chan_send(&a->keeper, DSEC_FRAME_FAILED, channel, &err, sizeof err);
	} else {
		c->input_eof = !(q.flags & (DSEC_EXEC_STDIN | DSEC_EXEC_TTY));
		if (q.input_len)
			on_stdin(a, c, q.input, q.input_len);
		if (c->tty && !(q.flags & DSEC_EXEC_STDIN))
			on_stdin(a, c, NULL, 0);
		input_pump(a, c);
		streams_pump(a, c);
	}
	dsec__request_done(&q);
}

static void on_signal(struct command *c, int signo)
{
	if (c->ended)
		return;
	/* The group of the command may have ended before its leader is reaped: not an error. */
	(void)kill(-c->pid, signo);
	if (c->tty && signo == SIGINT) {
		pid_t front = tcgetpgrp(c->in.fd);

		if (front > 1 && front != c->pid)
			(void)kill(-front, signo); /* what the terminal's own ^C would reach */
	}
}

static void on_resize(struct command *c, const uint8_t *payload)
{
	struct winsize size = { 0 };

	memcpy(&size.ws_row, payload, 2);
	memcpy(&size.ws_col, payload + 2, 2);
	if (c->tty && c->in.fd >= 0)
		(void)ioctl(c->in.fd, TIOCSWINSZ, &size); /* the terminal may have ended meanwhile */
}

static void on_frame(struct agent *a, const struct dsec_frame *f, const uint8_t *payload)
{
	AUTO_CLOSE int fd = f->flags & DSEC__FRAME_FD ? dsec__chan_claim_fd(&a->keeper) : -EBADF;
	struct command *c = find(a, f->channel);
	uint32_t number = 0;

	if (f->type == DSEC__FRAME_START) {
		on_start(a, f->channel, payload, f->len, fd, f->flags & DSEC__FRAME_BIRTH);
		return;
	}
	if (!c)
		return; /* it ended while the frame was on its way */
	if (f->len == sizeof number)
		memcpy(&number, payload, sizeof number);
	switch (f->type) {
	case DSEC_FRAME_STDIN:
		on_stdin(a, c, payload, f->len);
		break;
	case DSEC_FRAME_SIGNAL:
		on_signal(c, (int)number);
		break;
	case DSEC_FRAME_RESIZE:
		if (f->len == 4)
			on_resize(c, payload);
		break;
	case DSEC__FRAME_KILL:
		dsec__agent_kill_tree(c->pid, c->channel);
		reap(a); /* before the next command, for which a limit on processes may have no room else; may free c */
		break;
	case DSEC__FRAME_TAKEN:
		c->unacked -= number < c->unacked ? number : c->unacked;
		streams_pump(a, c);
		break;
	case DSEC__FRAME_FORGET:
		c->unacked = 0;
		c->drain[0] = c->drain[1] = 0;
		c->reported = true;
		watch(a, &c->out[0], EPOLLIN);
		watch(a, &c->out[1], EPOLLIN);
		streams_pump(a, c);
		break;
	default:
		break; /* from a newer keeper: there is none, both come from one binary */
	}
}

static void on_keeper(struct agent *a)
{
	const uint8_t *payload;
	struct dsec_frame f;

	dsec__chan_fill(&a->keeper);
	while (dsec__chan_next(&a->keeper, &f, &payload))
		on_frame(a, &f, payload);
}

static void on_event(struct agent *a, struct source *s)
{
	switch (s->kind) {
	case SOURCE_KEEPER:
		on_keeper(a);
		break;
	case SOURCE_SIGNAL:
		reap(a);
		break;
	case SOURCE_STDOUT:
	case SOURCE_STDERR:
		if (s->fd >= 0)
			stream_read(a, s->command, s->kind == SOURCE_STDERR);
		streams_pump(a, s->command);
		break;
	case SOURCE_STDIN:
		input_pump(a, s->command);
		break;
	}
}

static int setup(struct agent *a)
{
	struct rlimit all;
	sigset_t blocked;

	/* SIGPIPE stays blocked here: a write to a command that closed its stdin answers EPIPE. */
	if (sigemptyset(&blocked) < 0 || sigaddset(&blocked, SIGCHLD) < 0 || sigaddset(&blocked, SIGPIPE) < 0 ||
	    sigprocmask(SIG_SETMASK, &blocked, NULL) < 0 || sigdelset(&blocked, SIGPIPE) < 0)
		return -errno;
	if (getrlimit(RLIMIT_NOFILE, &a->files) < 0)
		return -errno;
	all = (struct rlimit){ a->files.rlim_max, a->files.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &all) < 0)
		return -errno;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->epoll < 0 || a->signals < 0)
		return -errno;
	a->keeper_source = (struct source){ .kind = SOURCE_KEEPER, .fd = a->keeper.fd };
	a->signal_source = (struct source){ .kind = SOURCE_SIGNAL, .fd = a->signals };
	watch(a, &a->keeper_source, EPOLLIN);
	watch(a, &a->signal_source, EPOLLIN);
	return a->keeper_source.events && a->signal_source.events ? 0 : -ENOMEM;
}

void dsec__agent_run(int take_keeper_fd, const struct dsec__spec *spec, bool has_groups, bool single_id)
{
	static struct agent a;
	struct dsec_error err = { 0 };
	int r;

	a.spec = spec;
	a.has_groups = has_groups;
	a.single_id = single_id;
	dsec__chan_init(&a.keeper, take_keeper_fd);
	r = setup(&a);
	if (r < 0) {
		(void)dsec__fail(&err, r, DSEC_STEP_KEEPER, "set up the agent's loop");
		dsec__chan_send(&a.keeper, DSEC_FRAME_FAILED, 0, &err, sizeof err);
		_exit(1);
	}
	dsec__chan_send(&a.keeper, DSEC__FRAME_AGENT_READY, 0, NULL, 0);
	for (;;) {
		struct epoll_event ev;
		int n;

		if (a.keeper.eof || a.keeper.broken)
			_exit(0); /* the kernel kills all that is in the pid namespace */
		/* One event at a time: handling it may free the command that a later one of the batch points to. */
		watch(&a, &a.keeper_source, EPOLLIN | (dsec__chan_pending(&a.keeper) ? EPOLLOUT : 0));
		n = epoll_wait(a.epoll, &ev, 1, -1);
		if (n != 1)
			continue; /* EINTR */
		if (((struct source *)ev.data.ptr)->kind == SOURCE_KEEPER && ev.events & EPOLLOUT)
			dsec__chan_flush(&a.keeper);
		on_event(&a, ev.data.ptr);
	}
}
