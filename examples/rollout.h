/* SPDX-License-Identifier: MIT */
/* What rollout.c (the loop) and rollout_report.c (its command line and all that it prints) share. */
#ifndef EXAMPLES_ROLLOUT_H
#define EXAMPLES_ROLLOUT_H

#include "tasks.h"

#include <dsec/dsec.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/queue.h>

/*
 * Where a rollout stands. Each state but the first and the last waits for one thing, and rollout.c has one function
 * that handles its arrival.
 */
enum state {
	TO_CREATE, /* nothing of it exists yet */
	CREATING,  /* waits for: the sandbox takes commands */
	WRITING,   /* waits for: one file is in the sandbox */
	TO_RUN,    /* waits for: one of the --jobs slots */
	RUNNING,   /* waits for: the tests have ended */
	STOPPING,  /* waits for: nothing is left of the sandbox */
	DONE,
};

/* How the last command of a rollout ended. All between PASSED and OUTPUT_LIMIT are the policy's doing. */
enum outcome {
	OUTCOME_NONE, /* not known, or interrupted */
	OUTCOME_PASSED,
	OUTCOME_FAILED,
	OUTCOME_TIMEOUT,
	OUTCOME_OOM,
	OUTCOME_OUTPUT_LIMIT,
	OUTCOME_INFRASTRUCTURE, /* says nothing about the policy: no reward at all, rather than a reward of zero */
	N_OUTCOMES,
};

struct rollout {
	const struct task *task;
	const struct attempt *attempt;
	size_t prompt;
	size_t index; /* within its prompt */
	enum state state;
	enum outcome outcome;
	size_t steps; /* begun */
	const struct files *action; /* what the policy writes at this step */
	size_t file;                /* next one, of the action and then of the tests */
	struct dsec_sandbox *sandbox;
	struct dsec_exec *exec;
	int fd; /* what it waits for in the epoll, lent by one of the two; -1: nothing */
	struct dsec_error error; /* with OUTCOME_INFRASTRUCTURE */
	double advantage;
	double created_at, ready_at, first_at, ended_at; /* seconds; 0: not yet. first_at: result of the first exec */
	uint64_t cpu_ns;
	uint64_t memory_peak; /* 0: not known */
	STAILQ_ENTRY(rollout) link;
};

STAILQ_HEAD(queue, rollout);

struct options {
	size_t prompts;
	size_t rollouts; /* of each prompt */
	size_t jobs;
	uint64_t timeout_ms;
	uint64_t memory_bytes;
	uint64_t seed;
	const char *tasks;
	const char *backend;
	const char *image;
	const char *json;
	bool quiet;
};

struct loop {
	const struct options *options;
	struct dsec_node *node;
	struct rollout *rollouts;
	size_t n;
	int epoll;
	int signals;
	struct queue to_create;
	struct queue to_run;
	size_t open; /* sandboxes with a handle */
	size_t max_open; /* as many as descriptors suffice for */
	size_t live; /* sandboxes that take commands */
	size_t live_peak;
	size_t creating;
	size_t running; /* commands */
	size_t done;
	size_t stop_failures;
	size_t errors_shown;
	bool interrupted;
	bool terminal; /* stderr is one */
	double started_at, last_ready_at, next_progress;
	size_t created;
};

double now(void);

/* Fills `o` from the command line; ends the program on --help or a mistake. */
void options_parse(struct options *o, int argc, char **argv);

static inline bool has_reward(const struct rollout *r)
{
	return r->outcome >= OUTCOME_PASSED && r->outcome <= OUTCOME_OUTPUT_LIMIT;
}

static inline double reward(const struct rollout *r)
{
	return r->outcome == OUTCOME_PASSED ? 1.0 : 0.0;
}

/* One line on stderr about what failed. */
void report_error(struct loop *loop, const struct rollout *r, const char *what, const struct dsec_error *err);
/* The live line, or one line every two seconds where stderr is no terminal; how long until the next one is due. */
int report_progress(struct loop *loop, bool last);
/* The table and the totals; sets each rollout's advantage. */
void report_table(struct loop *loop);
/* One JSON object per rollout. Returns 0 or -1 with errno set. */
int report_json(const struct loop *loop, const char *path);

#endif
