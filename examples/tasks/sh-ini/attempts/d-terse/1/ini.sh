[ $# -eq 3 ] && [ -f "$1" ] || { echo "usage: ini.sh FILE SECTION KEY" >&2; exit 2; }
section=$2
key=$3
tab=$(printf '\t')
cr=$(printf '\r')

# first tidy every line: s:SECTION, k:KEY and then v:VALUE
sed -n -e "s/$cr\$//" -e "s/^[ $tab]*//" -e "s/[ $tab]*\$//" -e '/^[#;]/d' \
    -e "s/^\[[ $tab]*\(.*\)\]\$/s:\1/" -e "/^s:/{s/[ $tab]*\$//;p;d;}" \
    -e "/=/{h;s/[ $tab]*=.*//;s/^/k:/;p;g;s/[^=]*=[ $tab]*//;s/^\"\(.*\)\"\$/\1/;s/^/v:/;p;}" "$1" | {
    in= hit= got=1
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        s:*) in=${line#s:} ;;
        k:*) hit=${line#k:} ;;
        v:*)
            if [ "$in" = "$section" ] && [ "$hit" = "$key" ]; then
                value=${line#v:}
                got=0
            fi
            ;;
        esac
    done
    [ $got = 0 ] && printf '%s\n' "$value"
    exit $got
}
