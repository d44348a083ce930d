/* SPDX-License-Identifier: MIT */
/* Reads the task tree (tasks.h). Plain POSIX; nothing here knows of dsec. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* vasprintf */
#endif
#include "tasks.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		err(1, "memory");
	va_end(ap);
	return s;
}

/* Room for one more item at the end of an array of n. */
static void *grow(void *items, size_t n, size_t item_sz)
{
	void *p = reallocarray(items, n + 1, item_sz);

	if (!p)
		err(1, "memory");
	memset((char *)p + n * item_sz, 0, item_sz);
	return p;
}

/* A whole file, with a NUL that is not counted. */
static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *data;

	if (!f || fstat(fileno(f), &st) < 0)
		err(1, "%s", path);
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		err(1, "memory");
	*ret_len = fread(data, 1, (size_t)st.st_size, f);
	data[*ret_len] = '\0';
	(void)fclose(f); /* only read from */
	return data;
}

static char *read_text(const char *dir, const char *name)
{
	char *path = format("%s/%s", dir, name);
	size_t len;
	char *text = read_file(path, &len);

	free(path);
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	return text;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* All regular files below dir. */
static void read_files(struct files *files, const char *dir, const char *workdir)
{
	char *const roots[] = { (char *)dir, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	FTSENT *e;

	if (!fts)
		err(1, "%s", dir);
	while ((e = fts_read(fts))) {
		struct file *f;

		if (e->fts_info != FTS_F)
			continue;
		files->items = grow(files->items, files->n, sizeof(*files->items));
		f = &files->items[files->n++];
		f->path = format("%s%s", workdir, e->fts_path + strlen(dir));
		f->data = read_file(e->fts_path, &f->len);
		f->mode = e->fts_statp->st_mode & 0777;
	}
	(void)fts_close(fts); /* only read from */
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void read_attempts(struct task *task, const char *task_dir, const char *workdir)
{
	char *dir = format("%s/attempts", task_dir);
	struct dirent **names;
	int n = scandir(dir, &names, visible, alphasort);

	if (n <= 0)
		errx(1, "%s: no attempts there", dir);
	for (int i = 0; i < n; i++) {
		struct attempt *a;

		task->attempts = grow(task->attempts, task->n_attempts, sizeof(*task->attempts));
		a = &task->attempts[task->n_attempts++];
		a->name = format("%s", names[i]->d_name);
		for (;;) {
			char *step = format("%s/%s/%zu", dir, a->name, a->n_steps + 1);
			int there = access(step, F_OK) == 0;

			if (there) {
				a->steps = grow(a->steps, a->n_steps, sizeof(*a->steps));
				read_files(&a->steps[a->n_steps++], step, workdir);
			}
			free(step);
			if (!there)
				break;
		}
		free(names[i]);
	}
	free(names);
	free(dir);
}

void tasks_load(struct tasks *t, const char *dir, const char *workdir)
{
	struct dirent **names;
	int n = scandir(dir, &names, visible, alphasort);

	if (n < 0)
		err(1, "%s", dir);
	for (int i = 0; i < n; i++) {
		char *path = format("%s/%s", dir, names[i]->d_name);
		char *tests = format("%s/tests", path);
		struct stat st;

		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			struct task *task;

			t->items = grow(t->items, t->n, sizeof(*t->items));
			task = &t->items[t->n++];
			task->name = format("%s", names[i]->d_name);
			task->prompt = read_text(path, "prompt.txt");
			task->run = read_text(path, "run");
			read_files(&task->tests, tests, workdir);
			read_attempts(task, path, workdir);
		}
		free(tests);
		free(path);
		free(names[i]);
	}
	free(names);
	if (t->n == 0)
		errx(1, "%s: no tasks there", dir);
}

static void files_free(struct files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->items[i].path);
		free(files->items[i].data);
	}
	free(files->items);
}

void tasks_free(struct tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = &t->items[i];

		for (size_t a = 0; a < task->n_attempts; a++) {
			for (size_t s = 0; s < task->attempts[a].n_steps; s++)
				files_free(&task->attempts[a].steps[s]);
			free(task->attempts[a].steps);
			free(task->attempts[a].name);
		}
		free(task->attempts);
		files_free(&task->tests);
		free(task->run);
		free(task->prompt);
		free(task->name);
	}
	free(t->items);
}
