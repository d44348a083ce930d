/* SPDX-License-Identifier: MIT */
/* The image "host": this machine's programs over a small root tree of our own. */
#ifndef DSEC__HOST_H
#define DSEC__HOST_H

#include "image.h"

/* Makes <images>/host/<key> if it is missing, and fills the image with it. Errors: step IMAGE. */
int dsec__host_image(const char *images, struct dsec__image *ret_image, struct dsec_error *err);

#endif
