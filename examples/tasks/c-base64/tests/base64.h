#ifndef BASE64_H
#define BASE64_H

#include <stddef.h>

size_t b64_encode(char *dst, const void *src, size_t n);
long b64_decode(void *dst, const char *src, size_t n);

#endif
