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
		return dsec__fail(err, -ENAMETOOLONG, DSEC_STEP_IMAGE, "image: the path is over %zu bytes",
				  sizeof ret_image->root - 1);
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dsec__fail(err, -errno, DSEC_STEP_IMAGE, "image: open directory \"%s\"", name);
	(void)strcpy(ret_image->root, name); /* fits */
	return 0;
}
