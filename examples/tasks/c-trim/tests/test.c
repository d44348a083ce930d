#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"

static int failures;

static void failed(void)
{
    if (++failures == 10) {
        puts("too many failures, giving up");
        exit(1);
    }
}

enum { PAD = 8 };

static char area[400], *s;

/* the string in the middle of an area full of blanks */
static void load(const char *text)
{
    memset(area, ' ', sizeof area);
    s = area + PAD;
    strcpy(s, text);
}

static void quote(const char *p)
{
    putchar('"');
    for (; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            printf("\\x%02x", (unsigned char)*p);
        else
            putchar(*p);
    putchar('"');
}

static void check(const char *what, const char *text, const char *want)
{
    if (strcmp(s, want)) {
        printf("FAIL %s of ", what);
        quote(text);
        printf(": expected ");
        quote(want);
        printf(", got ");
        quote(s);
        puts("");
        failed();
    }
    for (size_t i = 0; i < sizeof area; i++)
        if ((i < PAD || i > PAD + strlen(text)) && area[i] != ' ') {
            printf("FAIL %s of ", what);
            quote(text);
            printf(": expected no write outside the string, got one at offset %ld\n",
                   (long)i - PAD);
            failed();
            break;
        }
}

static void try_trim(const char *text, const char *want)
{
    load(text);
    if (trim(s) != s) {
        puts("FAIL trim: expected s as the result, got another pointer");
        failed();
    }
    check("trim", text, want);
}

static void try_squeeze(const char *text, const char *want)
{
    load(text);
    size_t got = squeeze(s);
    check("squeeze", text, want);
    if (got != strlen(want)) {
        printf("FAIL squeeze of ");
        quote(text);
        printf(": expected length %zu, got %zu\n", strlen(want), got);
        failed();
    }
}

static void try_cut(const char *text, size_t max, const char *want)
{
    char what[40];

    load(text);
    int got = cut(s, max), expected = strlen(text) > max;
    sprintf(what, "cut to %zu", max);
    check(what, text, want);
    if (got != expected) {
        printf("FAIL %s of ", what);
        quote(text);
        printf(": expected the result %d, got %d\n", expected, got);
        failed();
    }
}

int main(void)
{
    char token[80] = "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!fgets(token, sizeof token, stdin))
        return 2;

    try_trim("", "");
    try_trim("a", "a");
    try_trim(" ", "");
    try_trim(" \t\n\v\f\r ", "");
    try_trim("  a", "a");
    try_trim("a  ", "a");
    try_trim("\t a b\n", "a b");
    try_trim("a  b", "a  b");
    try_trim("   long text moved to the start   ", "long text moved to the start");
    try_trim("\xa0x\xa0", "\xa0x\xa0");
    try_trim(" \x85 \xff ", "\x85 \xff");
    try_trim("\x1f a \x08", "\x1f a \x08");

    try_squeeze("", "");
    try_squeeze("abc", "abc");
    try_squeeze("   ", " ");
    try_squeeze("\n", " ");
    try_squeeze("a b", "a b");
    try_squeeze("a\tb", "a b");
    try_squeeze("a \t\r\n b", "a b");
    try_squeeze("  a   b  c    ", " a b c ");
    try_squeeze("a  b  c  d  e  f  g", "a b c d e f g");
    try_squeeze("\xa0  \x85", "\xa0 \x85");

    try_cut("", 0, "");
    try_cut("abc", 3, "abc");
    try_cut("abc", 4, "abc");
    try_cut("abc", 2, "ab");
    try_cut("abc", 0, "");
    try_cut("a\xc3\xa9" "b", 2, "a");
    try_cut("a\xc3\xa9" "b", 3, "a\xc3\xa9");
    try_cut("a\xc3\xa9", 2, "a");
    try_cut("\xe2\x82\xac\xe2\x82\xac", 5, "\xe2\x82\xac");
    try_cut("\xe2\x82\xac\xe2\x82\xac", 4, "\xe2\x82\xac");
    try_cut("\xe2\x82\xac\xe2\x82\xac", 3, "\xe2\x82\xac");
    try_cut("\xe2\x82\xac", 2, "");
    try_cut("\xf0\x9f\x98\x80!", 4, "\xf0\x9f\x98\x80");
    try_cut("\xf0\x9f\x98\x80!", 3, "");
    try_cut("\xf0\x9f\x98\x80!", 5, "\xf0\x9f\x98\x80!");
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
