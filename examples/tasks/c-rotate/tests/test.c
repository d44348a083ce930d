#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <limits.h>
#include "bits.h"

static int failures;

static void failed(void)
{
    if (++failures == 10) {
        puts("too many failures, giving up");
        exit(1);
    }
}

typedef unsigned long long ull;

static void rotl(uint32_t x, int n, uint32_t want)
{
    uint32_t got = rotl32(x, n);

    if (got != want) {
        printf("FAIL rotl32(0x%08x, %d): expected 0x%08x, got 0x%08x\n", x, n, want, got);
        failed();
    }
}

static void field(uint64_t x, unsigned width, int n, uint64_t want)
{
    uint64_t got = rotl_field(x, width, n);

    if (got != want) {
        printf("FAIL rotl_field(0x%llx, %u, %d): expected 0x%llx, got 0x%llx\n",
               (ull)x, width, n, (ull)want, (ull)got);
        failed();
    }
}

static void reverse(uint32_t x, uint32_t want)
{
    uint32_t got = reverse32(x);

    if (got != want) {
        printf("FAIL reverse32(0x%08x): expected 0x%08x, got 0x%08x\n", x, want, got);
        failed();
    }
}

static void run(uint64_t x, int want)
{
    int got = longest_run(x);

    if (got != want) {
        printf("FAIL longest_run(0x%llx): expected %d, got %d\n", (ull)x, want, got);
        failed();
    }
}

/* one bit at a time */
static uint64_t model(uint64_t x, unsigned width, int n)
{
    uint64_t out = x;
    long long w = width;

    for (long long i = 0; i < w; i++) {
        long long from = ((i - n) % w + w) % w;
        out &= ~((uint64_t)1 << i);
        out |= (x >> from & 1) << i;
    }
    return out;
}

int main(void)
{
    char token[80] = "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!fgets(token, sizeof token, stdin))
        return 2;

    static const int turns[] = { 0, 1, -1, 2, 5, -7, 31, 32, 33, -31, -32, -33, 63, 64, 65,
        -64, -65, 100, -100, 1000003, -1000003, INT_MAX, INT_MIN, INT_MIN + 1 };
    static const uint64_t values[] = { 0, 1, 0x80000001u, 0x12345678u, 0xffffffffu,
        0x123456789abcdef1u, 0x8000000000000000u, 0xfedcba9876543210u, ~(uint64_t)0 };

    rotl(0x80000001u, 1, 0x00000003u);
    rotl(0x80000001u, -1, 0xc0000000u);
    rotl(0x12345678u, 8, 0x34567812u);
    rotl(0x12345678u, 0, 0x12345678u);
    rotl(0x12345678u, 32, 0x12345678u);
    rotl(0x12345678u, -40, 0x78123456u);
    field(0x1, 1, 5, 0x1);
    field(0xf1, 4, 1, 0xf2);
    field(0xf9, 4, -1, 0xfc);
    field(0x5, 3, 1, 0x3);
    field(0x123, 12, 4, 0x231);
    field(0x1, 40, -1, 0x8000000000u);
    field(0xff00000000000001u, 56, 55, 0xff80000000000000u);
    field(0x123456789abcdef1u, 64, 4, 0x23456789abcdef11u);
    field(0xabc, 0, 3, 0xabc);
    field(0xabc, 65, 3, 0xabc);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
            rotl((uint32_t)values[j], turns[i], (uint32_t)model((uint32_t)values[j], 32, turns[i]));
            for (unsigned w = 1; w <= 64; w++)
                field(values[j], w, turns[i], model(values[j], w, turns[i]));
        }
    }
    reverse(0, 0);
    reverse(1, 0x80000000u);
    reverse(0x80000000u, 1);
    reverse(0x12345678u, 0x1e6a2c48u);
    reverse(0xffff0000u, 0x0000ffffu);
    for (int i = 0; i < 32; i++)
        reverse((uint32_t)1 << i, 0x80000000u >> i);
    run(0, 0);
    run(1, 1);
    run(0x8000000000000001u, 1);
    run(0xff0f, 8);
    run(0x7770, 3);
    run(0xaaaaaaaaaaaaaaaau, 1);
    run(~(uint64_t)0, 64);
    run(~(uint64_t)0 << 1, 63);
    run(0xffffffff00000000u, 32);
    if (failures) {
        printf("%d failed\n", failures);
        return 1;
    }
    FILE *f = fopen(".passed", "w");
    if (!f || fprintf(f, "passed %s", token) < 0 || fclose(f))
        return 2;
    puts("all passed");
    return 0;
}
