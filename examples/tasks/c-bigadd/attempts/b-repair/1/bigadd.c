#include <stdio.h>

int main(void)
{
    long long a, b;
    char line[1000];

    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%lld %lld", &a, &b) == 2)
            printf("%lld\n", a + b);
        else
            puts("error");
    return 0;
}
