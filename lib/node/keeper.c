/* SPDX-License-Identifier: MIT */
/* The keeper's loop. Must not wait for a peer without limit, and must not end before what it owns is removed. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"

#define GOODBYE_MS 1000

void keeper_watch(struct keeper *k, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };
	int op = !w->events ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (w->fd < 0 || events == w->events)
		return;
	if (epoll_ctl(k->epoll, op, w->fd, &ev) == 0)
		w->events = events;
	else if (w->kind == WATCH_CONN)
		w->conn->chan.broken = true; /* out of memory: its events would never come */
	else
		k->ending = true;
}

void keeper_conn_add(struct keeper *k, int take_fd, bool owner)
{
	struct conn *c = calloc(1, sizeof *c);

	if (!c) {
		dsec__closep(&take_fd); /* the peer sees its connection end */
		return;
	}
	dsec__chan_init(&c->chan, take_fd);
	c->owner = owner;
	c->watch = (struct watch){ .kind = WATCH_CONN, .fd = take_fd, .conn = c };
	c->next = k->conns;
	k->conns = c;
	keeper_watch(k, &c->watch, EPOLLIN);
}

static void conn_free(struct keeper *k, struct conn *c)
{
	struct conn **at = &k->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->run)
		keeper_run_orphan(k, c->run);
	if (c->owner && !(k->spec.flags & DSEC_SANDBOX_RETAIN))
		k->ending = true;
	keeper_watch(k, &c->watch, 0);
	dsec__chan_done(&c->chan);
	free(c);
}

static uint64_t own_memory(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	unsigned long kib;
	uint64_t sum = 0;

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "Private_Dirty: %lu", &kib) == 1 || sscanf(line, "Private_Clean: %lu", &kib) == 1)
			sum += kib * 1024;
	(void)fclose(f);
	return sum;
}

static void on_stats(struct keeper *k, struct conn *c)
{
	struct dsec_sandbox_stats s = { .sz = sizeof s, .execs = k->seq, .keeper_memory = own_memory() };
	struct dsec__cgstats g;

	dsec__cgroup_stats(&k->cgroup, &g);
	s.cpu_ns = g.cpu_ns;
	s.memory_bytes = g.memory_bytes;
	s.memory_peak = g.memory_peak;
	s.pids = g.pids;
	s.oom_kills = g.oom_kills;
	for (struct run *r = k->runs; r; r = r->next)
		s.execs_running++;
	dsec__chan_send(&c->chan, DSEC__FRAME_STATS_REPLY, 0, &s, sizeof s);
}

static void on_frame(struct keeper *k, struct conn *c, const struct dsec_frame *f, const uint8_t *payload)
{
	AUTO_CLOSE int fd = f->flags & DSEC__FRAME_FD ? dsec__chan_claim_fd(&c->chan) : -EBADF;

	switch (f->type) {
	case DSEC__FRAME_CHANNEL:
		if (fd >= 0)
			keeper_conn_add(k, TAKE_FD(fd), false);
		break;
	case DSEC__FRAME_EXEC:
		keeper_on_exec(k, c, payload, f->len);
		break;
	case DSEC__FRAME_STATS:
		on_stats(k, c);
		break;
	case DSEC__FRAME_STOP:
		c->wants_stop = k->ending = true;
		break;
	default:
		keeper_on_exec_frame(k, c, f, payload);
	}
}

static void on_conn(struct keeper *k, struct conn *c, uint32_t events)
{
	const uint8_t *payload;
	struct dsec_frame f;

	if (events & EPOLLOUT) {
		dsec__chan_flush(&c->chan);
		if (!dsec__chan_pending(&c->chan) && c->run)
			keeper_run_drained(k, c->run);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		dsec__chan_fill(&c->chan);
		while (dsec__chan_next(&c->chan, &f, &payload))
			on_frame(k, c, &f, payload);
	}
}

static void on_listen(struct keeper *k)
{
	int fd = accept4(k->listen_watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *c;

	if (fd < 0)
		return; /* the peer went, or descriptors ran out: it may try again */
	keeper_conn_add(k, fd, false);
	c = k->conns;
	if (c && c->chan.fd == fd)
		dsec__chan_send(&c->chan, DSEC__FRAME_READY, 0, k->spec.id, DSEC__ID_LEN);
}

static void on_event(struct keeper *k, struct watch *w, uint32_t events)
{
	switch (w->kind) {
	case WATCH_LISTEN:
		on_listen(k);
		break;
	case WATCH_AGENT:
		if (events & EPOLLOUT)
			dsec__chan_flush(&k->agent);
		keeper_on_agent(k);
		break;
	case WATCH_DEATH:
		k->ending = true;
		break;
	case WATCH_TRAINER:
		if (k->spec.flags & DSEC_SANDBOX_RETAIN)
			keeper_watch(k, w, 0);
		else
			k->ending = true;
		break;
	case WATCH_CONN:
		on_conn(k, w->conn, events);
		break;
	}
}

/* After each event: connections that ended go, interest in writing follows what waits to be written. There are few of them:
   a walk is cheaper than bookkeeping. */
static void tend(struct keeper *k)
{
	struct conn *after;

	for (struct conn *c = k->conns; c; c = after) {
		after = c->next;
		keeper_watch(k, &c->watch, EPOLLIN | (dsec__chan_pending(&c->chan) ? EPOLLOUT : 0));
		if (c->chan.eof || c->chan.broken)
			conn_free(k, c);
	}
	keeper_watch(k, &k->agent_watch, EPOLLIN | (dsec__chan_pending(&k->agent) ? EPOLLOUT : 0));
	if (k->agent.eof || k->agent.broken)
		k->ending = true;
}

static void loop(struct keeper *k)
{
	while (!k->ending) {
		struct epoll_event ev;
		int n;

		tend(k); /* may orphan a command, which gives it a deadline */
		if (k->ending)
			return;
		n = epoll_wait(k->epoll, &ev, 1, keeper_deadlines(k)); /* one: handling it may free what a second points to */
		if (n == 1)
			on_event(k, ev.data.ptr, ev.events);
	}
}

static int listen_open(struct keeper *k, struct dsec_error *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	/* Through the descriptor: a state directory's own path may not fit into 107 bytes. */
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/sock", k->dir.fd);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, 64) < 0)
		return dsec__fail(err, -errno, DSEC_STEP_KEEPER, "listen in the directory of \"%s\"", k->spec.id);
	k->listen_watch = (struct watch){ .kind = WATCH_LISTEN, .fd = TAKE_FD(fd) };
	return 0;
}

static int begin(struct keeper *k, const void *spec, size_t n, bool spare, struct dsec_error *err)
{
	int r = dsec__spec_decode(&k->spec, spec, n);

	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_PROTOCOL, "decode the spec of a sandbox");
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (k->epoll < 0)
		return dsec__fail(err, -errno, DSEC_STEP_KEEPER, "epoll_create1");
	r = keeper_create(k, spare, err);
	return r < 0 ? r : listen_open(k, err);
}

static _Noreturn void end(struct keeper *k, int status)
{
	if (atomic_load(k->launcher->ending))
		dsec__cgroot_close(&k->launcher->cgroot); /* the last one removes what they shared */
	_exit(status);
}

/* A spare waits, finished but for name and limits, until the launcher has a use for it. Its own id stays. Returns the
   connection of the create, or does not return: the launcher ended, has let go of it, or its agent died. */
static int await_use(struct keeper *k, int launcher)
{
	struct pollfd p[] = { { .fd = launcher, .events = POLLIN }, { .fd = k->agent_death, .events = POLLIN } };
	int conn = -EBADF;
	ssize_t n = -1;

	while (poll(p, ARRAY_LEN(p), -1) < 0)
		;
	k->message = malloc(DSEC__SPEC_MESSAGE_MAX);
	if (k->message && !p[1].revents)
		n = dsec__launcher_receive(launcher, k->message, DSEC__SPEC_MESSAGE_MAX, &conn);
	dsec__spec_done(&k->spec);
	k->spec = (struct dsec__spec){ 0 };
	if (n <= 0 || dsec__spec_decode(&k->spec, k->message, (size_t)n) < 0) {
		keeper_destroy(k);
		end(k, 0); /* a create that was on its way sees its connection end */
	}
	k->spec.id = k->dir.id;
	return conn;
}

static int publish(struct keeper *k, struct dsec_error *err)
{
	int r = dsec__sbdir_publish(&k->launcher->state, &k->dir, err);

	if (r < 0)
		return r;
	k->agent_watch = (struct watch){ .kind = WATCH_AGENT, .fd = k->agent.fd };
	k->death_watch = (struct watch){ .kind = WATCH_DEATH, .fd = k->agent_death };
	k->trainer_watch = (struct watch){ .kind = WATCH_TRAINER, .fd = k->launcher->trainer };
	keeper_watch(k, &k->listen_watch, EPOLLIN);
	keeper_watch(k, &k->death_watch, EPOLLIN);
	keeper_watch(k, &k->trainer_watch, EPOLLIN);
	return 0;
}

/* A command that was asked for and not yet read when the end came: it was not started, and its caller is told so. */
static void refuse_unread(struct keeper *k, struct conn *c)
{
	struct dsec_error err = { 0 };
	const uint8_t *payload;
	struct dsec_frame f;

	dsec__chan_fill(&c->chan);
	while (dsec__chan_next(&c->chan, &f, &payload)) {
		if (f.type != DSEC__FRAME_EXEC)
			continue;
		(void)dsec__fail_retry(&err, -EPIPE, DSEC_STEP_KEEPER, "sandbox \"%s\" has ended", k->spec.id);
		dsec__chan_send(&c->chan, DSEC_FRAME_FAILED, 0, &err, sizeof err);
	}
}

/* Tells those who wait for the end, now that nothing is left, and those whose commands it took. */
static void goodbye(struct keeper *k)
{
	for (struct conn *c = k->conns; c; c = c->next) {
		refuse_unread(k, c);
		if (c->wants_stop || c->owner)
			dsec__chan_send(&c->chan, DSEC__FRAME_STOPPED, 0, NULL, 0);
	}
	while (k->conns) {
		k->conns->run = NULL;
		/* Its last result may not fit into the socket: the reader is waited for, but not for ever. */
		(void)dsec__chan_drain(&k->conns->chan, GOODBYE_MS);
		conn_free(k, k->conns);
	}
}

/*
 * A spare that cannot be made. The launcher may have handed it a create already, which gets the reason; the next create
 * gets its own.
 */
static void spare_failed(struct keeper *k, int launcher, const struct dsec_error *err)
{
	int conn = -EBADF;
	struct dsec__chan c;

	k->message = malloc(DSEC__SPEC_MESSAGE_MAX);
	if (shutdown(launcher, SHUT_RD) < 0 || !k->message ||
	    dsec__launcher_receive(launcher, k->message, DSEC__SPEC_MESSAGE_MAX, &conn) <= 0)
		return;
	dsec__chan_init(&c, conn);
	dsec__chan_send(&c, DSEC_FRAME_FAILED, 0, err, sizeof *err);
	dsec__chan_done(&c);
	atomic_fetch_add(&k->launcher->state.shm->create_failed, 1);
}

void dsec__keeper_main(struct launcher *l, const void *spec, size_t n, int take_conn, int take_spare)
{
	static struct keeper k;
	struct dsec_error err = { 0 };
	int r;

	(void)setsid(); /* fails for no process that was just forked */
	dsec__launcher_leave(l, "dsec-keeper"); /* the trainer must see its launcher end */
	k.launcher = l;
	k.sweep_ms = INT64_MAX;
	k.group_ahead = k.agent_death = k.listen_watch.fd = k.dir.fd = k.dir.lock = -EBADF;
	dsec__rootfs_none(&k.rootfs);
	dsec__chan_init(&k.agent, -EBADF);
	r = begin(&k, spec, n, take_spare >= 0, &err);
	if (take_spare >= 0) {
		if (r < 0) {
			keeper_destroy(&k);
			spare_failed(&k, take_spare, &err);
			end(&k, 1);
		}
		take_conn = await_use(&k, take_spare);
		dsec__closep(&take_spare);
		r = keeper_describe(&k, &err);
	}
	if (r == 0)
		r = publish(&k, &err);
	keeper_conn_add(&k, take_conn, true);
	if (k.conns && r < 0) {
		keeper_destroy(&k);
		dsec__chan_send(&k.conns->chan, DSEC_FRAME_FAILED, 0, &err, sizeof err);
		atomic_fetch_add(&l->state.shm->create_failed, 1);
		end(&k, 1);
	}
	if (k.conns) {
		atomic_fetch_add(&l->state.shm->created, 1);
		dsec__chan_send(&k.conns->chan, DSEC__FRAME_READY, 0, k.spec.id, DSEC__ID_LEN);
		loop(&k);
	}
	keeper_runs_lost(&k);
	keeper_destroy(&k);
	if (atomic_load(l->ending))
		dsec__cgroot_close(&l->cgroot); /* before the goodbye: nothing is left when stop returns */
	goodbye(&k);
	end(&k, 0);
}
