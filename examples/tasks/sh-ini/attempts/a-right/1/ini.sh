# usage: ini.sh FILE SECTION KEY
LC_ALL=C
export LC_ALL

if [ $# -ne 3 ]; then
    echo "usage: ini.sh FILE SECTION KEY" >&2
    exit 2
fi
if [ ! -f "$1" ]; then
    printf 'ini.sh: no file %s\n' "$1" >&2
    exit 2
fi

tab=$(printf '\t')
cr=$(printf '\r')
found=
section=

# sets REPLY to the argument without the blanks at its ends
trim() {
    REPLY=$1
    while :; do
        case $REPLY in
        ' '* | "$tab"*) REPLY=${REPLY#?} ;;
        *' ' | *"$tab") REPLY=${REPLY%?} ;;
        *) break ;;
        esac
    done
}

while IFS= read -r line || [ -n "$line" ]; do
    trim "${line%"$cr"}"
    case $REPLY in
    '' | '#'* | ';'*) continue ;;
    '['*']')
        REPLY=${REPLY#?}
        trim "${REPLY%?}"
        section=$REPLY
        continue
        ;;
    *=*) ;;
    *) continue ;;
    esac
    [ "$section" = "$2" ] || continue
    line=$REPLY
    trim "${line%%=*}"
    [ "$REPLY" = "$3" ] || continue
    trim "${line#*=}"
    case $REPLY in
    '"'*'"')
        REPLY=${REPLY#?}
        REPLY=${REPLY%?}
        ;;
    esac
    found=yes
    value=$REPLY
done <"$1"

[ -n "$found" ] || exit 1
printf '%s\n' "$value"
