# usage: ini.sh FILE SECTION KEY
[ $# -eq 3 ] && [ -f "$1" ] || { echo "usage: ini.sh FILE SECTION KEY" >&2; exit 2; }

value=$(sed -n "/^\\[$2\\]/,/^\\[/s/^ *$3 *= *//p" "$1" | tail -n 1)
[ -n "$value" ] || exit 1
value=${value#\"}
value=${value%\"}
echo "$value"
