LC_ALL=C; export LC_ALL
die() { echo "$2" >&2; exit "$1"; }

expr "x$1" : 'x[1-9][0-9]*$' >/dev/null || die 2 "usage: wordcount.sh N [FILE...]"
n=$1
shift
text() {
    [ $# -gt 0 ] || cat
    for f in "$@"; do
        sed -e '$a\' <"$f"
    done
}
for f in "$@"; do
    [ -f "$f" ] || die 1 "no such file: $f"
done

text "$@" | tr -c 'A-Za-z' '[\n*]' | tr 'A-Z' 'a-z' | sed '/^$/d' | sort | uniq -c |
    while read -r count word; do echo "$count $word"; done |
    sort -s -k1,1nr | sed "${n}q"
