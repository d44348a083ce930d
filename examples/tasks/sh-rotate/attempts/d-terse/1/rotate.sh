[ $# -eq 2 ] && printf '%s\n' "$2" | grep -qx '[1-9][0-9]*' || { echo "usage: rotate.sh FILE KEEP" >&2; exit 2; }
[ -s "$1" ] || exit 0
dir=$(dirname -- "$1")
base=$(basename -- "$1")
cd -- "$dir" || exit 1

shift_up() {
    n=$1
    if [ -f "./$base.$n" ]; then
        if [ "$n" -lt "$keep" ]; then
            mv "./$base.$n" "./$base.$((n + 1))"
        else
            rm "./$base.$n"
        fi
    fi
}

keep=$2
# all numbers in use, the highest first
for f in "./$base."*; do
    printf '%s\n' "${f#"./$base."}"
done | grep -x '[1-9][0-9]*' | sort -rn | while read -r n; do shift_up "$n"; done
mv "./$base" "./$base.1"
: >"./$base"
