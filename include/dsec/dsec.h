/* SPDX-License-Identifier: MIT */
/* Everything: #include <dsec/dsec.h>, link with -ldsec. Start with dsec(7). */
#ifndef DSEC_DSEC_H
#define DSEC_DSEC_H

#include "types.h"
#include "error.h"
#include "log.h"
#include "node.h"
#include "sandbox.h"
#include "exec.h"
#include "backend.h"

#endif
