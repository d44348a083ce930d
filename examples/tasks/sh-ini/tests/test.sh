# Asks ini.sh for values in the files of data/ and in some made here.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0
rm -rf tmp
mkdir tmp

# check STATUS VALUE FILE SECTION KEY
check() {
    want_status=$1
    want=$2
    shift 2
    # the x keeps newlines at the end from getting lost
    got=$(sh ini.sh "$@" 2>tmp/err; echo "x$?")
    status=${got##*x}
    got=${got%x*}
    [ "$want_status" != 0 ] || want="$want
"
    if [ "$status" != "$want_status" ] || [ "$got" != "$want" ]; then
        printf "FAIL ini.sh %s '%s' '%s': expected status %s and '%s', got status %s and '%s'\n" \
            "$1" "$2" "$3" "$want_status" "$want" "$status" "$got"
        failed=1
    fi
    if [ "$want_status" = 2 ] && [ ! -s tmp/err ]; then
        echo "FAIL ini.sh $*: expected a message on standard error, got none"
        failed=1
    fi
}

f=data/server.ini
check 0 'demo' $f '' name
check 0 '8080' $f server port
check 0 'example.org' $f server host
check 0 '/var/data files' $f server root
check 0 '' $f server empty
check 0 '  padded  ' $f server banner
check 0 'x' $f server quoted
check 1 '' $f server Port
check 1 '' $f Server port
check 1 '' $f server name
check 1 '' $f nowhere port
check 0 'a=b=c' $f client query
check 0 'yes # really' $f client note
check 0 '5432' $f client port
check 0 '30' $f client timeout
check 1 '' $f client hidden
check 1 '' $f client alsohidden

f=data/odd.ini
check 0 'dot' $f a.b k.y
check 0 'letter' $f axb kxy
check 0 'bracket' $f 'x[1]' 'list[*]'
check 0 'C:\new\table' $f 'x[1]' path
check 0 '$HOME * `id`' $f 'x[1]' shell
check 0 'slash' $f 'a/b' 'c/d'
check 0 'two words' $f 'my section' 'my key'
check 0 'star' $f '*' '*'
check 0 '-n' $f '*' dash
check 0 '"' $f '*' single
check 0 'say "hi"' $f '*' inner
check 0 '"open' $f '*' open
check 0 '' $f '*' none
check 0 'emptykey' $f '*' ''
check 1 '' $f 'my' 'my key'
check 1 '' $f '.*' '*'
check 1 '' $f '*' 'd.sh'

printf 'a=1\r\n[s]\r\nb = two \r\n\r\nc="3 "\r\n' >tmp/crlf.ini
check 0 '1' tmp/crlf.ini '' a
check 0 'two' tmp/crlf.ini s b
check 0 '3 ' tmp/crlf.ini s c
printf '[s]\n\tk\t=\tlast' >'tmp/no newline.ini'
check 0 'last' 'tmp/no newline.ini' s k
: >tmp/empty.ini
check 1 '' tmp/empty.ini '' k
printf '[ s ]\nk=1\n[t]\nk=2\n[s]\nk=3\n[u]\nk=4\n' >tmp/again.ini
check 0 '3' tmp/again.ini s k
check 0 '2' tmp/again.ini t k
printf '[s]\nk=first\nk=\n' >tmp/last.ini
check 0 '' tmp/last.ini s k

check 2 '' tmp/missing.ini s k
check 2 '' data/odd.ini s
check 2 '' data/odd.ini s k extra

rm -rf tmp
[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
