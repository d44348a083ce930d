#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    const char *digits;
    size_t n;
    int negative;
};

static char *read_all(size_t *size)
{
    size_t cap = 4096, n = 0, got;
    char *text = malloc(cap);

    while (text && (got = fread(text + n, 1, cap - n, stdin)) > 0) {
        n += got;
        if (n == cap)
            text = realloc(text, cap *= 2);
    }
    *size = n;
    return text;
}

/* one number from *p on; moves *p behind it */
static int parse(const char **p, const char *end, struct number *x)
{
    x->negative = 0;
    if (*p < end && (**p == '-' || **p == '+'))
        x->negative = *(*p)++ == '-';
    const char *start = *p;
    while (*p < end && **p >= '0' && **p <= '9')
        ++*p;
    if (*p == start)
        return 0;
    x->digits = start;
    x->n = *p - start;
    return 1;
}

static size_t blanks(const char **p, const char *end)
{
    const char *start = *p;

    while (*p < end && (**p == ' ' || **p == '\t'))
        ++*p;
    return *p - start;
}

/* digit i from the right; 0 beyond the left end */
static int digit(const struct number *x, size_t i)
{
    return i < x->n ? x->digits[x->n - 1 - i] - '0' : 0;
}

static int compare(const struct number *a, const struct number *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return memcmp(a->digits, b->digits, a->n);
}

static void add(const struct number *a, const struct number *b)
{
    int minus = a->negative != b->negative;
    if (minus && compare(a, b) < 0) {
        const struct number *t = a;
        a = b;
        b = t;
    }
    size_t n = (a->n > b->n ? a->n : b->n) + 1, at = n;
    char *out = malloc(n + 1);
    int carry = 0;

    if (!out)
        exit(3);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        int d = minus ? digit(a, i) - digit(b, i) - carry : digit(a, i) + digit(b, i) + carry;
        carry = d < 0 || d > 9;
        out[--at] = '0' + (d + 10) % 10;
    }
    char *p = out;
    while (*p == '0' && p[1])
        p++;
    printf("%s%s\n", a->negative && *p != '0' ? "-" : "", p);
    free(out);
}

int main(void)
{
    size_t size;
    char *text = read_all(&size);
    if (!text)
        return 3;

    for (const char *p = text, *stop = text + size; p < stop; p++) {
        const char *end = memchr(p, '\n', stop - p);
        struct number a, b;
        if (!end)
            end = stop;
        blanks(&p, end);
        if (parse(&p, end, &a) && blanks(&p, end) && parse(&p, end, &b))
            add(&a, &b);
        else
            puts("error");
        p = end;
    }
    free(text);
    return 0;
}
