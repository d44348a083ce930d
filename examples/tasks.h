/* SPDX-License-Identifier: MIT */
/*
 * The task tree that the rollout examples read:
 *
 *     <dir>/<task>/prompt.txt                    what a model would be asked
 *                 /run                           one shell line; exit code 0 means solved
 *                 /tests/...                     files that the line needs
 *                 /attempts/<name>/<1, 2, ...>/  what the scripted policy writes at each step
 *
 * Everything is read once, at the start. A tree that cannot be read ends the program with a message.
 */
#ifndef EXAMPLES_TASKS_H
#define EXAMPLES_TASKS_H

#include <stddef.h>
#include <stdint.h>

struct file {
	char *path; /* in the sandbox, absolute */
	char *data;
	size_t len;
	uint32_t mode;
};

struct files {
	struct file *items;
	size_t n;
};

struct attempt {
	char *name;
	struct files *steps;
	size_t n_steps;
};

struct task {
	char *name;
	char *prompt;
	char *run;
	struct files tests;
	struct attempt *attempts;
	size_t n_attempts;
};

struct tasks {
	struct task *items;
	size_t n;
};

/* Reads the tree below dir, tasks and attempts in order of name. Files get paths below workdir. */
void tasks_load(struct tasks *t, const char *dir, const char *workdir);
void tasks_free(struct tasks *t);

#endif
