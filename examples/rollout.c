/* SPDX-License-Identifier: MIT */
/*
 * Group rollouts in sandboxes, as a GRPO trainer does them: G prompts times N rollouts, each a sandbox of its own in
 * which a policy writes files, tests run, and the failure text goes back to the policy until the tests pass or it gives
 * up. All rollouts are under way at once, in one thread: each is a small state machine that waits for one descriptor.
 *
 *     TO_CREATE -> CREATING -> WRITING -> TO_RUN -> RUNNING -> STOPPING -> DONE
 *                                 ^---- next step ----'
 *
 * The policy here is scripted (tasks.h); policy_act() is the place for a model. Reading order: main(), loop_run(),
 * advance(), then the states from top to bottom.
 */
#include "rollout.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define WORKDIR "/work"
#define OUTPUT_LIMIT (256u << 10) /* bytes; a flood is a failure of its own kind */

double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * The policy. In: the task, what it did so far, what the sandbox said to it (NULL at the first step). Out: the files to
 * write, or NULL to end the episode. A trainer would send task->prompt and the output to its inference engine here,
 * and put the engine's descriptor into the same epoll as one more state. This policy knows its attempt beforehand.
 */
static const struct files *policy_act(const struct rollout *r, const struct dsec_result *seen)
{
	(void)seen; /* seen->stdout_data, stderr_data, reason: what a model would read */
	return r->steps < r->attempt->n_steps ? &r->attempt->steps[r->steps] : NULL;
}

/*
 * Waiting. A sandbox or exec handle lends a descriptor that becomes readable when its next call will not block.
 */

static void advance(struct loop *loop, struct rollout *r);

static void watch(struct loop *loop, struct rollout *r, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = r };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll_ctl");
	r->fd = fd;
}

/* Before the handle is closed, after which the descriptor's number may be someone else's. */
static void unwatch(struct loop *loop, struct rollout *r)
{
	if (r->fd >= 0 && epoll_ctl(loop->epoll, EPOLL_CTL_DEL, r->fd, NULL) < 0)
		err(1, "epoll_ctl");
	r->fd = -1;
}

/* After a call with NOWAIT. It may be done already, and a backend may have no descriptor: so ask once right away. */
static void watch_sandbox(struct loop *loop, struct rollout *r)
{
	int fd = dsec_sandbox_fd(r->sandbox);

	if (fd >= 0)
		watch(loop, r, fd);
	advance(loop, r);
}

static int ask_sandbox(struct loop *loop, struct rollout *r, struct dsec_error *err)
{
	int rc = dsec_sandbox_wait(r->sandbox, r->fd >= 0 ? 0 : -1, err);

	if (rc != -ETIMEDOUT)
		unwatch(loop, r);
	return rc;
}

static void drop_exec(struct loop *loop, struct rollout *r)
{
	if (!r->exec)
		return;
	unwatch(loop, r);
	dsec_exec_close(r->exec); /* if it still runs, its whole process tree ends */
	r->exec = NULL;
	if (r->state == RUNNING)
		loop->running--;
}

/*
 * The end of a rollout, reached from any state.
 */

static void close_sandbox(struct loop *loop, struct rollout *r)
{
	loop->open -= r->sandbox != NULL;
	loop->live -= r->sandbox != NULL && r->ready_at > 0;
	dsec_sandbox_close(r->sandbox);
	r->sandbox = NULL;
}

static void finish(struct loop *loop, struct rollout *r)
{
	close_sandbox(loop, r);
	r->state = DONE;
	r->ended_at = now();
	loop->done++;
}

static void begin_stop(struct loop *loop, struct rollout *r)
{
	struct dsec_error err = { 0 };

	drop_exec(loop, r);
	r->state = STOPPING;
	if (dsec_sandbox_stop(r->sandbox, DSEC_SANDBOX_NOWAIT, &err) < 0) {
		report_error(loop, r, "stop", &err);
		loop->stop_failures++;
		finish(loop, r);
		return;
	}
	watch_sandbox(loop, r);
}

static void on_stopping(struct loop *loop, struct rollout *r)
{
	struct dsec_error err = { 0 };
	int rc = ask_sandbox(loop, r, &err);

	if (rc == -ETIMEDOUT)
		return;
	if (rc < 0) {
		report_error(loop, r, "stop", &err);
		loop->stop_failures++;
	}
	finish(loop, r);
}

/* Ends a rollout about whose policy nothing can be said. */
static void give_up(struct loop *loop, struct rollout *r, const char *what, const struct dsec_error *err)
{
	r->outcome = OUTCOME_INFRASTRUCTURE;
	r->error = *err;
	report_error(loop, r, what, err);
	begin_stop(loop, r);
}

/*
 * A file could not be written, or a command not be started. After the policy's first command that can be its own doing:
 * it may have filled the disk, used up the processes, or put a directory where a file belongs. Before, or when the
 * sandbox is gone, it is not.
 */
static void exec_failed(struct loop *loop, struct rollout *r, const char *what, const struct dsec_error *err)
{
	bool inside = err->step == DSEC_STEP_FILE || err->step == DSEC_STEP_SPAWN || err->step == DSEC_STEP_EXEC;

	if (r->steps < 2 || !inside || err->code == -EPIPE) {
		give_up(loop, r, what, err);
		return;
	}
	r->outcome = OUTCOME_FAILED;
	r->error = *err;
	begin_stop(loop, r);
}

/*
 * One step: write the files, wait for a slot, run the tests.
 */

static void write_next(struct loop *loop, struct rollout *r);

/* Asks the policy for the next step. */
static void begin_step(struct loop *loop, struct rollout *r, const struct dsec_result *seen)
{
	r->action = r->outcome == OUTCOME_PASSED ? NULL : policy_act(r, seen);
	if (!r->action) {
		begin_stop(loop, r);
		return;
	}
	r->steps++;
	r->file = 0;
	write_next(loop, r);
}

/* The policy's files first and the tests after them, at each step anew: what it did to the tests does not last. */
static void write_next(struct loop *loop, struct rollout *r)
{
	const struct files *ours = r->action, *tests = &r->task->tests;
	const struct file *f;
	DSEC_INIT(struct dsec_exec_opts, opts, .kind = DSEC_EXEC_FILE_WRITE);
	struct dsec_error err = { 0 };

	if (r->file == ours->n + tests->n) {
		r->state = TO_RUN;
		STAILQ_INSERT_TAIL(&loop->to_run, r, link);
		return;
	}
	f = r->file < ours->n ? &ours->items[r->file] : &tests->items[r->file - ours->n];
	r->file++;
	r->state = WRITING;
	opts.mode = f->mode;
	opts.stdin_data = f->data;
	opts.stdin_len = f->len;
	if (dsec_exec_start(r->sandbox, (const char *const[]){ f->path, NULL }, &opts, &r->exec, &err) < 0) {
		exec_failed(loop, r, f->path, &err);
		return;
	}
	watch(loop, r, dsec_exec_fd(r->exec));
}

static void on_writing(struct loop *loop, struct rollout *r)
{
	DSEC_INIT(struct dsec_result, result);
	struct dsec_error err = { 0 };
	int rc = dsec_exec_wait(r->exec, 0, &result, &err);

	if (rc == -ETIMEDOUT)
		return;
	drop_exec(loop, r);
	if (rc < 0) {
		exec_failed(loop, r, "write a file", &err);
		return;
	}
	if (r->first_at == 0)
		r->first_at = now();
	dsec_result_clear(&result);
	write_next(loop, r);
}

static void begin_run(struct loop *loop, struct rollout *r)
{
	const char *const argv[] = { "/bin/sh", "-c", r->task->run, NULL };
	DSEC_INIT(struct dsec_exec_opts, opts, .flags = DSEC_EXEC_LIMIT_KILLS, .workdir = WORKDIR,
		  .timeout_ms = loop->options->timeout_ms, .output_limit = OUTPUT_LIMIT);
	struct dsec_error err = { 0 };

	if (dsec_exec_start(r->sandbox, argv, &opts, &r->exec, &err) < 0) {
		exec_failed(loop, r, "run the tests", &err);
		return;
	}
	r->state = RUNNING;
	loop->running++;
	watch(loop, r, dsec_exec_fd(r->exec));
}

static enum outcome outcome_of(const struct dsec_result *result)
{
	switch (result->reason) {
	case DSEC_REASON_EXITED:
		return result->exit_code == 0 ? OUTCOME_PASSED : OUTCOME_FAILED;
	case DSEC_REASON_SIGNALED:
		return OUTCOME_FAILED;
	case DSEC_REASON_TIMEOUT:
		return OUTCOME_TIMEOUT;
	case DSEC_REASON_OOM:
		return OUTCOME_OOM;
	case DSEC_REASON_OUTPUT_LIMIT:
		return OUTCOME_OUTPUT_LIMIT;
	default: /* DSEC_REASON_LOST, DSEC_REASON_UNKNOWN: never taken for a zero reward */
		return OUTCOME_INFRASTRUCTURE;
	}
}

/* A round trip to the sandbox's keeper, which is outside it and answers whatever the sandbox does. */
static void note_memory(struct rollout *r)
{
	DSEC_INIT(struct dsec_sandbox_stats, stats);

	/* a backend may have no counters; if the sandbox is gone, the next call says so */
	if (dsec_sandbox_stats(r->sandbox, &stats, NULL) == 0 && stats.memory_peak != UINT64_MAX)
		r->memory_peak = stats.memory_peak;
}

static void on_running(struct loop *loop, struct rollout *r)
{
	DSEC_INIT(struct dsec_result, result);
	struct dsec_error err = { 0 };
	int rc = dsec_exec_wait(r->exec, 0, &result, &err);

	if (rc == -ETIMEDOUT)
		return;
	drop_exec(loop, r);
	if (rc < 0) {
		exec_failed(loop, r, "run the tests", &err);
		return;
	}
	r->outcome = outcome_of(&result);
	r->cpu_ns += result.cpu_ns;
	note_memory(r);
	if (r->outcome == OUTCOME_INFRASTRUCTURE) {
		err.code = -EPIPE;
		(void)snprintf(err.text, sizeof(err.text), "the sandbox ended under the tests");
		give_up(loop, r, "run the tests", &err);
	} else {
		begin_step(loop, r, &result);
	}
	dsec_result_clear(&result);
}

/*
 * The beginning of a rollout.
 */

/* False when there is no room now: to be tried again when another rollout has ended. */
static bool begin_create(struct loop *loop, struct rollout *r)
{
	const struct options *o = loop->options;
	DSEC_INIT(struct dsec_sandbox_opts, opts, .flags = DSEC_SANDBOX_NOWAIT, .backend = o->backend,
		  .image = o->image, .workdir = WORKDIR, .memory_bytes = o->memory_bytes, .cpu_millis = 1000,
		  .pids = 256, .disk_bytes = 64u << 20);
	struct dsec_error err = { 0 };

	r->created_at = now();
	if (dsec_sandbox_create(loop->node, &opts, &r->sandbox, &err) == 0) {
		r->state = CREATING;
		loop->creating++;
		loop->open++;
		watch_sandbox(loop, r);
		return true;
	}
	if (err.flags & DSEC_ERROR_RETRY && loop->open > 0)
		return false;
	r->outcome = OUTCOME_INFRASTRUCTURE;
	r->error = err;
	report_error(loop, r, "create", &err);
	finish(loop, r);
	return true;
}

static void on_creating(struct loop *loop, struct rollout *r)
{
	struct dsec_error err = { 0 };
	int rc = ask_sandbox(loop, r, &err);

	if (rc == -ETIMEDOUT)
		return;
	loop->creating--;
	if (rc == 0) {
		r->ready_at = loop->last_ready_at = now();
		loop->created++;
		if (++loop->live > loop->live_peak)
			loop->live_peak = loop->live;
		begin_step(loop, r, NULL);
		return;
	}
	close_sandbox(loop, r);
	if (err.flags & DSEC_ERROR_RETRY && loop->open > 0) {
		r->state = TO_CREATE;
		STAILQ_INSERT_TAIL(&loop->to_create, r, link);
		return;
	}
	r->outcome = OUTCOME_INFRASTRUCTURE;
	r->error = err;
	report_error(loop, r, "create", &err);
	finish(loop, r);
}

/*
 * The loop.
 */

/* What `r` waited for may be there. Being called too often does no harm: every handler asks without blocking. */
static void advance(struct loop *loop, struct rollout *r)
{
	switch (r->state) {
	case CREATING:
		on_creating(loop, r);
		break;
	case WRITING:
		on_writing(loop, r);
		break;
	case RUNNING:
		on_running(loop, r);
		break;
	case STOPPING:
		on_stopping(loop, r);
		break;
	case TO_CREATE:
	case TO_RUN:
	case DONE: /* an event of the descriptor that it had before, in the same batch */
		break;
	}
}

/* Begins what there is room for. */
static void fill(struct loop *loop)
{
	const struct options *o = loop->options;
	struct rollout *r;

	while (loop->creating < o->jobs && loop->open < loop->max_open && (r = STAILQ_FIRST(&loop->to_create))) {
		STAILQ_REMOVE_HEAD(&loop->to_create, link);
		if (!begin_create(loop, r)) {
			STAILQ_INSERT_HEAD(&loop->to_create, r, link);
			break;
		}
	}
	while (loop->running < o->jobs && (r = STAILQ_FIRST(&loop->to_run))) {
		STAILQ_REMOVE_HEAD(&loop->to_run, link);
		begin_run(loop, r);
	}
}

/*
 * SIGINT or SIGTERM: every sandbox is stopped. A second one ends the program at once, and the sandboxes too: they were
 * made without DSEC_SANDBOX_RETAIN and do not outlive their creator.
 */
static void interrupt(struct loop *loop)
{
	struct signalfd_siginfo info;

	if (read(loop->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (loop->interrupted)
		_exit(130);
	loop->interrupted = true;
	STAILQ_INIT(&loop->to_create);
	STAILQ_INIT(&loop->to_run);
	for (size_t i = 0; i < loop->n; i++) {
		struct rollout *r = &loop->rollouts[i];

		if (r->state == DONE || r->state == STOPPING)
			continue;
		r->outcome = OUTCOME_NONE;
		if (r->state == CREATING)
			unwatch(loop, r);
		if (r->state == TO_CREATE)
			finish(loop, r);
		else
			begin_stop(loop, r);
	}
}

static void loop_run(struct loop *loop)
{
	struct epoll_event events[64];

	loop->started_at = now();
	for (;;) {
		int n;

		fill(loop);
		if (loop->done == loop->n)
			break;
		n = epoll_wait(loop->epoll, events, 64, report_progress(loop, false));
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				advance(loop, events[i].data.ptr);
			else
				interrupt(loop);
		}
	}
	(void)report_progress(loop, true);
}

static void loop_open(struct loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL }; /* NULL: the signals */
	struct rlimit files;
	struct dsec_error e;
	sigset_t set;

	/* a sandbox and its exec take a descriptor each, two while they are made */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		err(1, "getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		err(1, "setrlimit");
	loop->max_open = files.rlim_max > 48 ? (files.rlim_max - 32) / 3 : 5;
	if (dsec_node_open(&loop->node, NULL, &e) < 0)
		errx(1, "open the node: %s: %s: %s", dsec_step_name(e.step), e.text, strerror(-e.code));
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		err(1, "sigprocmask");
	loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->signals, &event) < 0)
		err(1, "epoll");
	STAILQ_INIT(&loop->to_create);
	STAILQ_INIT(&loop->to_run);
	loop->terminal = isatty(STDERR_FILENO);
}

static void loop_close(struct loop *loop)
{
	(void)close(loop->signals); /* the kernel keeps nothing of it */
	(void)close(loop->epoll);
	free(loop->rollouts);
	dsec_node_close(loop->node);
}

/* With a seed the tasks are drawn in another order. */
static void mix_tasks(struct tasks *tasks, uint64_t seed)
{
	for (size_t i = tasks->n - 1; seed && i > 0; i--) {
		struct task t = tasks->items[i];
		size_t other;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		other = (seed >> 33) % (i + 1);
		tasks->items[i] = tasks->items[other];
		tasks->items[other] = t;
	}
}

/* Rollout i of a prompt follows attempt i of its task, round and round. Few prompts are spread over all tasks. */
static void add_rollouts(struct loop *loop, const struct tasks *tasks)
{
	const struct options *o = loop->options;

	loop->n = o->prompts * o->rollouts;
	loop->rollouts = calloc(loop->n, sizeof(*loop->rollouts));
	if (!loop->rollouts)
		err(1, "memory");
	for (size_t i = 0; i < loop->n; i++) {
		struct rollout *r = &loop->rollouts[i];

		r->fd = -1;
		r->prompt = i / o->rollouts;
		r->index = i % o->rollouts;
		r->task = &tasks->items[o->prompts < tasks->n ? r->prompt * tasks->n / o->prompts
							     : r->prompt % tasks->n];
		r->attempt = &r->task->attempts[r->index % r->task->n_attempts];
		STAILQ_INSERT_TAIL(&loop->to_create, r, link);
	}
}

int main(int argc, char **argv)
{
	struct options options;
	struct tasks tasks = { 0 };
	struct loop loop = { .options = &options };
	bool failed = false;

	options_parse(&options, argc, argv);
	tasks_load(&tasks, options.tasks, WORKDIR);
	mix_tasks(&tasks, options.seed);
	loop_open(&loop);
	add_rollouts(&loop, &tasks);
	loop_run(&loop);

	report_table(&loop);
	if (options.json && report_json(&loop, options.json) < 0)
		err(1, "%s", options.json);
	for (size_t i = 0; i < loop.n; i++)
		failed |= loop.rollouts[i].outcome == OUTCOME_INFRASTRUCTURE;
	failed |= loop.stop_failures > 0;
	loop_close(&loop);
	tasks_free(&tasks);
	return loop.interrupted ? 130 : failed ? 1 : 0;
}
