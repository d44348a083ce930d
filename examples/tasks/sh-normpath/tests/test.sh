# Reads paths.sh and calls its functions.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0

. ./paths.sh

# check EXPECTED FUNCTION ARGUMENT...
check() {
    want=$1
    shift
    got=$("$@")
    status=$?
    if [ "$got" != "$want" ] || [ "$status" != 0 ]; then
        printf "FAIL %s '%s'%s: expected '%s' and status 0, got '%s' and status %s\n" \
            "$1" "$2" "${3+ '$3'}" "$want" "$got" "$status"
        failed=1
    fi
}

check / normpath /
check / normpath //
check / normpath ///
check . normpath ''
check . normpath .
check . normpath ./
check . normpath ././.
check .. normpath ..
check .. normpath ../
check ../.. normpath ../..
check /a normpath /a/
check /a/b normpath //a///b//
check a/b normpath a/./b/.
check a normpath a/b/..
check . normpath a/..
check . normpath a/b/../..
check .. normpath a/../..
check ../b normpath a/../../b
check ../../x normpath ../../x
check ../../x normpath ../a/../../x
check /  normpath /..
check / normpath /../..
check /a normpath /../a
check / normpath /a/..
check /b normpath /a/../../b
check /a/c normpath /a/b/../c
check ... normpath ...
check .../a normpath .../a
check a. normpath ./a.
check ..a normpath x/../..a
check 'a..' normpath 'a../b/..'
check '/.hidden' normpath /.hidden
check 'my docs/a  b' normpath 'my docs//a  b/'
check ' ' normpath ' '
check '*' normpath '*'
check '/*/?' normpath '/*/./?'
check '[a-z]*' normpath '[a-z]*'
check '/*' normpath '/*/x/..'
check 'a\b/\n' normpath 'a\b//\n'
check '-n' normpath -n
check '-e' normpath ./-e
check '$HOME/~' normpath '$HOME/~'
check '~' normpath '~'

check . relpath / /
check . relpath /a /a
check . relpath /a/ //a/.
check b relpath /a /a/b
check b/c relpath /a /a/b/c
check a relpath / /a
check .. relpath /a /
check ../.. relpath /a/b /
check .. relpath /a/b /a
check ../c relpath /a/b /a/c
check ../c/d relpath /a/b /a/c/d
check ../abc relpath /ab /abc
check ../ab relpath /abc /ab
check ../../x/y relpath /a/b /x/y
check ../b relpath /x/../a /b
check '../*' relpath '/[a]' '/*'
check '../a' relpath '/*' '/a'
check '../ab' relpath '/a?' '/ab'
check 'c d' relpath '/a b' '/a b/c d'
check '../y z' relpath '/x  x' '/y z'

for pair in 'a /b' '/a b' 'a b' '. /a'; do
    got=$(relpath "${pair% *}" "${pair#* }")
    status=$?
    if [ "$status" != 2 ] || [ -n "$got" ]; then
        printf "FAIL relpath %s: expected '' and status 2, got '%s' and status %s\n" \
            "$pair" "$got" "$status"
        failed=1
    fi
done

# nothing of the caller's may change
path=p out=o part=q root=r from=f to=t up=u rest=s dir=d i=1 n=2 IFS=': '
before=$(pwd)$-
normpath a/../b/c >/dev/null
relpath /a/b /c/d >/dev/null
got="$path $out $part $root $from $to $up $rest $dir $i $n <$IFS> $(pwd)$-"
want="p o q r f t u s d 1 2 <: > $before"
IFS=' ''	''
'
if [ "$got" != "$want" ]; then
    printf 'FAIL variables and options afterwards: expected %s, got %s\n' "$want" "$got"
    failed=1
fi

[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
