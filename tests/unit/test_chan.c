/* SPDX-License-Identifier: MIT */
/* Framed connections: what waits in the queue arrives whole, in order and with its descriptors, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/chan.h"
#include "util/cleanup.h"

struct pair {
	struct dsec__chan a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof *p);
	int fds[2];

	if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	dsec__chan_init(&p->a, fds[0]);
	dsec__chan_init(&p->b, fds[1]);
	*state = p;
	return 0;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 6000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	dsec__chan_done(&p->a);
	dsec__chan_done(&p->b);
	free(p);
	return 0;
}

/* Receives the next frame, waiting for it; false at the end. */
static bool next(struct pair *p, struct dsec_frame *f, const uint8_t **payload)
{
	while (!dsec__chan_next(&p->b, f, payload)) {
		if (p->b.eof || p->b.broken)
			return false;
		dsec__chan_flush(&p->a);
		assert_int_equal(dsec__chan_wait(&p->b, 5000), 1);
		dsec__chan_fill(&p->b);
	}
	return true;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* More than the socket holds, some of it with a descriptor, sent while nobody reads. */
static void what_waits_arrives_in_order_with_its_descriptors(void **state)
{
	enum { FRAMES = 60, EACH = 20000 };
	struct pair *p = *state;
	uint8_t *data = malloc(EACH);
	ino_t inodes[FRAMES] = { 0 };
	int before = open_descriptors();
	unsigned int with = 0;

	assert_non_null(data);
	for (int i = 0; i < FRAMES; i++) {
		memset(data, i, EACH);
		if (i % 5 == 0) {
			int fd = memfd_create("x", MFD_CLOEXEC);

			assert_true(fd >= 0);
			inodes[i] = inode_of(fd);
			assert_int_equal(dsec__chan_send_fd(&p->a, 100, 0, (uint32_t)i, data, EACH, fd), 0);
			(void)close(fd);
		} else {
			dsec__chan_send(&p->a, 101, (uint32_t)i, data, EACH);
		}
	}
	assert_true(dsec__chan_pending(&p->a));
	assert_true(p->a.n_out_fds > 0);
	for (int i = 0; i < FRAMES; i++) {
		const uint8_t *payload;
		struct dsec_frame f;

		assert_true(next(p, &f, &payload));
		assert_int_equal(f.channel, i);
		assert_int_equal(f.len, EACH);
		assert_true(payload[0] == i && payload[EACH - 1] == i);
		assert_int_equal(f.flags, i % 5 ? 0 : DSEC__FRAME_FD);
		if (f.flags & DSEC__FRAME_FD) {
			int fd = dsec__chan_claim_fd(&p->b);

			assert_int_equal(inode_of(fd), inodes[i]);
			(void)close(fd);
			with++;
		}
	}
	assert_int_equal(with, FRAMES / 5);
	assert_false(dsec__chan_pending(&p->a));
	assert_int_equal(open_descriptors(), before);
	free(data);
}

static void descriptors_that_wait_are_bounded_and_closed(void **state)
{
	static uint8_t filler[DSEC_FRAME_MAX];
	struct pair *p = *state;
	int before = open_descriptors();
	struct rlimit many;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &many), 0);
	many.rlim_cur = many.rlim_max < 6000 ? many.rlim_max : 6000;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &many), 0);
	dsec__chan_send(&p->a, 100, 0, filler, sizeof filler);
	for (unsigned int i = 0; i < DSEC__CHAN_FDS; i++)
		assert_int_equal(dsec__chan_send_fd(&p->a, 100, 0, 0, "x", 1, 0), 0);
	assert_int_equal(open_descriptors(), before + DSEC__CHAN_FDS);
	assert_int_equal(dsec__chan_send_fd(&p->a, 100, 0, 0, "x", 1, 0), -EAGAIN);
	assert_false(p->a.broken); /* that frame alone was refused */
	dsec__chan_done(&p->a);
	assert_int_equal(open_descriptors(), before - 1);
}

static void draining_waits_as_long_as_it_was_told(void **state)
{
	static uint8_t filler[DSEC_FRAME_MAX];
	struct pair *p = *state;
	int64_t t = dsec__now_ms();

	assert_int_equal(dsec__chan_drain(&p->a, 1000), 0); /* nothing waits */
	dsec__chan_send(&p->a, 100, 0, filler, sizeof filler);
	assert_int_equal(dsec__chan_drain(&p->a, 50), -ETIMEDOUT);
	assert_true(dsec__now_ms() - t >= 50);
	dsec__chan_done(&p->b);
	p->b.fd = -EBADF;
	assert_int_equal(dsec__chan_drain(&p->a, -1) < 0 || !dsec__chan_pending(&p->a), 1); /* the peer is gone: at once */
}

/* Bytes of a frame are gone when memory ends: nothing may be sent behind them. */
static void nothing_follows_a_broken_frame(void **state)
{
	struct pair *p = *state;

	p->a.broken = true;
	dsec__chan_send(&p->a, 100, 0, "x", 1);
	assert_int_equal(dsec__chan_send_fd(&p->a, 100, 0, 0, "x", 1, 0), -EPIPE);
	assert_int_equal(dsec__chan_drain(&p->a, -1), -EPIPE);
	dsec__chan_fill(&p->b);
	assert_int_equal(p->b.in.len, 0);
}

/* A descriptor that finds no room is dropped by the kernel: the next frame's must not be taken for it. */
static void a_lost_descriptor_breaks_the_channel(void **state)
{
	struct pair *p = *state;
	struct rlimit own, none;
	int next = open("/", O_PATH | O_CLOEXEC);

	(void)close(next);
	assert_int_equal(dsec__chan_send_fd(&p->a, 100, 0, 0, "x", 1, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	none = (struct rlimit){ (rlim_t)next, own.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	dsec__chan_fill(&p->b);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
	assert_true(p->b.broken);
}

static void a_header_that_breaks_the_rules_breaks_the_channel(void **state)
{
	struct dsec_frame f = { .len = DSEC_FRAME_MAX + 1, .type = 1 };
	struct pair *p = *state;
	const uint8_t *payload;

	assert_int_equal(write(p->a.fd, &f, sizeof f), sizeof f);
	dsec__chan_fill(&p->b);
	assert_false(dsec__chan_next(&p->b, &f, &payload));
	assert_true(p->b.broken);
}

/* Byte by byte: no frame comes before its last byte. */
static void a_frame_comes_when_it_is_whole(void **state)
{
	struct pair *p = *state;
	uint8_t bytes[sizeof(struct dsec_frame) + 3];
	struct dsec_frame f = { .len = 3, .type = 9, .channel = 5 };
	const uint8_t *payload;

	memcpy(bytes, &f, sizeof f);
	memcpy(bytes + sizeof f, "abc", 3);
	for (size_t i = 0; i < sizeof bytes; i++) {
		assert_false(dsec__chan_next(&p->b, &f, &payload));
		assert_int_equal(write(p->a.fd, bytes + i, 1), 1);
		dsec__chan_fill(&p->b);
	}
	assert_true(dsec__chan_next(&p->b, &f, &payload));
	assert_int_equal(f.channel, 5);
	assert_memory_equal(payload, "abc", 3);
	assert_false(dsec__chan_next(&p->b, &f, &payload));
}

/* The library's own sends, over a socket that a backend made non-blocking. */
static void a_frame_is_sent_whole_over_a_socket_that_does_not_block(void **state)
{
	static uint8_t data[1 << 20];
	struct pair *p = *state;
	pid_t pid;
	int status;

	assert_int_equal(fcntl(p->a.fd, F_SETFL, O_NONBLOCK), 0);
	pid = fork();
	if (pid == 0) {
		const uint8_t *payload;
		struct dsec_frame f;

		(void)close(p->a.fd);
		p->a.fd = -1;
		for (int i = 0; i < 5; i++) {
			while (!dsec__chan_next(&p->b, &f, &payload)) {
				if (p->b.eof || dsec__chan_wait(&p->b, 5000) != 1)
					_exit(1);
				dsec__chan_fill(&p->b);
			}
			if (f.len != sizeof data)
				_exit(2);
		}
		_exit(0);
	}
	for (int i = 0; i < 5; i++)
		assert_int_equal(dsec__frame_send(p->a.fd, 7, data, sizeof data, true), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	while (dsec__frame_send(p->a.fd, 7, data, 1000, false) == 0)
		; /* until not a byte fits */
	assert_int_equal(dsec__frame_send(p->a.fd, 7, data, 1, false), -EAGAIN);
}

static void a_failure_is_read_from_its_frame(void **state)
{
	struct dsec_error in = { .code = -ENOSPC, .step = DSEC_STEP_MOUNT, .text = "full" }, out;
	struct dsec_frame f = { .type = DSEC_FRAME_FAILED, .len = sizeof in };

	(void)state;
	assert_int_equal(dsec__frame_error(&f, (uint8_t *)&in, &out), -ENOSPC);
	assert_string_equal(out.text, "full");
	assert_int_equal(dsec__frame_error(&f, (uint8_t *)&in, NULL), -ENOSPC);
	memset(in.text, 'x', sizeof in.text); /* without its end */
	assert_int_equal(dsec__frame_error(&f, (uint8_t *)&in, &out), -ENOSPC);
	assert_int_equal(strlen(out.text), sizeof out.text - 1);
	in.code = 5;
	assert_int_equal(dsec__frame_error(&f, (uint8_t *)&in, &out), -EPROTO);
	f.len--;
	assert_int_equal(dsec__frame_error(&f, (uint8_t *)&in, &out), -EPROTO);
}

static void deadlines_do_not_overflow(void **state)
{
	(void)state;
	assert_int_equal(dsec__deadline(-1), -1);
	assert_int_equal(dsec__time_left(-1), -1);
	assert_true(dsec__deadline(INT64_MAX) == INT64_MAX);
	assert_int_equal(dsec__time_left(dsec__deadline(INT64_MAX)), INT32_MAX);
	assert_int_equal(dsec__time_left(1), 0);
	assert_in_range(dsec__time_left(dsec__deadline(10000)), 9000, 10000);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_waits_arrives_in_order_with_its_descriptors),
		TEST(descriptors_that_wait_are_bounded_and_closed),
		TEST(draining_waits_as_long_as_it_was_told),
		TEST(nothing_follows_a_broken_frame),
		TEST(a_lost_descriptor_breaks_the_channel),
		TEST(a_header_that_breaks_the_rules_breaks_the_channel),
		TEST(a_frame_comes_when_it_is_whole),
		TEST(a_frame_is_sent_whole_over_a_socket_that_does_not_block),
		TEST(a_failure_is_read_from_its_frame),
		TEST(deadlines_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
