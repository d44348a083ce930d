# normpath PATH: prints PATH without needless parts.
normpath() (
    set -f
    path=$1
    case $path in
    /*) root=/ ;;
    *) root= ;;
    esac
    out=
    IFS=/
    for part in $path; do
        case $part in
        '' | .) ;;
        ..)
            case $out in
            '') [ -n "$root" ] || out=.. ;;
            .. | */..) out=$out/.. ;;
            */*) out=${out%/*} ;;
            *) out= ;;
            esac
            ;;
        *) out=${out:+$out/}$part ;;
        esac
    done
    out=$root$out
    printf '%s\n' "${out:-.}"
)

# relpath FROM TO: prints the path that leads from the directory FROM to TO.
relpath() (
    case $1 in
    /*) ;;
    *) return 2 ;;
    esac
    case $2 in
    /*) ;;
    *) return 2 ;;
    esac
    from=$(normpath "$1")
    to=$(normpath "$2")
    from=${from%/}
    to=${to%/}
    up=
    while :; do
        case $to/ in
        "$from"*) break ;;
        esac
        up=${up:+$up/}..
        from=${from%/*}
    done
    rest=${to#"$from"}
    rest=${rest#/}
    out=$up${up:+${rest:+/}}$rest
    printf '%s\n' "${out:-.}"
)
