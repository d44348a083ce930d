/* SPDX-License-Identifier: MIT */
/*
 * How long a program waits until it has a node: `open run` starts itself anew for each sample; the new process loads a
 * fresh copy of the library, with all that it links, and opens the node with it. `open reap` removes what dead
 * sandboxes left on the node (the last resort of run.py).
 */
#include "bench.h"

#include <dlfcn.h>

static void *symbol(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p)
		bench_die("%s: %s", name, dlerror());
	return p;
}

/* In a process of its own. Prints the two parts. */
static void sample(bool counted)
{
	int (*node_open)(struct dsec_node **, const struct dsec_node_opts *, struct dsec_error *);
	void (*node_close)(struct dsec_node *);
	struct dsec_node *node;
	struct dsec_error err;
	double t[3];
	void *library;

	t[0] = bench_ms();
	/* A name space of its own: this program is linked with the library, so dlopen() would only find it again. */
	library = dlmopen(LM_ID_NEWLM, "libdsec.so.0", RTLD_NOW);
	if (!library)
		bench_die("dlmopen: %s", dlerror());
	*(void **)&node_open = symbol(library, "dsec_node_open");
	*(void **)&node_close = symbol(library, "dsec_node_close");
	t[1] = bench_ms();
	bench_check(node_open(&node, NULL, &err), "dsec_node_open", &err);
	t[2] = bench_ms();
	node_close(node);
	printf("dsec\t%s\t%.6f\n", counted ? "load_open" : "first", t[2] - t[0]);
	if (counted)
		printf("dsec\tload\t%.6f\ndsec\topen\t%.6f\n", t[1] - t[0], t[2] - t[1]);
}

static void reap(void)
{
	struct dsec_node *node;
	struct dsec_error err;
	int n;

	bench_check(dsec_node_open(&node, NULL, &err), "dsec_node_open", &err);
	n = dsec_node_reap(node, &err);
	bench_check(n, "dsec_node_reap", &err);
	dsec_node_close(node);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .n = 50, .gap_ms = 20 };

	bench_parse(&o, argc, argv);
	if (strcmp(o.mode, "sample") == 0 || strcmp(o.mode, "first") == 0) {
		sample(strcmp(o.mode, "sample") == 0);
	} else if (strcmp(o.mode, "reap") == 0) {
		reap();
	} else if (strcmp(o.mode, "run") == 0) {
		char exe[4096];
		ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
		char *again[] = { exe, (char *)"first", NULL };
		struct bench_peer self = { "open", 1, -1, again };

		exe[len > 0 ? len : 0] = 0;
		for (unsigned int i = 0; i <= o.n; i++) {
			bench_sleep(o.gap_ms);
			(void)bench_peer_run(&self, -1); /* the new process prints its own times */
			again[1] = (char *)"sample";
		}
	} else {
		bench_die("mode \"%s\" is not one of run, reap", o.mode);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
