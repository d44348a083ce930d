/* SPDX-License-Identifier: MIT */
/* The container backend: the library's side of a conversation with the sandbox's keeper (lib/node/keeper.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../core/core.h"
#include "../node/launcher.h"
#include "../util/cleanup.h"
#include "../util/error.h"

#define ATTACH_MS 10000
#define REMAINS_MS 5000

struct container {
	struct dsec__chan control;
	bool stop_sent;
	bool gone;  /* the keeper ended */
	bool clean; /* and left nothing */
};

static int container_probe(struct dsec_node *node, struct dsec_error *err)
{
	(void)node;
	(void)err;
	return 0; /* asking costs more than trying: what is missing is told by the step that needs it */
}

static void fill_spec(struct dsec__spec *s, const struct dsec_sandbox *sb, const struct dsec_sandbox_opts *o)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	*s = (struct dsec__spec){
		.id = sb->id,
		.backend = sb->ops->name,
		.image = o->image ? o->image : "host",
		.name = o->name,
		.run = o->run,
		.hostname = o->hostname ? o->hostname : "dsec",
		.workdir = o->workdir ? o->workdir : "/root",
		.env = (char **)(uintptr_t)o->env,
		.flags = o->flags,
		.cpu_millis = o->cpu_millis,
		.memory_bytes = o->memory_bytes,
		.pids = o->pids,
		.disk_bytes = o->disk_bytes,
		.disk_inodes = o->disk_inodes,
		.created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
		.network = o->network,
		.top = o->top,
	};
	(void)dsec__user_parse(o->user ? o->user : "root", &s->uid, &s->gid); /* was checked */
}

/* One datagram to the launcher: the spec, and the keeper's end of the connection. */
static int send_spec(const struct dsec_sandbox *sb, const struct dsec__buf *spec, int keeper_end, struct dsec_error *err)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { 0 };
	struct iovec iov = { spec->data, spec->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	if (spec->failed)
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "the spec of a sandbox");
	if (spec->len > DSEC__SPEC_MESSAGE_MAX)
		return dsec__fail(err, -E2BIG, DSEC_STEP_OPTIONS, "env: the options of a sandbox are over 1 MiB");
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof keeper_end);
	memcpy(CMSG_DATA(h), &keeper_end, sizeof keeper_end);
	do
		n = sendmsg(sb->node->launcher, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EMSGSIZE)
		return dsec__fail(err, -E2BIG, DSEC_STEP_OPTIONS, "env: the options do not fit into one message");
	if (n < 0 && (errno == ECONNRESET || errno == ENOTCONN))
		errno = EPIPE; /* which of them depends on what it had not read */
	if (n < 0)
		return dsec__fail_retry(err, -errno, DSEC_STEP_LAUNCHER, "send a spec to the launcher");
	return 0;
}

static struct container *container_new(struct dsec_sandbox *sb, int take_fd)
{
	struct container *c = calloc(1, sizeof *c);

	if (!c) {
		dsec__closep(&take_fd);
		return NULL;
	}
	dsec__chan_init(&c->control, take_fd);
	dsec_backend_set_data(sb, c);
	sb->reuses_channels = true;
	return c;
}

static void container_destroy(struct dsec_sandbox *sb)
{
	struct container *c = dsec_backend_data(sb);

	/* The keeper ends a sandbox whose owner's connection ends, unless it is retained. Shut down: a process that this one
	   forked may hold a copy of the descriptor. */
	if (!dsec_backend_forked(sb))
		(void)shutdown(c->control.fd, SHUT_RDWR);
	dsec__chan_done(&c->control);
	free(c);
}

static int container_create(struct dsec_sandbox *sb, const struct dsec_sandbox_opts *opts, struct dsec_error *err)
{
	AUTO_CLOSE int theirs = -EBADF;
	struct dsec__buf buf = { 0 };
	struct dsec__spec spec;
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return dsec__fail_retry(err, -errno, DSEC_STEP_KEEPER, "socketpair");
	theirs = pair[1];
	if (!container_new(sb, pair[0]))
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a container handle");
	fill_spec(&spec, sb, opts);
	dsec__spec_encode(&buf, &spec);
	r = send_spec(sb, &buf, theirs, err);
	dsec__buf_done(&buf);
	if (r < 0)
		container_destroy(sb);
	return r;
}

/* Waits for a frame of the control connection: its type, or -ETIMEDOUT or -EPIPE without a text. */
static int await(struct container *c, int64_t deadline, struct dsec_frame *ret_frame, const uint8_t **ret_payload)
{
	while (!dsec__chan_next(&c->control, ret_frame, ret_payload)) {
		int r;

		if (c->control.in.failed)
			return -ENOMEM;
		if (c->control.eof || c->control.broken)
			return -EPIPE;
		r = dsec__chan_wait(&c->control, dsec__time_left(deadline));
		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;
		dsec__chan_fill(&c->control);
	}
	return ret_frame->type;
}

/* A sandbox that was made ahead has an id of its own. */
static bool take_id(struct dsec_sandbox *sb, const struct dsec_frame *f, const uint8_t *payload)
{
	if (f->type != DSEC__FRAME_READY || f->len != DSEC__ID_LEN)
		return false;
	memcpy(sb->id, payload, DSEC__ID_LEN);
	return true;
}

static int container_start(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	struct container *c = dsec_backend_data(sb);
	const uint8_t *payload;
	struct dsec_frame f;
	int r = await(c, dsec__deadline(timeout_ms), &f, &payload);

	if (r == -ETIMEDOUT)
		return dsec__fail(err, r, DSEC_STEP_KEEPER, "sandbox \"%s\" is still being made", sb->id);
	if (r == -EPIPE)
		return dsec__fail_retry(err, r, DSEC_STEP_LAUNCHER, "the launcher or the keeper of \"%s\" died", sb->id);
	if (r < 0)
		return dsec__fail(err, r, DSEC_STEP_KEEPER, "wait for sandbox \"%s\"", sb->id);
	return take_id(sb, &f, payload) ? 0 : dsec__frame_error(&f, payload, err);
}

/* Nothing of it reached the keeper whole: the call may be repeated. */
static int send_failed(const struct dsec_sandbox *sb, int r, struct dsec_error *err)
{
	if (r != -EPIPE && r != -ECONNRESET)
		return dsec__fail_retry(err, r, DSEC_STEP_KEEPER, "send to the keeper of \"%s\"", sb->id);
	return dsec__fail_retry(err, -EPIPE, DSEC_STEP_KEEPER, "the keeper of \"%s\" is gone", sb->id);
}

/* A connection that carries nothing now: the one of a command that ended, or a new one. */
static int channel_open(struct dsec_sandbox *sb, struct dsec_error *err)
{
	struct container *c = dsec_backend_data(sb);
	AUTO_CLOSE int theirs = -EBADF;
	AUTO_CLOSE int ours = atomic_exchange(&sb->idle_channel, -EBADF);
	int pair[2];
	int r;

	if (ours >= 0)
		return TAKE_FD(ours);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return dsec__fail_retry(err, -errno, DSEC_STEP_KEEPER, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	r = dsec__chan_send_fd(&c->control, DSEC__FRAME_CHANNEL, 0, 0, NULL, 0, theirs);
	if (r == 0)
		r = dsec__chan_drain(&c->control, -1);
	if (r < 0)
		return send_failed(sb, r, err);
	return TAKE_FD(ours);
}

static int container_exec(struct dsec_sandbox *sb, const char *const argv[], const struct dsec_exec_opts *o, int *ret_fd,
			  struct dsec_error *err)
{
	struct dsec__request q = {
		.kind = o->kind, .mode = o->mode, .flags = o->flags, .timeout_ms = o->timeout_ms,
		.output_limit = o->output_limit, .uid = UINT32_MAX, .rows = o->tty_rows, .cols = o->tty_cols,
		.workdir = o->workdir, .argv = (char **)(uintptr_t)argv, .env = (char **)(uintptr_t)o->env,
		.input = o->stdin_data, .input_len = o->stdin_len,
	};
	struct dsec__buf b = { 0 };
	AUTO_CLOSE int fd = channel_open(sb, err);
	int r = 0;

	if (fd < 0)
		return fd;
	if (o->user)
		(void)dsec__user_parse(o->user, &q.uid, &q.gid); /* was checked */
	dsec__request_encode(&b, &q);
	if (b.failed)
		r = dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a request");
	else if (b.len > DSEC_FRAME_MAX)
		r = dsec__fail(err, -E2BIG, DSEC_STEP_EXEC, "execve \"%.64s\": arguments and environment", argv[0]);
	else
		r = dsec__frame_send(fd, DSEC__FRAME_EXEC, b.data, b.len, true);
	if (r < 0 && !b.failed && b.len <= DSEC_FRAME_MAX)
		r = send_failed(sb, r, err);
	dsec__buf_done(&b);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int container_signal(struct dsec_sandbox *sb, int fd, int32_t signo, struct dsec_error *err)
{
	uint32_t number = (uint32_t)signo;
	int r = dsec__frame_send(fd, DSEC_FRAME_SIGNAL, &number, sizeof number, true);

	return r < 0 ? send_failed(sb, r, err) : 0;
}

/* Its keeper died without a word: what it left is ours to remove, as soon as the kernel has let go of its lock. */
static int remove_remains(struct dsec_sandbox *sb, int64_t deadline, struct dsec_error *err)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t end = dsec__deadline(REMAINS_MS);

	if (deadline >= 0 && deadline < end)
		end = deadline;
	for (;;) {
		int r = dsec__state_reap(&sb->node->state, err);

		if (r < 0)
			return r;
		if (!dsec__sbdir_remains(&sb->node->state, sb->id))
			return 0;
		if (dsec__time_left(end) == 0)
			return dsec__fail(err, end == deadline ? -ETIMEDOUT : -EBUSY, DSEC_STEP_STOP,
					  "what the dead keeper of \"%s\" left is not removed yet", sb->id);
		(void)nanosleep(&pause, NULL);
	}
}

static int ask_to_stop(struct dsec_sandbox *sb, struct container *c, struct dsec_error *err)
{
	int r = c->stop_sent ? 0 : dsec__frame_send(c->control.fd, DSEC__FRAME_STOP, NULL, 0, true);

	if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* if it is gone, reading shows it */
		return dsec__fail_retry(err, r, DSEC_STEP_STOP, "ask the keeper of \"%s\" to end it", sb->id);
	c->stop_sent = true;
	return 0;
}

static int container_stop(struct dsec_sandbox *sb, int64_t timeout_ms, struct dsec_error *err)
{
	struct container *c = dsec_backend_data(sb);
	int64_t deadline = dsec__deadline(timeout_ms);
	const uint8_t *payload;
	struct dsec_frame f;
	int r = c->gone ? 0 : ask_to_stop(sb, c, err);

	if (r < 0)
		return r;
	while (!c->gone) {
		r = await(c, deadline, &f, &payload);
		if (r == -ETIMEDOUT)
			return dsec__fail(err, r, DSEC_STEP_STOP, "sandbox \"%s\" is still being ended", sb->id);
		if (r < 0 && r != -EPIPE)
			return dsec__fail(err, r, DSEC_STEP_STOP, "wait for the end of \"%s\"", sb->id);
		if (r >= 0 && r != DSEC__FRAME_STOPPED && r != DSEC_FRAME_FAILED) {
			(void)take_id(sb, &f, payload); /* of a create that was not waited for */
			continue;
		}
		c->gone = true;
		c->clean = r >= 0;
	}
	r = c->clean ? 0 : remove_remains(sb, deadline, err);
	c->clean = r == 0;
	return r;
}

static int container_attach(struct dsec_sandbox *sb, const char *id, struct dsec_error *err)
{
	AUTO_CLOSE int dir = openat(sb->node->state.sb_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const uint8_t *payload;
	struct dsec_frame f;
	int r;

	/* Through the descriptor: a state directory's own path may not fit into 107 bytes. */
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/sock", dir);
	if (dir < 0 || fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_KEEPER, "prepare to connect to the keeper of \"%s\"", id);
	while (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		if (errno != EINTR) /* interrupted while the queue was full: a local socket then is not connected */
			return dsec__fail(err, errno == ECONNREFUSED ? -EPIPE : -errno, DSEC_STEP_KEEPER,
					  "connect to the keeper of \"%s\"", id);
	if (!container_new(sb, TAKE_FD(fd)))
		return dsec__fail_retry(err, -ENOMEM, DSEC_STEP_MEMORY, "a container handle");
	r = await(dsec_backend_data(sb), dsec__deadline(ATTACH_MS), &f, &payload);
	if (r == DSEC__FRAME_READY)
		return 0;
	container_destroy(sb);
	return dsec__fail(err, r == -ETIMEDOUT ? r : -EPIPE, DSEC_STEP_KEEPER, "attach to \"%s\"", id);
}

static int container_stats(struct dsec_sandbox *sb, struct dsec_sandbox_stats *ret, struct dsec_error *err)
{
	struct container *c = dsec_backend_data(sb);
	const uint8_t *payload;
	struct dsec_frame f = { 0 };
	int r = dsec__frame_send(c->control.fd, DSEC__FRAME_STATS, NULL, 0, true);

	if (r == 0)
		r = await(c, -1, &f, &payload);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return dsec__fail(err, r, DSEC_STEP_KEEPER, "ask the keeper of \"%s\"", sb->id);
	if (r != DSEC__FRAME_STATS_REPLY || f.len != sizeof *ret)
		return dsec__fail(err, -EPIPE, DSEC_STEP_KEEPER, "the keeper of \"%s\" is gone", sb->id);
	memcpy(ret, payload, sizeof *ret);
	return 0;
}

static int container_fd(const struct dsec_sandbox *sb)
{
	return ((struct container *)dsec_backend_data(sb))->control.fd;
}

const struct dsec_backend_ops dsec__backend_container = {
	.sz = sizeof(struct dsec_backend_ops),
	.name = "container",
	.caps = DSEC_CAP_EXEC | DSEC_CAP_FILES | DSEC_CAP_TTY | DSEC_CAP_LIMITS | DSEC_CAP_STATS | DSEC_CAP_ATTACH |
		DSEC_CAP_NETWORK_HOST,
	.probe = container_probe,
	.create = container_create,
	.start = container_start,
	.exec = container_exec,
	.signal = container_signal,
	.stop = container_stop,
	.destroy = container_destroy,
	.attach = container_attach,
	.stats = container_stats,
	.fd = container_fd,
};
