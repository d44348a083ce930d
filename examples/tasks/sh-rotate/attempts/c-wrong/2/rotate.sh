# usage: rotate.sh FILE KEEP
if [ $# -ne 2 ] || ! [ "$2" -ge 1 ] 2>/dev/null; then
    echo "usage: rotate.sh FILE KEEP" >&2
    exit 2
fi
[ -s "$1" ] || exit 0
i=$2
while [ $i -gt 1 ]; do
    prev=$((i - 1))
    [ -f "$1.$prev" ] && mv -- "$1.$prev" "$1.$i"
    i=$prev
done
mv -- "$1" "$1.1"
: >"$1"
