#include <string.h>
#include "text.h"

static int blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char *trim(char *s)
{
    size_t from = 0, end = strlen(s);

    while (blank(s[from]))
        from++;
    while (end > from && blank(s[end - 1]))
        end--;
    memmove(s, s + from, end - from);
    s[end - from] = '\0';
    return s;
}

size_t squeeze(char *s)
{
    char *to = s;
    int in_run = 0;

    for (const char *p = s; *p; p++) {
        if (!blank(*p))
            *to++ = *p;
        else if (!in_run && p > s)
            *to++ = ' ';
        in_run = blank(*p);
    }
    *to = '\0';
    return to - s;
}

int cut(char *s, size_t max)
{
    size_t n = strlen(s);

    if (n <= max)
        return 0;
    n = max;
    s[n] = '\0';
    return 1;
}
