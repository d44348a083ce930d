/* SPDX-License-Identifier: MIT */
/*
 * Latency of one sandbox at a time, ours and the peers' in turn.
 *
 *   cycle check    runs every peer once, with its output on ours: does it really run the command?
 *   cycle cycle    rounds of: create, exec true, stop (each part timed); each peer's whole run. Then ours alone
 *   cycle exec     rounds of: exec true in one living sandbox; each peer's whole run
 *   cycle trace    cycles of ours for trace_steps.py, which finds the parts by our changing name
 *
 * The order within a round rotates and a pause goes before each sample, so that what a contestant leaves to be done
 * after its end (a replacement for the sandbox that was taken, the release of a control group) is charged to nobody
 * else. It must not go uncounted: "busy_..." are ours without the pauses, "cold_..." ours with no sandbox made ahead,
 * and rate.c counts all of it for everybody.
 */
#include "bench.h"

struct sample {
	const char *who, *what;
	double ms;
};

static struct sample *samples;
static size_t n_samples, max_samples;

static bool tracing;

static void keep(const char *who, const char *what, double ms)
{
	if (n_samples == max_samples) {
		max_samples = max_samples ? 2 * max_samples : 1024;
		samples = reallocarray(samples, max_samples, sizeof *samples);
		if (!samples)
			bench_die("out of memory");
	}
	samples[n_samples++] = (struct sample){ who, what, ms };
}

/* What the parts of a cycle are called: cycle, create, exec, stop. */
static const char *const in_turn[] = { "cycle", "create", "exec", "stop" };
static const char *const busy[] = { "busy_cycle", "busy_create", "busy_exec", "busy_stop" };
static const char *const cold[] = { "cold_cycle", "cold_create", "cold_exec", "cold_stop" };

static void mark(const char *step)
{
	if (tracing)
		(void)prctl(PR_SET_NAME, step);
}

/* names: NULL for a cycle that is not counted. */
static void cycle_once(struct dsec_node *node, const char *const names[4])
{
	struct dsec_sandbox *sandbox;
	struct dsec_error err;
	double t[4];

	mark("create");
	t[0] = bench_ms();
	bench_check(dsec_sandbox_create(node, NULL, &sandbox, &err), "dsec_sandbox_create", &err);
	t[1] = bench_ms();
	mark("exec");
	bench_exec(sandbox);
	t[2] = bench_ms();
	mark("stop");
	bench_check(dsec_sandbox_stop(sandbox, 0, &err), "dsec_sandbox_stop", &err);
	dsec_sandbox_close(sandbox);
	t[3] = bench_ms();
	mark("rest");
	if (!names)
		return;
	keep("dsec", names[0], t[3] - t[0]);
	for (size_t i = 1; i < 4; i++)
		keep("dsec", names[i], t[i] - t[i - 1]);
}

static void exec_once(struct dsec_sandbox *sandbox, bool counted)
{
	double start = bench_ms();

	bench_exec(sandbox);
	if (counted)
		keep("dsec", "exec", bench_ms() - start);
}

/* sandbox: where commands run, NULL for whole cycles. */
static void rounds(const struct bench_opts *o, struct dsec_node *node, struct dsec_sandbox *sandbox)
{
	size_t contestants = o->n_peers + 1;
	int own_ns = bench_own_ns();

	for (unsigned int round = 0; round < o->warmup + o->n; round++) {
		bool counted = round >= o->warmup;

		for (size_t k = 0; k < contestants; k++) {
			size_t who = (k + round) % contestants;
			const struct bench_peer *p = who ? &o->peers[who - 1] : NULL;

			if (p && counted && (round - o->warmup) % p->every)
				continue;
			bench_sleep(o->gap_ms);
			if (p) {
				double ms = bench_peer_run(p, own_ns);

				if (counted)
					keep(p->name, "run", ms);
			} else if (sandbox) {
				exec_once(sandbox, counted);
			} else {
				cycle_once(node, counted ? in_turn : NULL);
			}
		}
	}
	(void)close(own_ns);
}

static struct dsec_node *open_node(void)
{
	struct dsec_node *node;
	struct dsec_error err;

	bench_check(dsec_node_open(&node, NULL, &err), "dsec_node_open", &err);
	return node;
}

/* Ours alone: one cycle at once after the other, and the first ones of new handles, for which nothing is made ahead. */
static void alone(const struct bench_opts *o, struct dsec_node *node)
{
	for (unsigned int i = 0; i < o->warmup + o->n; i++)
		cycle_once(node, i < o->warmup ? NULL : busy);
	for (unsigned int i = 0; i < (o->n + 3) / 4; i++) {
		struct dsec_node *fresh = open_node();

		bench_sleep(o->gap_ms);
		cycle_once(fresh, cold);
		dsec_node_close(fresh);
	}
}

static int trace(const struct bench_opts *o)
{
	struct dsec_node *node = open_node();

	tracing = true;
	for (unsigned int i = 0; i < o->n; i++) {
		bench_sleep(o->gap_ms);
		cycle_once(node, NULL);
	}
	dsec_node_close(node);
	return 0;
}

static void measure(const struct bench_opts *o, bool commands)
{
	struct dsec_sandbox *sandbox = NULL;
	struct dsec_node *node = open_node();
	struct dsec_error err;

	if (commands)
		bench_check(dsec_sandbox_create(node, NULL, &sandbox, &err), "dsec_sandbox_create", &err);
	rounds(o, node, sandbox);
	if (!commands)
		alone(o, node);
	else
		bench_check(dsec_sandbox_stop(sandbox, 0, &err), "dsec_sandbox_stop", &err);
	dsec_sandbox_close(sandbox);
	dsec_node_close(node);
	for (size_t i = 0; i < n_samples; i++)
		printf("%s\t%s\t%.6f\n", samples[i].who, samples[i].what, samples[i].ms);
	free(samples);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .n = 200, .warmup = 3, .gap_ms = 10 };

	bench_parse(&o, argc, argv);
	bench_name_worker(&o, 0);
	if (strcmp(o.mode, "check") == 0) {
		int own_ns = bench_own_ns();

		for (size_t i = 0; i < o.n_peers; i++)
			(void)bench_peer_run(&o.peers[i], own_ns); /* only its exit status and output matter */
		return 0;
	}
	if (strcmp(o.mode, "trace") == 0)
		return trace(&o);
	if (strcmp(o.mode, "cycle") != 0 && strcmp(o.mode, "exec") != 0)
		bench_die("mode \"%s\" is not one of check, cycle, exec, trace", o.mode);
	measure(&o, strcmp(o.mode, "exec") == 0);
	return fflush(stdout) == 0 ? 0 : 1;
}
