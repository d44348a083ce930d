/* SPDX-License-Identifier: MIT */
/* Framed connections. Must not block, must not trust a length, must not raise SIGPIPE in a process that embeds us. */
#include "chan.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../util/cleanup.h"

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
	c->n_fds = 0;
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

void dsec__chan_flush(struct dsec__chan *c)
{
	while (c->out.len && !c->broken) {
		ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			c->broken |= errno != EPIPE && errno != ECONNRESET;
			c->out.len = 0;
			return;
		}
		dsec__buf_drop_front(&c->out, (size_t)n);
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

void dsec__chan_send(struct dsec__chan *c, uint16_t type, uint32_t channel, const void *payload, size_t n)
{
	struct dsec_frame f = { .len = (uint32_t)n, .type = type, .channel = channel };
	struct iovec iov[2] = { { &f, sizeof f }, { (void *)(uintptr_t)payload, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t sent = 0;

	if (!c->out.len) {
		do
			sent = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		while (sent < 0 && errno == EINTR);
		if (sent < 0 && errno != EAGAIN) {
			/* A peer that is gone shows when we read, after what it sent before. Else a frame is lost. */
			c->broken |= errno != EPIPE && errno != ECONNRESET;
			return;
		}
		if (sent < 0)
			sent = 0;
	}
	queue_rest(c, &f, payload, (size_t)sent);
}

static int drain(struct dsec__chan *c)
{
	while (c->out.len) {
		struct pollfd p = { .fd = c->fd, .events = POLLOUT };

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (p.revents & (POLLHUP | POLLERR))
			return -EPIPE;
		dsec__chan_flush(c);
	}
	return 0;
}

int dsec__chan_send_fd(struct dsec__chan *c, uint16_t type, uint16_t flags, uint32_t channel, const void *payload,
		       size_t n, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { 0 };
	struct dsec_frame f = { .len = (uint32_t)n, .type = type, .flags = DSEC__FRAME_FD | flags,
				.channel = channel };
	struct iovec iov[2] = { { &f, sizeof f }, { (void *)(uintptr_t)payload, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = &ctl, .msg_controllen = sizeof ctl };
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
	ssize_t sent;
	int r;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	r = drain(c); /* the descriptor travels with the frame's first byte, so that byte cannot wait in the queue */
	if (r < 0)
		return r;
	do
		sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	queue_rest(c, &f, payload, (size_t)sent);
	return c->broken ? -ENOMEM : 0;
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
	int64_t end = timeout_ms < 0 ? -1 : dsec__now_ms() + timeout_ms;

	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int64_t left = end < 0 ? -1 : end - dsec__now_ms();
		int n;

		if (c->out.len)
			p.events |= POLLOUT;
		if (end >= 0 && left < 0)
			left = 0;
		n = poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p.revents & POLLOUT)
			dsec__chan_flush(c);
		if (n > 0 && p.revents & (POLLIN | POLLHUP | POLLERR))
			return 1;
		if (end >= 0 && dsec__now_ms() >= end)
			return 0;
	}
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
