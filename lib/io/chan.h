/* SPDX-License-Identifier: MIT */
/*
 * A connection that carries frames (struct dsec_frame of dsec/backend.h) over a stream socket: what has come and is not
 * yet a whole frame, and what shall go and does not fit yet. Used by keeper, agent and library alike. Calls that may
 * block say so.
 */
#ifndef DSEC__CHAN_H
#define DSEC__CHAN_H

#include <dsec/backend.h>

#include "../util/wire.h"

/* Frames between our own processes, beside the public ones of an exec channel. */
enum {
	/* library to keeper */
	DSEC__FRAME_EXEC = 32,    /* struct dsec__request; the connection becomes the command's channel until its result */
	DSEC__FRAME_CHANNEL = 33, /* flag FD: a further connection of the same rank */
	DSEC__FRAME_STATS = 34,
	DSEC__FRAME_STOP = 35,
	/* keeper to library */
	DSEC__FRAME_READY = 48, /* the sandbox takes commands; payload: its id */
	DSEC__FRAME_STATS_REPLY = 49, /* struct dsec_sandbox_stats */
	DSEC__FRAME_STOPPED = 50,
	/* keeper to agent, `channel` is the number of the command */
	DSEC__FRAME_START = 64, /* struct dsec__request; flag FD: its control group, as dsec__cgroup_exec_open() gives it */
	DSEC__FRAME_TAKEN = 65, /* uint32_t: so many bytes of output were taken */
	DSEC__FRAME_KILL = 66,  /* end the tree as well as the agent can: there is no control group for it */
	DSEC__FRAME_FORGET = 67, /* nobody waits for it any more: drop its output */
	DSEC__FRAME_MOUNT = 70, /* flag FD: a detached mount; `channel` says which */
	DSEC__FRAME_GO = 71, /* all is prepared: become the sandbox */
	/* agent to keeper */
	DSEC__FRAME_AGENT_READY = 80,
	DSEC__FRAME_ENDED = 82, /* struct dsec__ended */
};

/* dsec_frame.flags on our own sockets: one descriptor comes with the frame. */
#define DSEC__FRAME_FD 1u
/* START: that descriptor is a directory to be born in. */
#define DSEC__FRAME_BIRTH 2u

/* Output that may be on its way from a command without being taken. Bytes. */
#define DSEC__WINDOW (256u << 10)
/* Stdin that may be on its way without being read: less than any socket holds, so that giving it never waits. */
#define DSEC__STDIN_WINDOW (64u << 10)

struct dsec__ended {
	int32_t wait_status; /* as wait(2) gives it */
	int32_t error;       /* negative errno of a file transfer, or of reading the output of a command; else 0 */
	uint64_t cpu_ns;     /* of the waited-for processes */
	uint64_t memory_peak;
};

/* A descriptor that waits to be sent. */
struct dsec__chan_fd {
	int fd;    /* ours */
	size_t at; /* goes with this byte of the queue */
};

#define DSEC__CHAN_FDS 4096u /* that may wait: as many commands as a sandbox may be asked to start at once */

struct dsec__chan {
	int fd;
	struct dsec__buf in, out;
	struct dsec__chan_fd *out_fds; /* oldest first */
	unsigned n_out_fds;
	int fds[4]; /* received, not yet claimed, oldest first */
	unsigned n_fds;
	size_t in_used; /* bytes of `in` that were handed out as frames */
	bool eof, broken;
};

void dsec__chan_init(struct dsec__chan *c, int take_fd);
void dsec__chan_done(struct dsec__chan *c);

/* Reads what is there. 0; sets eof at its end, broken on an error of the socket or of memory. */
void dsec__chan_fill(struct dsec__chan *c);
/*
 * The next whole frame: its payload lies in the channel until the next fill. Returns false when there is none yet. A
 * header that breaks the rules sets broken.
 */
bool dsec__chan_next(struct dsec__chan *c, struct dsec_frame *ret_frame, const uint8_t **ret_payload);
/* The descriptor that came with a frame flagged FD, the caller's from now on; -EBADF if there is none. */
int dsec__chan_claim_fd(struct dsec__chan *c);

/* Queues a frame and sends what the socket takes. Memory failing sets broken. */
void dsec__chan_send(struct dsec__chan *c, uint16_t type, uint32_t channel, const void *payload, size_t n);
/* The same with one descriptor (borrowed). 0 or -errno: nothing of the frame was sent or queued then. */
int dsec__chan_send_fd(struct dsec__chan *c, uint16_t type, uint16_t flags, uint32_t channel, const void *payload,
		       size_t n, int fd);
/* Sends what the socket takes of the queue. */
void dsec__chan_flush(struct dsec__chan *c);
/* Sends all of it: blocks while the peer does not read. 0, -EPIPE, -ETIMEDOUT or -errno. */
int dsec__chan_drain(struct dsec__chan *c, int64_t timeout_ms);
static inline bool dsec__chan_pending(const struct dsec__chan *c)
{
	return c->out.len > 0;
}

/*
 * Sends a frame whole over a socket that has no queue of ours, to a peer that always reads. With wait false -EAGAIN is
 * returned when not even its first byte fits; once that is gone, the rest is waited for. 0 or -errno.
 */
int dsec__frame_send(int fd, uint16_t type, const void *payload, size_t n, bool wait);

/* Waits until the channel can be read (and flushes meanwhile). 1 readable, 0 timeout, -errno. timeout_ms -1: for ever. */
int dsec__chan_wait(struct dsec__chan *c, int64_t timeout_ms);

/* The error that a FAILED frame carries, into err (NULL is allowed); its code. A payload that is none is -EPROTO. */
int dsec__frame_error(const struct dsec_frame *f, const uint8_t *payload, struct dsec_error *err);

/* Milliseconds of CLOCK_BOOTTIME, for deadlines, and nanoseconds. */
int64_t dsec__now_ms(void);
uint64_t dsec__now_ns(void);

/* When a timeout (-1: none) from now is over, and how much of it is left, for poll(): -1 for ever, 0 when it is over. */
int64_t dsec__deadline(int64_t timeout_ms);
int dsec__time_left(int64_t deadline);

#endif
