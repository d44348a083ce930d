/* SPDX-License-Identifier: MIT */
/*
 * Rollout's words: its command line, progress, errors, the table with each group's advantages, the JSON file. Only the
 * advantages are of interest to a trainer.
 */
#include "rollout.h"

#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const outcome_names[N_OUTCOMES] = {
	[OUTCOME_NONE] = "interrupted",
	[OUTCOME_PASSED] = "passed",
	[OUTCOME_FAILED] = "failed tests",
	[OUTCOME_TIMEOUT] = "timeout",
	[OUTCOME_OOM] = "out of memory",
	[OUTCOME_OUTPUT_LIMIT] = "output limit",
	[OUTCOME_INFRASTRUCTURE] = "infrastructure",
};

#define MAX_ERRORS_SHOWN 10

void report_error(struct loop *loop, const struct rollout *r, const char *what, const struct dsec_error *err)
{
	if (loop->errors_shown++ >= MAX_ERRORS_SHOWN)
		return; /* the totals count the rest */
	if (loop->terminal)
		fputs("\r\033[K", stderr);
	fprintf(stderr, "rollout: %s #%zu: %s: %s: %s: %s\n", r->task->name, r->index, what, dsec_step_name(err->step),
		err->text, strerror(-err->code));
}

static double creates_per_second(const struct loop *loop)
{
	double seconds = loop->last_ready_at - loop->started_at;

	return seconds > 0 ? (double)loop->created / seconds : 0;
}

int report_progress(struct loop *loop, bool last)
{
	double t = now(), sum = 0;
	size_t n = 0;

	if (loop->options->quiet)
		return -1;
	if (t < loop->next_progress && !last)
		return (int)((loop->next_progress - t) * 1000) + 1;
	for (size_t i = 0; i < loop->n; i++) {
		if (loop->rollouts[i].state == DONE && has_reward(&loop->rollouts[i])) {
			sum += reward(&loop->rollouts[i]);
			n++;
		}
	}
	fprintf(stderr, "%s%zu/%zu done  %zu live  %zu running  mean reward %.2f  %.0f creates/s%s",
		loop->terminal ? "\r\033[K" : "", loop->done, loop->n, loop->live, loop->running,
		n > 0 ? sum / (double)n : 0, creates_per_second(loop), loop->terminal && !last ? "" : "\n");
	loop->next_progress = t + (loop->terminal ? 0.1 : 2.0);
	return loop->terminal ? 100 : 2000;
}

/* Mean reward and advantages of one prompt's rollouts. Those without a reward take no part: their advantage is NAN. */
static double set_advantages(struct rollout *group, size_t n, size_t *ret_counted)
{
	double sum = 0, squares = 0, mean, deviation;
	size_t counted = 0;

	for (size_t i = 0; i < n; i++) {
		if (!has_reward(&group[i]))
			continue;
		counted++;
		sum += reward(&group[i]);
	}
	mean = counted > 0 ? sum / (double)counted : NAN;
	for (size_t i = 0; i < n; i++)
		if (has_reward(&group[i]))
			squares += (reward(&group[i]) - mean) * (reward(&group[i]) - mean);
	deviation = counted > 0 ? sqrt(squares / (double)counted) : NAN;
	for (size_t i = 0; i < n; i++)
		group[i].advantage = has_reward(&group[i]) ? (reward(&group[i]) - mean) / (deviation + 1e-6) : NAN;
	*ret_counted = counted;
	return mean;
}

static void print_prompt(struct rollout *group, size_t n, int width)
{
	double low = INFINITY, high = -INFINITY, steps = 0, mean;
	size_t counted;

	mean = set_advantages(group, n, &counted);
	for (size_t i = 0; i < n; i++) {
		steps += (double)group[i].steps;
		low = fmin(low, group[i].advantage); /* fmin and fmax pass over NAN */
		high = fmax(high, group[i].advantage);
	}
	printf("%-*s  ", width, group[0].task->name);
	for (size_t i = 0; i < n; i++)
		printf("%s ", !has_reward(&group[i]) ? "-" : reward(&group[i]) > 0 ? "1" : "0");
	if (counted > 0)
		printf(" %5.2f  %+6.2f  %+6.2f  %5.1f\n", mean, low, high, steps / (double)n);
	else
		printf(" %5s  %6s  %6s  %5.1f\n", "-", "-", "-", steps / (double)n);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One line: p50 and p99 of the milliseconds from the create call until the sandbox was ready or had run something. */
static void print_times(const struct loop *loop, const char *label, bool first_exec)
{
	double *ms = calloc(loop->n, sizeof(*ms));
	size_t n = 0;

	if (!ms)
		return;
	for (size_t i = 0; i < loop->n; i++) {
		const struct rollout *r = &loop->rollouts[i];
		double at = first_exec ? r->first_at : r->ready_at;

		if (at > 0)
			ms[n++] = (at - r->created_at) * 1e3;
	}
	qsort(ms, n, sizeof(*ms), by_value);
	if (n > 0)
		printf("%-22s p50 %.1f ms, p99 %.1f ms\n", label, ms[n / 2], ms[(n * 99) / 100]);
	free(ms);
}

static void print_totals(const struct loop *loop)
{
	size_t outcomes[N_OUTCOMES] = { 0 }, steps = 0, counted = 0;
	double sum = 0, memory = 0;
	struct rusage usage;

	for (size_t i = 0; i < loop->n; i++) {
		const struct rollout *r = &loop->rollouts[i];

		outcomes[r->outcome]++;
		steps += r->steps;
		memory += (double)r->memory_peak;
		if (has_reward(r)) {
			counted++;
			sum += reward(r);
		}
	}
	printf("\n%-22s %zu in %.1f s, %zu steps, at most %zu sandboxes live\n", "rollouts", loop->n,
	       now() - loop->started_at, steps, loop->live_peak);
	if (counted > 0)
		printf("%-22s %.3f over %zu\n", "mean reward", sum / (double)counted, counted);
	print_times(loop, "create", false);
	print_times(loop, "create to first exec", true);
	printf("%-22s %.0f\n", "creates per second", creates_per_second(loop));
	(void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
	printf("%-22s ", "peak memory");
	if (memory > 0)
		printf("sandboxes %.0f MiB (sum of peaks), ", memory / 1048576);
	printf("this process %.1f MiB\n", (double)usage.ru_maxrss / 1024);
	for (size_t i = 0; i < N_OUTCOMES; i++)
		if (i != OUTCOME_NONE || outcomes[i] > 0)
			printf("%-22s %zu\n", outcome_names[i], outcomes[i]);
	if (loop->stop_failures > 0)
		printf("%-22s %zu\n", "failed stops", loop->stop_failures);
}

void report_table(struct loop *loop)
{
	size_t n = loop->options->rollouts;
	int width = 4;

	for (size_t i = 0; i < loop->n; i += n) {
		int len = (int)strlen(loop->rollouts[i].task->name);

		width = len > width ? len : width;
	}
	printf("%-*s  %-*s  %5s  %6s  %6s  %5s\n", width, "task", (int)n * 2 > 7 ? (int)n * 2 - 1 : 7, "rewards", "mean",
	       "adv min", "max", "steps");
	for (size_t i = 0; i < loop->n; i += n)
		print_prompt(&loop->rollouts[i], n, width);
	print_totals(loop);
}

static void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

/* A number, or null where there is none. */
static void json_number(FILE *f, const char *key, double value, bool there)
{
	fprintf(f, ", \"%s\": ", key);
	if (there)
		fprintf(f, "%.6g", value);
	else
		fputs("null", f);
}

static void json_rollout(FILE *f, const struct rollout *r)
{
	fputs("{\"task\": ", f);
	json_string(f, r->task->name);
	fputs(", \"attempt\": ", f);
	json_string(f, r->attempt->name);
	fprintf(f, ", \"prompt\": %zu, \"rollout\": %zu, \"outcome\": \"%s\", \"steps\": %zu", r->prompt, r->index,
		outcome_names[r->outcome], r->steps);
	json_number(f, "reward", reward(r), has_reward(r));
	json_number(f, "advantage", r->advantage, has_reward(r));
	json_number(f, "create_ms", (r->ready_at - r->created_at) * 1e3, r->ready_at > 0);
	json_number(f, "first_exec_ms", (r->first_at - r->created_at) * 1e3, r->first_at > 0);
	json_number(f, "wall_s", r->ended_at - r->created_at, r->ended_at > 0 && r->created_at > 0);
	json_number(f, "cpu_s", (double)r->cpu_ns / 1e9, true);
	json_number(f, "memory_peak_mib", (double)r->memory_peak / 1048576, r->memory_peak > 0);
	if (r->error.code < 0) {
		fprintf(f, ", \"errno\": %d, \"step\": \"%s\", \"error\": ", -r->error.code,
			dsec_step_name(r->error.step));
		json_string(f, r->error.text);
	}
	fputs("}\n", f);
}

int report_json(const struct loop *loop, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return -1;
	for (size_t i = 0; i < loop->n; i++)
		json_rollout(f, &loop->rollouts[i]);
	return fclose(f) == 0 ? 0 : -1;
}

/*
 * The command line.
 */

static const struct option long_options[] = {
	{ "prompts", required_argument, NULL, 'p' }, { "rollouts", required_argument, NULL, 'n' },
	{ "tasks", required_argument, NULL, 't' },   { "timeout", required_argument, NULL, 'T' },
	{ "memory", required_argument, NULL, 'm' },  { "jobs", required_argument, NULL, 'j' },
	{ "image", required_argument, NULL, 'i' },   { "backend", required_argument, NULL, 'b' },
	{ "seed", required_argument, NULL, 's' },    { "json", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },	     { "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char help[] =
	"usage: rollout [options]\n"
	"Runs a scripted policy on coding tasks, each rollout in a sandbox of its own.\n\n"
	"  -p, --prompts G     tasks (8)\n"
	"  -n, --rollouts N    rollouts of each task (8)\n"
	"  -t, --tasks DIR     task tree (examples/tasks)\n"
	"  -T, --timeout S     seconds that the tests may take (5)\n"
	"  -m, --memory SIZE   memory of each sandbox (256M)\n"
	"  -j, --jobs N        creates, and test commands, at once (twice the CPUs)\n"
	"  -i, --image IMAGE   \"host\" (default) or the directory of a root file system\n"
	"  -b, --backend NAME  how sandboxes are isolated (container)\n"
	"  -s, --seed N        draws the tasks in another order (0: as they lie)\n"
	"  -o, --json FILE     one JSON object per rollout\n"
	"  -q, --quiet         no progress\n\n"
	"Exit code: 0, 1 after a failure that is not the policy's, 130 after an interrupt.\n";

static uint64_t parse_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (end == text || *end || *text == '-' || v < min || v > max)
		errx(2, "--%s: \"%s\" is no number from %llu to %llu", option, text, (unsigned long long)min,
		     (unsigned long long)max);
	return v;
}

static uint64_t parse_size(const char *text)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == text || *text == '-' || (*end && (!unit || end[1])))
		errx(2, "--memory: \"%s\" is no size such as 256M", text);
	return v << (unit ? 10 * (unit - units + 1) : 0);
}

static uint64_t parse_seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s >= 0.001 && s <= 1e6))
		errx(2, "--timeout: \"%s\" is no number of seconds from 0.001", text);
	return (uint64_t)(s * 1000);
}

static void set_option(struct options *o, int c)
{
	switch (c) {
	case 'p':
		o->prompts = parse_number("prompts", optarg, 1, 100000);
		break;
	case 'n':
		o->rollouts = parse_number("rollouts", optarg, 1, 100000);
		break;
	case 't':
		o->tasks = optarg;
		break;
	case 'T':
		o->timeout_ms = parse_seconds(optarg);
		break;
	case 'm':
		o->memory_bytes = parse_size(optarg);
		break;
	case 'j':
		o->jobs = parse_number("jobs", optarg, 1, 100000);
		break;
	case 'i':
		o->image = optarg;
		break;
	case 'b':
		o->backend = optarg;
		break;
	case 's':
		o->seed = parse_number("seed", optarg, 0, UINT64_MAX);
		break;
	case 'o':
		o->json = optarg;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		exit(2); /* getopt has said why */
	}
}

void options_parse(struct options *o, int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int c;

	*o = (struct options){
		.prompts = 8,
		.rollouts = 8,
		.jobs = cpus > 0 ? 2 * (size_t)cpus : 2,
		.timeout_ms = 5000,
		.memory_bytes = 256u << 20,
		.tasks = "examples/tasks",
		.backend = "container",
		.image = "host",
	};
	while ((c = getopt_long(argc, argv, "p:n:t:T:m:j:i:b:s:o:qh", long_options, NULL)) != -1)
		set_option(o, c);
	if (optind < argc)
		errx(2, "\"%s\" is no option (try --help)", argv[optind]);
}
