/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdint.h>

/* Contents of $DSEC_FAULT_FILE. */
struct fault {
	int32_t armed;   /* calls are counted */
	int32_t fired;
	int64_t target;  /* the call that fails, from 1 */
	int64_t seen;
	char name[32];   /* of the call that failed */
};

#endif
