# usage: rotate.sh FILE KEEP
die() {
    printf 'rotate.sh: %s\n' "$1" >&2
    exit 2
}

[ $# -eq 2 ] || die "usage: rotate.sh FILE KEEP"
file=$1
keep=$2
case $file in
/* | ./*) ;;
*) file=./$file ;;
esac
case $keep in
'' | *[!0-9]* | 0*) die "not a positive number: $keep" ;;
esac
[ -s "$file" ] || exit 0

# the highest number in use; whatever is too old goes
top=0
for old in "$file".*; do
    n=${old#"$file".}
    case $n in
    '' | *[!0-9]* | 0*) continue ;;
    esac
    [ -f "$old" ] || continue
    if [ "$n" -ge "$keep" ]; then
        rm -f "$old" || exit 1
    elif [ "$n" -gt "$top" ]; then
        top=$n
    fi
done

while [ "$top" -ge 1 ]; do
    if [ -f "$file.$top" ]; then
        mv "$file.$top" "$file.$((top + 1))" || exit 1
    fi
    top=$((top - 1))
done
mv "$file" "$file.1" && : >"$file"
