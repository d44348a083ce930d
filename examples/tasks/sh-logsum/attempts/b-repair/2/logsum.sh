# Sums up an access log read from standard input.
LC_ALL=C
export LC_ALL
set -f

requests=0 skipped=0 bytes=0 c2=0 c3=0 c4=0 c5=0 hosts=

number() {
    case $1 in
    '' | *[!0-9]*) return 1 ;;
    esac
}

while IFS= read -r line || [ -n "$line" ]; do
    set -- $line
    case $# in
    0) continue ;;
    5) ;;
    *)
        skipped=$((skipped + 1))
        continue
        ;;
    esac
    size=$5
    [ "$size" = - ] && size=0
    case $4 in
    [2-5][0-9][0-9]) ;;
    *) size=bad ;;
    esac
    if ! number "$size"; then
        skipped=$((skipped + 1))
        continue
    fi
    while :; do
        case $size in
        0?*) size=${size#0} ;;
        *) break ;;
        esac
    done
    requests=$((requests + 1))
    bytes=$((bytes + size))
    case $4 in
    2*) c2=$((c2 + 1)) ;;
    3*) c3=$((c3 + 1)) ;;
    4*) c4=$((c4 + 1)) ;;
    5*) c5=$((c5 + 1)) ;;
    esac
    hosts="$hosts$1
"
done

echo "requests $requests"
echo "skipped $skipped"
echo "bytes $bytes"
echo "2xx $c2"
echo "3xx $c3"
echo "4xx $c4"
echo "5xx $c5"
if [ "$requests" -gt 0 ]; then
    printf %s "$hosts" | sort | uniq -c | sort -k1,1nr -k2,2 | sed -n '1s/^ *\([0-9]*\) \(.*\)/busiest \2 \1/p'
fi
