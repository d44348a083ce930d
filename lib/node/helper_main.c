/* SPDX-License-Identifier: MIT */
/* The helper program: launcher, keeper and agent in one static file that libdsec.so carries and runs from memory. */
#include <stdio.h>

#include "launcher.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		(void)fputs("this program is started by libdsec.so\n", stderr);
		return 2;
	}
	dsec__title_init(argc, argv);
	return dsec__launcher_main(argv[1], argv[2]);
}
