# Runs wordcount.sh on small inputs and compares what it prints.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0
rm -rf tmp
mkdir tmp

# expect WHAT STATUS OUTPUT, about the last run
expect() {
    got=$(cat tmp/out)
    if [ "$status" != "$2" ]; then
        printf 'FAIL %s: expected exit status %s, got %s\n' "$1" "$2" "$status"
        failed=1
    fi
    if [ "$got" != "$3" ]; then
        printf 'FAIL %s: expected\n%s\ngot\n%s\n' "$1" "$3" "$got"
        failed=1
    fi
    if [ "$2" != 0 ] && [ ! -s tmp/err ]; then
        printf 'FAIL %s: expected a message on standard error, got none\n' "$1"
        failed=1
    fi
}

run() {
    sh wordcount.sh "$@" >tmp/out 2>tmp/err
    status=$?
}

from_stdin() {
    printf "$1" | sh wordcount.sh "$2" >tmp/out 2>tmp/err
    status=$?
}

from_stdin 'the cat and the hat\n' 2
expect 'top 2' 0 '2 the
1 and'
from_stdin 'the cat and the hat\n' 10
expect 'fewer words than N' 0 '2 the
1 and
1 cat
1 hat'
from_stdin '' 5
expect 'empty input' 0 ''
from_stdin '12 -- !!\n\n' 5
expect 'no words' 0 ''
from_stdin 'The THE the\tTo to' 2
expect 'case, tab, no final newline' 0 '3 the
2 to'
from_stdin "don't stop, don't... e-mail x2y\n" 9
expect 'punctuation and digits' 0 '2 don
2 t
1 e
1 mail
1 stop
1 x
1 y'
from_stdin 'b a c b a c zz\n' 3
expect 'ties' 0 '2 a
2 b
2 c'
from_stdin 'caf\303\251 [x] n*w \\back *\n' 9
expect 'other bytes' 0 '1 back
1 caf
1 n
1 w
1 x'

i=0
while [ $i -lt 12 ]; do
    echo 'ten and more'
    i=$((i + 1))
done >tmp/many
printf 'two two\nnine nine nine nine nine nine nine nine nine' >>tmp/many
run 5 tmp/many
expect 'counts of two digits' 0 '12 and
12 more
12 ten
9 nine
2 two'

printf 'one two' >tmp/a
printf 'three one\n' >'tmp/b  c'
printf 'one\n' >'tmp/*'
run 3 tmp/a 'tmp/b  c'
expect 'two files, the first without newline' 0 '2 one
1 three
1 two'
run 1 'tmp/*'
expect 'a file named *' 0 '1 one'
printf 'dash dash\n' >./-n
run 1 -n
rm -f ./-n
expect 'a file named -n' 0 '2 dash'

run 2 tmp/a tmp/missing
expect 'a missing file' 1 ''
run 2 tmp
expect 'a directory' 1 ''
for n in 0 -1 x 1x '' 01 1.5 '1 2'; do
    run "$n" tmp/a
    expect "N is '$n'" 2 ''
done
run
expect 'no arguments' 2 ''

rm -rf tmp
[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
