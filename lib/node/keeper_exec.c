/* SPDX-License-Identifier: MIT */
/*
 * A command from request to result. It runs in the agent; here it is a `run`: what was asked, what came out, when it must
 * end. A run ends in exactly one of these ways: the agent reports its end, the agent could not start it, its grace after a
 * kill is over, or the sandbox is lost.
 */
#include "keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../util/cleanup.h"
#include "../util/error.h"

#define OUTPUT_LIMIT (8u << 20)
#define SWEEP_MS 100
#define GRACE_MS 50 /* from a kill to a result that does not wait for the agent: the caller was promised a deadline */

static struct run *run_find(struct keeper *k, uint64_t seq)
{
	struct run *r = k->runs;

	while (r && (uint32_t)r->seq != (uint32_t)seq)
		r = r->next;
	return r;
}

static void run_free(struct keeper *k, struct run *run)
{
	struct run **at = &k->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	if (run->conn)
		run->conn->run = NULL;
	dsec__buf_done(&run->streams[0].tail);
	dsec__buf_done(&run->streams[1].tail);
	free(run);
}

/*
 * Groups of commands whose processes outlived them are removed as they empty. A kill can come before the agent has started
 * the command, into a group that is still empty: what is doomed is killed again each time.
 */
static void lingering_sweep(struct keeper *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->n_lingering; i++) {
		struct lingering *l = &k->lingering[i];

		if (l->doomed)
			(void)dsec__cgroup_exec_kill(&k->cgroup, l->seq);
		if (dsec__cgroup_exec_remove(&k->cgroup, l->seq) == -EBUSY)
			k->lingering[kept++] = *l;
	}
	k->n_lingering = kept;
}

/* Returns when to be called next, INT64_MAX for never. */
static int64_t lingering_tend(struct keeper *k, int64_t now)
{
	bool doomed = false;

	if (k->sweep_ms == INT64_MAX)
		return INT64_MAX;
	if (now < k->sweep_ms)
		return k->sweep_ms;
	lingering_sweep(k);
	for (size_t i = 0; i < k->n_lingering; i++)
		doomed |= k->lingering[i].doomed;
	k->sweep_ms = doomed ? now + SWEEP_MS : INT64_MAX;
	return k->sweep_ms;
}

static void group_leave(struct keeper *k, struct run *run)
{
	struct lingering *p;

	if (!run->has_group)
		return;
	lingering_sweep(k);
	if (dsec__cgroup_exec_remove(&k->cgroup, run->seq) != -EBUSY)
		return;
	if (run->reason)
		k->sweep_ms = dsec__now_ms() + SWEEP_MS;
	p = realloc(k->lingering, (k->n_lingering + 1) * sizeof *p);
	if (!p)
		return; /* it is removed with the sandbox */
	k->lingering = p;
	k->lingering[k->n_lingering++] = (struct lingering){ run->seq, run->reason != 0 };
}

/* Ends the command with all it started. The result follows when the agent reports, or when the grace is over. */
static void run_kill(struct keeper *k, struct run *run, uint32_t reason)
{
	if (!run->reason)
		run->reason = reason;
	if (!run->has_group || !dsec__cgroup_exec_kill(&k->cgroup, run->seq))
		dsec__chan_send(&k->agent, DSEC__FRAME_KILL, (uint32_t)run->seq, NULL, 0);
	if (run->give_up_ms < 0)
		run->give_up_ms = dsec__now_ms() + GRACE_MS;
	run->deadline_ms = -1;
}

static uint64_t oom_kills(struct keeper *k)
{
	uint64_t now = dsec__cgroup_oom_kills(&k->cgroup);

	return now == UINT64_MAX ? 0 : now;
}

/*
 * A death by SIGKILL that nobody here asked for, while the kernel's count of out-of-memory kills rose, was one of them. So
 * was a shell's that reports such a death of its child (128 + 9).
 */
static uint32_t reason_of(struct keeper *k, const struct run *run, int status)
{
	if (run->reason)
		return run->reason;
	if (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 128 + SIGKILL) {
		if (oom_kills(k) > run->oom_before)
			return DSEC_REASON_OOM;
	}
	return WIFSIGNALED(status) ? DSEC_REASON_SIGNALED : DSEC_REASON_EXITED;
}

static void tail_send(struct run *run, int i)
{
	struct stream *s = &run->streams[i];
	size_t at = 0;

	if (s->tail.len > run->tail_max)
		dsec__buf_drop_front(&s->tail, s->tail.len - run->tail_max);
	while (at < s->tail.len) {
		size_t n = s->tail.len - at < (1u << 20) ? s->tail.len - at : 1u << 20;

		dsec__chan_send(&run->conn->chan, i ? DSEC_FRAME_STDERR : DSEC_FRAME_STDOUT, 0, s->tail.data + at, n);
		at += n;
	}
}

/* ended: NULL when the agent has not reported. */
static void run_finish(struct keeper *k, struct run *run, const struct dsec__ended *ended)
{
	struct dsec_frame_result out = { .seq = run->seq, .exit_code = -1 };
	uint64_t cpu = run->has_group ? dsec__cgroup_exec_cpu(&k->cgroup, run->seq) : UINT64_MAX;
	int status = ended ? ended->wait_status : SIGKILL;

	out.reason = reason_of(k, run, status);
	if (WIFSIGNALED(status))
		out.signal = WTERMSIG(status);
	else if (out.reason == DSEC_REASON_OOM)
		out.signal = SIGKILL;
	else if (out.reason == DSEC_REASON_EXITED)
		out.exit_code = WEXITSTATUS(status);
	out.wall_ns = dsec__now_ns() - run->started_ns;
	out.cpu_ns = cpu != UINT64_MAX ? cpu : ended ? ended->cpu_ns : 0;
	out.memory_peak = ended ? ended->memory_peak : 0;
	out.stdout_bytes = run->streams[0].total;
	out.stderr_bytes = run->streams[1].total;
	if (run->conn) {
		for (int i = 0; i < 2; i++) {
			struct stream *s = &run->streams[i];
			bool cut = s->total - s->head > run->tail_max && !(run->flags & DSEC_EXEC_STREAM);

			tail_send(run, i);
			out.flags |= cut ? (i ? DSEC_RESULT_STDERR_CUT : DSEC_RESULT_STDOUT_CUT) : 0;
			*(i ? &out.stderr_head : &out.stdout_head) = cut ? s->head : 0;
		}
		dsec__chan_send(&run->conn->chan, DSEC_FRAME_RESULT, 0, &out, sizeof out);
	}
	group_leave(k, run);
	run_free(k, run);
	keeper_group_ahead(k);
}

static void refuse(struct conn *c, const struct dsec_error *err)
{
	dsec__chan_send(&c->chan, DSEC_FRAME_FAILED, 0, err, sizeof *err);
}

static struct run *run_new(struct keeper *k, struct conn *c, const struct dsec__request *q)
{
	struct run *run = calloc(1, sizeof *run);
	uint64_t limit = q->output_limit ? q->output_limit : OUTPUT_LIMIT;

	if (!run)
		return NULL;
	run->oom_before = oom_kills(k);
	run->conn = c;
	run->seq = ++k->seq;
	run->kind = q->kind;
	run->flags = q->flags;
	run->tail_max = limit / 2;
	run->head_max = limit - run->tail_max;
	run->started_ns = dsec__now_ns();
	run->deadline_ms = q->timeout_ms ? dsec__now_ms() + (int64_t)q->timeout_ms : -1;
	run->give_up_ms = -1;
	run->stdin_credit = DSEC__STDIN_WINDOW;
	run->next = k->runs;
	k->runs = run;
	c->run = run;
	return run;
}

void keeper_group_ahead(struct keeper *k)
{
	/* A failure is left to the command to tell. */
	if (k->group_ahead < 0 && k->launcher->cgroot.exec >= 0)
		k->group_ahead = dsec__cgroup_exec_open(&k->cgroup, k->seq + 1, keeper_first_id(k), &k->group_birth, NULL);
}

/* The group of a command that begins: the one made ahead is always that of the next number. */
static int group_take(struct keeper *k, bool *ret_birth, struct dsec_error *err)
{
	*ret_birth = k->group_birth;
	if (k->group_ahead >= 0)
		return TAKE_FD(k->group_ahead);
	return dsec__cgroup_exec_open(&k->cgroup, k->seq, keeper_first_id(k), ret_birth, err);
}

void keeper_on_exec(struct keeper *k, struct conn *c, const uint8_t *payload, size_t n)
{
	struct dsec_error err = { 0 };
	struct dsec__request q;
	AUTO_CLOSE int group = -EBADF;
	struct run *run;
	bool birth;
	int r;

	r = c->run ? -EBADMSG : dsec__request_decode(&q, payload, n);
	if (r == -EBADMSG) {
		c->chan.broken = true; /* two commands on one connection, or bytes that are no request */
		return;
	}
	run = r < 0 ? NULL : run_new(k, c, &q);
	if (r == 0)
		dsec__request_done(&q);
	if (!run) {
		(void)dsec__fail_retry(&err, -ENOMEM, DSEC_STEP_MEMORY, "a command in the keeper");
		refuse(c, &err);
		return;
	}
	group = group_take(k, &birth, &err);
	if (group < 0 && group != -ENOTSUP) {
		refuse(c, &err);
		run_free(k, run);
		return;
	}
	run->has_group = group >= 0;
	atomic_fetch_add(&k->launcher->state.shm->execs, 1);
	if (group < 0) {
		dsec__chan_send(&k->agent, DSEC__FRAME_START, (uint32_t)run->seq, payload, n);
		return;
	}
	r = dsec__chan_send_fd(&k->agent, DSEC__FRAME_START, birth ? DSEC__FRAME_BIRTH : 0,
			       (uint32_t)run->seq, payload, n, group);
	if (r == -EPIPE || r == -ECONNRESET || k->agent.broken) {
		k->ending = true; /* the agent is gone: every run gets its result at the end */
	} else if (r < 0) {
		(void)dsec__fail_retry(&err, r, DSEC_STEP_KEEPER, "hand the command to the agent");
		refuse(c, &err);
		group_leave(k, run);
		run_free(k, run);
	}
}

void keeper_on_exec_frame(struct keeper *k, struct conn *c, const struct dsec_frame *f, const uint8_t *payload)
{
	uint32_t signo = 0;

	if (!c->run)
		return; /* it ended while the frame was on its way */
	switch (f->type) {
	case DSEC_FRAME_STDIN:
		if (f->len > c->run->stdin_credit) {
			c->chan.broken = true; /* more than was welcome: memory here is bounded */
			return;
		}
		c->run->stdin_credit -= f->len;
		break;
	case DSEC_FRAME_SIGNAL:
		if (f->len != sizeof signo)
			return;
		memcpy(&signo, payload, sizeof signo);
		if (signo == SIGKILL) {
			run_kill(k, c->run, DSEC_REASON_SIGNALED);
			return;
		}
		break;
	case DSEC_FRAME_RESIZE:
		break;
	default:
		return;
	}
	dsec__chan_send(&k->agent, f->type, (uint32_t)c->run->seq, payload, f->len);
}

static void output_taken(struct keeper *k, struct run *run, uint64_t n)
{
	uint32_t taken = (uint32_t)n;

	dsec__chan_send(&k->agent, DSEC__FRAME_TAKEN, (uint32_t)run->seq, &taken, sizeof taken);
}

void keeper_run_drained(struct keeper *k, struct run *run)
{
	if (run->owed)
		output_taken(k, run, run->owed);
	run->owed = 0;
}

static void keep_tail(struct run *run, struct stream *s, const uint8_t *data, size_t n)
{
	/* Dropping when twice as much is there as is kept moves each byte once on average. */
	dsec__buf_put(&s->tail, data, n);
	if (s->tail.len > 2 * run->tail_max + (64u << 10))
		dsec__buf_drop_front(&s->tail, s->tail.len - run->tail_max);
	if (s->tail.failed) { /* out of memory: what was kept of the tail is lost, and the count shows it */
		dsec__buf_done(&s->tail);
	}
}

static void on_output(struct keeper *k, struct run *run, int i, const uint8_t *data, size_t n)
{
	struct stream *s = &run->streams[i];
	size_t head = n;
	size_t whole = n;

	s->total += n;
	if (!run->conn) {
		output_taken(k, run, n);
		return;
	}
	if (!(run->flags & DSEC_EXEC_STREAM) && head > run->head_max - s->head)
		head = run->head_max - s->head;
	if (head)
		dsec__chan_send(&run->conn->chan, i ? DSEC_FRAME_STDERR : DSEC_FRAME_STDOUT, 0, data, head);
	if (!(run->flags & DSEC_EXEC_STREAM))
		s->head += head;
	if (n > head)
		keep_tail(run, s, data + head, n - head);
	if (run->flags & DSEC_EXEC_LIMIT_KILLS && s->total > run->head_max + run->tail_max && !run->reason)
		run_kill(k, run, DSEC_REASON_OUTPUT_LIMIT);
	if (run->flags & DSEC_EXEC_STREAM && dsec__chan_pending(&run->conn->chan))
		run->owed += whole;
	else
		output_taken(k, run, whole);
}

static void on_failed(struct keeper *k, struct run *run, const uint8_t *payload)
{
	struct dsec_error err;

	memcpy(&err, payload, sizeof err);
	err.text[sizeof err.text - 1] = 0;
	if (run->conn)
		refuse(run->conn, &err);
	group_leave(k, run);
	run_free(k, run);
}

static void on_ended(struct keeper *k, struct run *run, const uint8_t *payload)
{
	struct dsec__ended e;
	struct dsec_error err = { 0 };

	memcpy(&e, payload, sizeof e);
	if (!e.error || run->reason) {
		run_finish(k, run, &e);
		return;
	}
	(void)dsec__fail(&err, e.error, run->kind ? DSEC_STEP_FILE : DSEC_STEP_SPAWN,
			 run->kind ? "read or write a file of the sandbox" : "pass on input or output of the command");
	if (run->conn)
		refuse(run->conn, &err);
	group_leave(k, run);
	run_free(k, run);
}

static void on_agent_frame(struct keeper *k, const struct dsec_frame *f, const uint8_t *payload)
{
	struct run *run = run_find(k, f->channel);
	uint32_t credit;

	if (!run)
		return; /* its result was given before */
	switch (f->type) {
	case DSEC_FRAME_STDOUT:
	case DSEC_FRAME_STDERR:
		on_output(k, run, f->type == DSEC_FRAME_STDERR, payload, f->len);
		break;
	case DSEC_FRAME_CREDIT:
		if (f->len != sizeof credit)
			break;
		memcpy(&credit, payload, sizeof credit);
		run->stdin_credit += credit;
		if (run->conn)
			dsec__chan_send(&run->conn->chan, DSEC_FRAME_CREDIT, 0, payload, f->len);
		break;
	case DSEC_FRAME_FAILED:
		if (f->len == sizeof(struct dsec_error))
			on_failed(k, run, payload);
		break;
	case DSEC__FRAME_ENDED:
		if (f->len == sizeof(struct dsec__ended))
			on_ended(k, run, payload);
		break;
	default:
		break;
	}
}

void keeper_on_agent(struct keeper *k)
{
	const uint8_t *payload;
	struct dsec_frame f;

	dsec__chan_fill(&k->agent);
	while (dsec__chan_next(&k->agent, &f, &payload))
		on_agent_frame(k, &f, payload);
}

void keeper_run_orphan(struct keeper *k, struct run *run)
{
	run->conn = NULL;
	run_kill(k, run, DSEC_REASON_LOST);
}

int keeper_deadlines(struct keeper *k)
{
	int64_t now = dsec__now_ms(), next = INT64_MAX, swept;
	struct run *after;

	for (struct run *run = k->runs; run; run = after) {
		after = run->next;
		if (run->deadline_ms >= 0 && run->deadline_ms <= now)
			run_kill(k, run, DSEC_REASON_TIMEOUT);
		if (run->give_up_ms >= 0 && run->give_up_ms <= now) {
			/* Something in it cannot die yet (a disk, a network file system): it is not waited for. */
			dsec__chan_send(&k->agent, DSEC__FRAME_FORGET, (uint32_t)run->seq, NULL, 0);
			run_finish(k, run, NULL);
			continue;
		}
		if (run->deadline_ms >= 0 && run->deadline_ms < next)
			next = run->deadline_ms;
		if (run->give_up_ms >= 0 && run->give_up_ms < next)
			next = run->give_up_ms;
	}
	swept = lingering_tend(k, now);
	next = swept < next ? swept : next;
	if (next == INT64_MAX)
		return -1;
	return next - now > INT32_MAX ? INT32_MAX : (int)(next - now);
}

void keeper_runs_lost(struct keeper *k)
{
	while (k->runs) {
		if (!k->runs->reason)
			k->runs->reason = DSEC_REASON_LOST;
		run_finish(k, k->runs, NULL);
	}
}
