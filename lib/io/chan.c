/* SPDX-License-Identifier: MIT */
/* Framed connections. Must not trust a length, must not raise SIGPIPE in a process that embeds us. */
#include "chan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"

#define READ_STEP (64u << 10)

void dsec__chan_init(struct dsec__chan *c, int take_fd)
{
	*c = (struct dsec__chan){ .fd = take_fd };
}

void dsec__chan_done(struct dsec__chan *c)
{
	dsec__closep(&c->fd);
	for (unsigned i = 0; i < c->n_fds; i++)
		dsec__closep(&c->fds[i]);
	for (unsigned i = 0; i < c->n_out_fds; i++)
		dsec__closep(&c->out_fds[i].fd);
	free(c->out_fds);
	c->out_fds = NULL;
	c->n_fds = c->n_out_fds = 0;
	dsec__buf_done(&c->in);
	dsec__buf_done(&c->out);
}

static void keep_fds(struct dsec__chan *c, struct msghdr *msg)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			if (c->n_fds < ARRAY_LEN(c->fds)) {
				c->fds[c->n_fds++] = fd;
			} else {
				dsec__closep(&fd);
				c->broken = true;
			}
		}
	}
}

void dsec__chan_fill(struct dsec__chan *c)
{
	union {
		char space[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	ssize_t n;

	if (c->in_used) {
		dsec__buf_drop_front(&c->in, c->in_used);
		c->in_used = 0;
	}
	if (!c->in.len && c->in.cap > 2 * READ_STEP)
		dsec__buf_done(&c->in); /* a long message is the exception: thousands of keepers must stay small */
	iov.iov_base = dsec__buf_reserve(&c->in, READ_STEP);
	iov.iov_len = READ_STEP;
	if (!iov.iov_base) {
		c->broken = true;
		return;
	}
	do
		n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno == ECONNRESET)
			c->eof = true;
		else if (errno != EAGAIN)
			c->broken = true;
		return;
	}
	keep_fds(c, &msg);
	if (msg.msg_flags & MSG_CTRUNC)
		c->broken = true; /* no descriptor was free for one that came: its frame must not claim another's */
	if (n == 0)
		c->eof = true;
	c->in.len += (size_t)n;
}

bool dsec__chan_next(struct dsec__chan *c, struct dsec_frame *ret_frame, const uint8_t **ret_payload)
{
	size_t left = c->in.len - c->in_used;

	if (c->broken || left < sizeof *ret_frame)
		return false;
	memcpy(ret_frame, c->in.data + c->in_used, sizeof *ret_frame);
	if (ret_frame->len > DSEC_FRAME_MAX) {
		c->broken = true;
		return false;
	}
	if (left - sizeof *ret_frame < ret_frame->len)
		return false;
	*ret_payload = c->in.data + c->in_used + sizeof *ret_frame;
	c->in_used += sizeof *ret_frame + ret_frame->len;
	return true;
}

int dsec__chan_claim_fd(struct dsec__chan *c)
{
	int fd;

	if (!c->n_fds)
		return -EBADF;
	fd = c->fds[0];
	c->n_fds--;
	memmove(c->fds, c->fds + 1, c->n_fds * sizeof c->fds[0]);
	return fd;
}

/* One sendmsg, with a descriptor unless fd is negative. Bytes, or -errno. */
static ssize_t send_some(int socket, struct iovec *iov, size_t n_iov, int fd, int flags)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n_iov };
	struct cmsghdr *h = &ctl.align;
	ssize_t n;

	if (fd >= 0) {
		msg.msg_control = &ctl;
		msg.msg_controllen = sizeof ctl;
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(h), &fd, sizeof fd);
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Bytes of the queue are gone, and with the first of them its descriptor. */
static void sent_front(struct dsec__chan *c, size_t n)
{
	dsec__buf_drop_front(&c->out, n);
	if (c->n_out_fds && c->out_fds[0].at == 0) {
		dsec__closep(&c->out_fds[0].fd);
		c->n_out_fds--;
		memmove(c->out_fds, c->out_fds + 1, c->n_out_fds * sizeof c->out_fds[0]);
	}
	for (unsigned i = 0; i < c->n_out_fds; i++)
		c->out_fds[i].at -= n;
}

void dsec__chan_flush(struct dsec__chan *c)
{
	while (c->out.len && !c->broken) {
		bool has_fd = c->n_out_fds && c->out_fds[0].at == 0;
		unsigned next = has_fd; /* a descriptor goes with the first byte that is sent: the next one begins a message */
		struct iovec iov = { c->out.data, next < c->n_out_fds ? c->out_fds[next].at : c->out.len };
		ssize_t n = send_some(c->fd, &iov, 1, has_fd ? c->out_fds[0].fd : -1, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			/* A peer that is gone shows when we read, after what it sent before. Else a frame is lost. */
			c->broken |= n != -EPIPE && n != -ECONNRESET;
			sent_front(c, c->out.len);
			return;
		}
		sent_front(c, (size_t)n);
	}
}

/* Queues what is left of a frame of which `sent` bytes are gone. */
static void queue_rest(struct dsec__chan *c, const struct dsec_frame *f, const void *payload, size_t sent)
{
	if (sent < sizeof *f) {
		dsec__buf_put(&c->out, (const uint8_t *)f + sent, sizeof *f - sent);
		sent = sizeof *f;
	}
	dsec__buf_put(&c->out, (const uint8_t *)payload + (sent - sizeof *f), f->len + sizeof *f - sent);
	if (c->out.failed)
		c->broken = true;
}

static int queue_fd(struct dsec__chan *c, int fd)
{
	struct dsec__chan_fd *p;
	int copy;

	if (c->n_out_fds == DSEC__CHAN_FDS)
		return -EAGAIN;
	p = realloc(c->out_fds, (c->n_out_fds + 1) * sizeof *p);
	if (!p)
		return -ENOMEM;
	c->out_fds = p;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return -errno;
	p[c->n_out_fds++] = (struct dsec__chan_fd){ copy, c->out.len };
	return 0;
}

static int send_frame(struct dsec__chan *c, const struct dsec_frame *f, const void *payload, int fd)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)f, sizeof *f }, { (void *)(uintptr_t)payload, f->len } };
	ssize_t sent = -EAGAIN;

	if (c->broken)
		return -EPIPE; /* a part of a frame may be gone: nothing may follow it */
	if (!c->out.len)
		sent = send_some(c->fd, iov, 2, fd, MSG_DONTWAIT);
	if (sent < 0 && sent != -EAGAIN)
		return (int)sent;
	if (sent < 0 && fd >= 0) {
		int r = queue_fd(c, fd);

		if (r < 0)
			return r;
	}
	queue_rest(c, f, payload, sent < 0 ? 0 : (size_t)sent);
	return c->broken ? -ENOMEM : 0;
}

void dsec__chan_send(struct dsec__chan *c, uint16_t type, uint32_t channel, const void *payload, size_t n)
{
	struct dsec_frame f = { .len = (uint32_t)n, .type = type, .channel = channel };
	int r = send_frame(c, &f, payload, -1);

	/* A peer that is gone shows when we read, after what it sent before. Else a frame is lost. */
	c->broken |= r < 0 && r != -EPIPE && r != -ECONNRESET;
}

int dsec__chan_send_fd(struct dsec__chan *c, uint16_t type, uint16_t flags, uint32_t channel, const void *payload,
		       size_t n, int fd)
{
	struct dsec_frame f = { .len = (uint32_t)n, .type = type, .flags = DSEC__FRAME_FD | flags,
				.channel = channel };

	return send_frame(c, &f, payload, fd);
}

int dsec__chan_drain(struct dsec__chan *c, int64_t timeout_ms)
{
	int64_t end = dsec__deadline(timeout_ms);

	for (dsec__chan_flush(c); c->out.len && !c->broken; dsec__chan_flush(c)) {
		struct pollfd p = { .fd = c->fd, .events = POLLOUT };
		int left = dsec__time_left(end);
		int n = poll(&p, 1, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && left == 0)
			return -ETIMEDOUT;
		if (n > 0 && p.revents & (POLLHUP | POLLERR))
			return -EPIPE;
	}
	return c->broken ? -EPIPE : 0;
}

int dsec__frame_send(int fd, uint16_t type, const void *payload, size_t n, bool wait)
{
	struct dsec_frame f = { .len = (uint32_t)n, .type = type };
	struct iovec iov[2] = { { &f, sizeof f }, { (void *)(uintptr_t)payload, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t left = sizeof f + n;

	while (left) {
		bool first = left == sizeof f + n;
		ssize_t w = sendmsg(fd, &msg, MSG_NOSIGNAL | (first && !wait ? MSG_DONTWAIT : 0));

		if (w < 0 && errno == EAGAIN && (wait || !first)) { /* a backend may give us one that does not block */
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, -1); /* whatever it says, the next send tells */
			continue;
		}
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		left -= (size_t)w;
		for (int i = 0; i < 2; i++) {
			size_t part = (size_t)w < iov[i].iov_len ? (size_t)w : iov[i].iov_len;

			iov[i].iov_base = (uint8_t *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			w -= (ssize_t)part;
		}
	}
	return 0;
}

int dsec__chan_wait(struct dsec__chan *c, int64_t timeout_ms)
{
	int64_t end = dsec__deadline(timeout_ms);

	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN | (c->out.len ? POLLOUT : 0) };
		int left = dsec__time_left(end);
		int n = poll(&p, 1, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p.revents & POLLOUT)
			dsec__chan_flush(c);
		if (n > 0 && p.revents & (POLLIN | POLLHUP | POLLERR))
			return 1;
		if (left == 0)
			return 0;
	}
}

int dsec__frame_error(const struct dsec_frame *f, const uint8_t *payload, struct dsec_error *err)
{
	struct dsec_error e;

	if (f->type != DSEC_FRAME_FAILED || f->len != sizeof e)
		return dsec__fail(err, -EPROTO, DSEC_STEP_PROTOCOL, "frame %u of %u bytes where none was due", f->type,
				  f->len);
	memcpy(&e, payload, sizeof e);
	if (e.code >= 0)
		return dsec__fail(err, -EPROTO, DSEC_STEP_PROTOCOL, "a failure came without a code");
	e.text[sizeof e.text - 1] = 0;
	if (err)
		*err = e;
	return e.code;
}

uint64_t dsec__now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t dsec__now_ms(void)
{
	return (int64_t)(dsec__now_ns() / 1000000u);
}

int64_t dsec__deadline(int64_t timeout_ms)
{
	int64_t now = dsec__now_ms();

	if (timeout_ms < 0)
		return -1;
	return timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

int dsec__time_left(int64_t deadline)
{
	int64_t left = deadline < 0 ? -1 : deadline - dsec__now_ms();

	if (deadline >= 0 && left < 0)
		return 0;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}
