/* SPDX-License-Identifier: MIT */
/* The helper program as bytes of the library; DSEC_HELPER is its path at build time. */
	.section .rodata
	.balign 16
	.globl	dsec__helper_start
	.hidden	dsec__helper_start
dsec__helper_start:
	.incbin	DSEC_HELPER
	.globl	dsec__helper_end
	.hidden	dsec__helper_end
dsec__helper_end:
	.byte	0
	.section .note.GNU-stack,"",%progbits
