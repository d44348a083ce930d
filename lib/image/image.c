/* SPDX-License-Identifier: MIT */
/* Image names. What "host" is made of is in host.c. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/cleanup.h"
#include "../util/error.h"
#include "host.h"

static bool has_dotdot(const char *path)
{
	for (const char *p = path; (p = strstr(p, "/..")); p += 3)
		if (p[3] == '/' || p[3] == 0)
			return true;
	return false;
}

int dsec__image_resolve(const char *name, const char *images, struct dsec__image *ret_image, struct dsec_error *err)
{
	AUTO_CLOSE int fd = -EBADF;

	ret_image->n_trees = 0; /* not a memset: a keeper would pay pages for paths that nobody writes */
	if (strcmp(name, "host") == 0)
		return dsec__host_image(images, ret_image, err);
	if (name[0] != '/')
		return dsec__fail(err, -EINVAL, DSEC_STEP_IMAGE, "image: \"%s\" is neither \"host\" nor an absolute path",
				  name);
	if (strlen(name) >= sizeof ret_image->root)
		return dsec__fail(err, -EINVAL, DSEC_STEP_IMAGE, "image: the path is over %zu bytes",
				  sizeof ret_image->root - 1);
	if (has_dotdot(name))
		return dsec__fail(err, -EINVAL, DSEC_STEP_IMAGE, "image: \"%s\" has a \"..\" in its path", name);
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IMAGE, "image: open directory \"%s\"", name);
	(void)strcpy(ret_image->root, name); /* fits */
	return 0;
}
