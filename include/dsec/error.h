/* SPDX-License-Identifier: MIT */
/* Errors: a code, the step that failed, and one line of text, in memory that the caller owns. */
#ifndef DSEC_ERROR_H
#define DSEC_ERROR_H

#include "types.h"

DSEC_BEGIN_DECLS

/* Where in the life of a sandbox or a command a failure was first seen. */
enum {
	DSEC_STEP_NONE = 0,
	DSEC_STEP_OPTIONS = 1,   /* an argument or option was refused; the text names the field */
	DSEC_STEP_NODE = 2,      /* the state directory or its shared block */
	DSEC_STEP_LAUNCHER = 3,  /* the launcher process could not be started or is gone */
	DSEC_STEP_KEEPER = 4,    /* the sandbox's keeper could not be started or is gone */
	DSEC_STEP_NAME = 5,      /* the name or id */
	DSEC_STEP_IMAGE = 6,     /* the image is missing or cannot be used */
	DSEC_STEP_IDS = 7,       /* no range of user ids is free */
	DSEC_STEP_CGROUP = 8,    /* control groups: making, limits, killing */
	DSEC_STEP_CLONE = 9,     /* the namespaces */
	DSEC_STEP_MOUNT = 10,    /* the file system of the sandbox */
	DSEC_STEP_NETWORK = 11,  /* its network */
	DSEC_STEP_SECURITY = 12, /* capabilities, system call filter, resource limits */
	DSEC_STEP_SPAWN = 13,    /* preparing a command: user, working directory, descriptors */
	DSEC_STEP_EXEC = 14,     /* execve of the command itself */
	DSEC_STEP_FILE = 15,     /* reading or writing a file of the sandbox */
	DSEC_STEP_SIGNAL = 16,   /* signalling or resizing a command */
	DSEC_STEP_STOP = 17,     /* ending the sandbox */
	DSEC_STEP_PROTOCOL = 18, /* a peer process spoke out of turn */
	DSEC_STEP_MEMORY = 19,   /* memory of the library itself */
};

enum {
	DSEC_ERROR_RETRY = 1u << 0, /* nothing was started: the same call may be repeated */
};

/*
 * What went wrong. A call leaves it untouched on success and sets it once on failure, where the failure is first
 * seen. `text` is one line in lower case that names the call and the object, without the errno's own words. The
 * structure is 256 bytes for good, holds no pointer and needs no release.
 */
struct dsec_error {
	int32_t code;   /* the negative errno value that the call returned */
	uint32_t step;  /* DSEC_STEP_* */
	uint32_t flags; /* DSEC_ERROR_* */
	char text[244]; /* ends with NUL */
};

/* The name of a step in lower case ("mount"), "unknown" for a number that this library does not know. Static. */
DSEC_API const char *dsec_step_name(uint32_t step);

DSEC_END_DECLS

#endif
