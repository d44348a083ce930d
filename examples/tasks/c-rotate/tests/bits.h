#ifndef BITS_H
#define BITS_H

#include <stdint.h>

uint32_t rotl32(uint32_t x, int n);
uint64_t rotl_field(uint64_t x, unsigned width, int n);
uint32_t reverse32(uint32_t x);
int longest_run(uint64_t x);

#endif
