#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base64.h"

static int failures;

static void failed(void)
{
    if (++failures == 10) {
        puts("too many failures, giving up");
        exit(1);
    }
}

static char text[2000];
static unsigned char bytes[2000];

static void pair(const char *plain, size_t n, const char *code)
{
    memset(text, '#', sizeof text);
    size_t got = b64_encode(text, plain, n), want = strlen(code);
    if (got != want || memcmp(text, code, want + 1)) {
        printf("FAIL encode of %zu bytes: expected \"%s\" (%zu), got \"%.40s\" (%zu)\n",
               n, code, want, text, got);
        failed();
    }
    memset(bytes, '#', sizeof bytes);
    long back = b64_decode(bytes, code, want);
    if (back != (long)n || memcmp(bytes, plain, n)) {
        printf("FAIL decode of \"%s\": expected \"%.*s\" (%zu), got \"%.*s\" (%ld)\n", code,
               (int)n, plain, n, (int)(back > 0 && back < 40 ? back : 0), (char *)bytes, back);
        failed();
    }
    if (bytes[want / 4 * 3] != '#') {
        printf("FAIL decode of \"%s\": expected at most %zu bytes stored, got more\n", code,
               want / 4 * 3);
        failed();
    }
}

static void reject(const char *code, size_t n)
{
    long got = b64_decode(bytes, code, n);

    if (got != -1) {
        printf("FAIL decode of \"%s\" (%zu characters): expected -1, got %ld\n", code, n, got);
        failed();
    }
}

static void there_and_back(void)
{
    static unsigned char in[1000];
    unsigned long seed = 5;

    for (size_t n = 0; n <= sizeof in; n += n < 40 ? 1 : 37) {
        for (size_t i = 0; i < n; i++) {
            seed = (seed * 1103515245 + 12345) & 0x7fffffff;
            in[i] = seed >> 16;
        }
        size_t len = b64_encode(text, in, n);
        if (len != (n + 2) / 3 * 4) {
            printf("FAIL encode of %zu bytes: expected length %zu, got %zu\n", n,
                   (n + 2) / 3 * 4, len);
            failed();
        }
        long back = b64_decode(bytes, text, len);
        if (back != (long)n || memcmp(bytes, in, n)) {
            printf("FAIL decode of the encoding of %zu bytes: expected them back, got %ld%s\n",
                   n, back, back == (long)n ? " others" : "");
            failed();
        }
    }
}

/* every pair of final characters: accepted exactly if it can come out of encode */
static void endings(void)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char code[5] = "AA==";

    for (int i = 0; i < 64; i++) {
        code[1] = set[i];
        long got = b64_decode(bytes, code, 4), want = i % 16 ? -1 : 1;
        if (got != want) {
            printf("FAIL decode of \"%s\": expected %ld, got %ld\n", code, want, got);
            failed();
        }
    }
    strcpy(code, "AAA=");
    for (int i = 0; i < 64; i++) {
        code[2] = set[i];
        long got = b64_decode(bytes, code, 4), want = i % 4 ? -1 : 2;
        if (got != want) {
            printf("FAIL decode of \"%s\": expected %ld, got %ld\n", code, want, got);
            failed();
        }
    }
}

int main(void)
{
    char token[80] = "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!fgets(token, sizeof token, stdin))
        return 2;

    pair("", 0, "");
    pair("f", 1, "Zg==");
    pair("fo", 2, "Zm8=");
    pair("foo", 3, "Zm9v");
    pair("foob", 4, "Zm9vYg==");
    pair("fooba", 5, "Zm9vYmE=");
    pair("foobar", 6, "Zm9vYmFy");
    pair("\0", 1, "AA==");
    pair("\0\0\0", 3, "AAAA");
    pair("\xff\xff\xff", 3, "////");
    pair("\xfb\xef\xbe", 3, "++++");
    pair("\xff", 1, "/w==");
    pair("\x80\x81", 2, "gIE=");
    reject("Zg", 2);
    reject("Zg=", 3);
    reject("Z", 1);
    reject("Zm9vY", 5);
    reject("====", 4);
    reject("Z===", 4);
    reject("=Zg=", 4);
    reject("Zg=g", 4);
    reject("Zg=A", 4);
    reject("Zm9vAA=A", 8);
    reject("Zg==Zg==", 8);
    reject("Zm8=Zm9v", 8);
    reject("Zm9v====", 8);
    reject("Zh==", 4);
    reject("Zm9=", 4);
    reject("Zm-v", 4);
    reject("Zm_v", 4);
    reject("Zm v", 4);
    reject("Zm9v\n", 5);
    reject("Zm9\n", 4);
    reject("Zm9\0", 4);
    reject("\0\0\0\0", 4);
    reject("Zm9\xc3", 4);
    reject("Zm9@", 4);
    reject("Zm9[", 4);
    reject("Zm9`", 4);
    reject("Zm9{", 4);
    reject("Zm9:", 4);
    reject("Zm9.", 4);
    there_and_back();
    endings();
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
