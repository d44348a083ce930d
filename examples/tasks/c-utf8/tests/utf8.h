#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>

int utf8_check(const void *src, size_t n, size_t *count, size_t *bad);

#endif
