# usage: wordcount.sh N [FILE...]
LC_ALL=C
export LC_ALL

n=$1
case $n in
'' | *[!0-9]* | 0*)
    echo "wordcount.sh: not a positive number: $n" >&2
    exit 2
    ;;
esac
shift

for file; do
    if [ ! -f "$file" ] || [ ! -r "$file" ]; then
        printf 'wordcount.sh: cannot read %s\n' "$file" >&2
        exit 1
    fi
done

# no file may be taken for an option
if [ $# -eq 0 ]; then cat; else for file; do cat <"$file"; echo; done; fi |
    tr 'A-Z' 'a-z' |
    tr -cs 'a-z' '\n' |
    grep . |
    sort |
    uniq -c |
    sort -k1,1nr -k2,2 |
    head -n "$n" |
    sed 's/^ *//'
