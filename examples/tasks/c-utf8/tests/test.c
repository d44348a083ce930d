#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "utf8.h"

static int failures;

static void failed(void)
{
    if (++failures == 10) {
        puts("too many failures, giving up");
        exit(1);
    }
}

enum { UNTOUCHED = 77777 };

static void dump(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n && i < 24; i++)
        printf(" %02x", p[i]);
}

/* want_bad is -1 for valid text */
static void check(const void *src, size_t n, size_t want_count, long want_bad)
{
    size_t count = UNTOUCHED, bad = UNTOUCHED;
    int got = utf8_check(src, n, &count, &bad), want = want_bad < 0;
    size_t bad_at = want ? UNTOUCHED : (size_t)want_bad;

    if (got == want && count == want_count && bad == bad_at)
        return;
    printf("FAIL utf8_check of");
    dump(src, n);
    printf(" (%zu bytes): expected %d, count %zu", n, want, want_count);
    if (!want)
        printf(", bad %zu", bad_at);
    printf("; got %d, count %zu", got, count);
    if (bad != UNTOUCHED)
        printf(", bad %zu", bad);
    puts(bad != UNTOUCHED && want ? " (bad must stay as it was)" : "");
    failed();
}

static size_t encode(unsigned char *p, unsigned long c, int len)
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

    if (len == 1) {
        p[0] = c;
        return 1;
    }
    for (int i = len - 1; i > 0; i--, c >>= 6)
        p[i] = 0x80 | (c & 0x3f);
    p[0] = lead[len] | c;
    return len;
}

static void all_characters(void)
{
    unsigned char b[8];

    for (unsigned long c = 0; c < 0x200000; c++) {
        int len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        int ok = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        check(b, encode(b, c, len), ok, ok ? -1 : 0);
        if (len < 4 && (len < 3 || c % 16 == 0))
            check(b, encode(b, c, len + 1), 0, 0);
        if (len > 1 && c % 64 == 0)
            check(b, encode(b, c, len) - 1, 0, 0);
    }
}

static void all_pairs(void)
{
    unsigned char b[2];

    for (int i = 0; i < 256; i++)
        for (int j = 0; j < 256; j++) {
            b[0] = i;
            b[1] = j;
            if (i < 0x80)
                check(b, 2, j < 0x80 ? 2 : 1, j < 0x80 ? -1 : 1);
            else if (i >= 0xc2 && i <= 0xdf && j >= 0x80 && j <= 0xbf)
                check(b, 2, 1, -1);
            else
                check(b, 2, 0, 0);
        }
}

int main(void)
{
    char token[80] = "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!fgets(token, sizeof token, stdin))
        return 2;

    check("", 0, 0, -1);
    check("abc", 3, 3, -1);
    check("a\0b", 3, 3, -1);
    check("caf\xc3\xa9", 5, 4, -1);
    check("\xe2\x82\xac\xf0\x9f\x98\x80!", 8, 3, -1);
    check("ab\x80", 3, 2, 2);
    check("\xc3\xa9\xbf" "a", 4, 1, 2);
    check("ab\xc3", 3, 2, 2);
    check("\xe2\x82\xac", 2, 0, 0);
    check("\xe2\x82\xac\xe2\x82\xac", 5, 1, 3);
    check("\xf0\x9f\x98\x80", 3, 0, 0);
    check("\xf0\x9f\x98\x80", 1, 0, 0);
    check("a\xe2\x82z", 4, 1, 1);
    check("a\xe2(\xac", 4, 1, 1);
    check("\xf0\x9f\x98z", 4, 0, 0);
    check("x\xc0\xaf", 3, 1, 1);
    check("x\xc1\xbf", 3, 1, 1);
    check("\xe0\x80\xaf", 3, 0, 0);
    check("\xe0\x9f\xbf", 3, 0, 0);
    check("\xe0\xa0\x80", 3, 1, -1);
    check("\xf0\x8f\xbf\xbf", 4, 0, 0);
    check("\xf0\x90\x80\x80", 4, 1, -1);
    check("\xed\x9f\xbf", 3, 1, -1);
    check("\xed\xa0\x80", 3, 0, 0);
    check("\xed\xbf\xbf", 3, 0, 0);
    check("\xee\x80\x80", 3, 1, -1);
    check("\xf4\x8f\xbf\xbf", 4, 1, -1);
    check("\xf4\x90\x80\x80", 4, 0, 0);
    check("\xf5\x80\x80\x80", 4, 0, 0);
    check("\xf8\x88\x80\x80\x80", 5, 0, 0);
    check("\xfe", 1, 0, 0);
    check("ok\xff", 3, 2, 2);
    all_characters();
    all_pairs();
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
