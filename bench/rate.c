/* SPDX-License-Identifier: MIT */
/*
 * Throughput of the whole machine: `rate run` starts one process per core, each of which makes, uses and ends one
 * sandbox after another. Ours and the peers' take turns in slices of time, several each; all workers begin a slice
 * together. Prints cycles per second, one line a slice.
 */
#include "bench.h"

#include <pthread.h>
#include <sys/mman.h>

#define WORKERS_MAX 512

struct shared {
	pthread_barrier_t barrier;
	double rates[]; /* [slice][contestant][worker] */
};

static double ours(struct dsec_node *node, double until)
{
	double start = bench_ms(), now;
	unsigned int n = 0;

	do {
		struct dsec_sandbox *sandbox;
		struct dsec_error err;

		bench_check(dsec_sandbox_create(node, NULL, &sandbox, &err), "dsec_sandbox_create", &err);
		bench_exec(sandbox);
		bench_check(dsec_sandbox_stop(sandbox, 0, &err), "dsec_sandbox_stop", &err);
		dsec_sandbox_close(sandbox);
		n++;
		now = bench_ms();
	} while (now < until);
	return n * 1e3 / (now - start);
}

static double theirs(const struct bench_peer *p, int own_ns, double until)
{
	double start = bench_ms(), now;
	unsigned int n = 0;

	do {
		(void)bench_peer_run(p, own_ns); /* each is not timed by itself here */
		n++;
		now = bench_ms();
	} while (now < until);
	return n * 1e3 / (now - start);
}

static void work(struct bench_opts *o, struct shared *shared, unsigned int worker)
{
	int own_ns = bench_own_ns();
	struct dsec_node *node;
	struct dsec_error err;
	double *rate = shared->rates + worker;

	bench_check(dsec_node_open(&node, NULL, &err), "dsec_node_open", &err);
	bench_name_worker(o, worker);
	(void)ours(node, 0); /* a first one that is not counted */
	for (unsigned int slice = 0; slice < o->n; slice++) {
		for (size_t who = 0; who <= o->n_peers; who++, rate += o->workers) {
			double until;

			(void)pthread_barrier_wait(&shared->barrier);
			bench_sleep(o->gap_ms);
			until = bench_ms() + o->slice_ms;
			*rate = who ? theirs(&o->peers[who - 1], own_ns, until) : ours(node, until);
		}
	}
	dsec_node_close(node);
	(void)close(own_ns);
}

/* Waits for all; when one fails the others, which would wait for it at the barrier, are ended. Clears pids. */
static bool reap(pid_t *pids, unsigned int n)
{
	bool ok = true;

	for (unsigned int left = n; left > 0; left--) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0)
			return false;
		for (unsigned int i = 0; i < n; i++)
			if (pids[i] == pid)
				pids[i] = 0; /* may be another process's from now on */
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		for (unsigned int i = 0; ok && i < n; i++)
			if (pids[i] > 0)
				(void)kill(pids[i], SIGTERM);
		ok = false;
	}
	return ok;
}

static void print(const struct bench_opts *o, const double *rate)
{
	for (unsigned int slice = 0; slice < o->n; slice++) {
		for (size_t who = 0; who <= o->n_peers; who++) {
			double sum = 0;

			for (unsigned int w = 0; w < o->workers; w++)
				sum += *rate++;
			printf("%s\tper_second\t%.3f\n", who ? o->peers[who - 1].name : "dsec", sum);
		}
	}
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .n = 5, .slice_ms = 2000, .gap_ms = 200 };
	pthread_barrierattr_t attr;
	struct shared *shared;
	pid_t pids[WORKERS_MAX];
	size_t len;

	bench_parse(&o, argc, argv);
	if (o.workers == 0)
		o.workers = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (o.workers > WORKERS_MAX)
		o.workers = WORKERS_MAX;
	len = sizeof *shared + o.n * (o.n_peers + 1) * o.workers * sizeof(double);
	shared = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pthread_barrierattr_init(&attr) != 0 ||
	    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
	    pthread_barrier_init(&shared->barrier, &attr, o.workers) != 0)
		bench_die("shared memory: %s", strerror(errno));
	for (unsigned int w = 0; w < o.workers; w++) {
		pids[w] = fork();
		if (pids[w] < 0)
			bench_die("fork: %s", strerror(errno));
		if (pids[w] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
			work(&o, shared, w);
			_exit(0);
		}
	}
	if (!reap(pids, o.workers))
		bench_die("a worker failed");
	print(&o, shared->rates);
	return fflush(stdout) == 0 ? 0 : 1;
}
