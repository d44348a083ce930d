# Feeds small logs to logsum.sh and compares what it prints.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0
rm -rf tmp
mkdir tmp

# check WHAT EXPECTED, about the log in tmp/log
check() {
    sh logsum.sh <tmp/log >tmp/out 2>tmp/err
    status=$?
    if [ "$status" != 0 ]; then
        printf 'FAIL %s: expected exit status 0, got %s\n' "$1" "$status"
        failed=1
    fi
    got=$(cat tmp/out)
    if [ "$got" != "$2" ]; then
        printf 'FAIL %s: expected\n%s\ngot\n%s\n' "$1" "$2" "$got"
        failed=1
    fi
    if [ -s tmp/err ]; then
        printf 'FAIL %s: expected nothing on standard error, got\n' "$1"
        head -n 3 tmp/err
        failed=1
    fi
}

for log in logs/*.log; do
    cp "$log" tmp/log
    check "$log" "$(cat "${log%.log}.txt")"
done

: >tmp/log
check 'empty log' 'requests 0
skipped 0
bytes 0
2xx 0
3xx 0
4xx 0
5xx 0'

printf 'a GET / 200 5' >tmp/log
check 'no final newline' 'requests 1
skipped 0
bytes 5
2xx 1
3xx 0
4xx 0
5xx 0
busiest a 1'

printf '  a\tGET  /x\t 404 \t 7  \n \t \n\n' >tmp/log
check 'odd blanks' 'requests 1
skipped 0
bytes 7
2xx 0
3xx 0
4xx 1
5xx 0
busiest a 1'

printf '%s\n' '* GET /* 200 1' 'b GET /? 200 2' '* GET [a-z]* 301 3' 'c\\t GET /\\n 200 4' >tmp/log
check 'special characters' 'requests 4
skipped 0
bytes 10
2xx 3
3xx 1
4xx 0
5xx 0
busiest * 2'

printf '%s\n' 'a GET / 200 08' 'b GET / 200 010' 'c GET / 200 000' 'a GET / 500 09' >tmp/log
check 'leading zeros' 'requests 4
skipped 0
bytes 27
2xx 3
3xx 0
4xx 0
5xx 1
busiest a 2'

printf '%s\n' 'z GET / 200 1' 'B GET / 200 1' 'a GET / 200 1' 'z GET / 200 1' 'B GET / 200 -' >tmp/log
check 'tie' 'requests 5
skipped 0
bytes 4
2xx 5
3xx 0
4xx 0
5xx 0
busiest B 2'

printf '%s\n' 'a GET / 200' 'a GET / 200 1 x' 'a GET / 600 1' 'a GET / 199 1' 'a GET / 20 1' \
    'a GET / 2000 1' 'a GET / 2x0 1' 'a GET / 200 -1' 'a GET / 200 1k' 'a GET / 200 --' \
    'a GET / - 5' 'a' 'a GET / 200 0x5' >tmp/log
check 'bad lines only' 'requests 0
skipped 13
bytes 0
2xx 0
3xx 0
4xx 0
5xx 0'

i=0
while [ $i -lt 11 ]; do
    echo "x GET /$i 200 1000000000"
    [ $i -lt 9 ] && echo "y GET /$i 503 -"
    i=$((i + 1))
done >tmp/log
check 'large sum, counts of two digits' 'requests 20
skipped 0
bytes 11000000000
2xx 11
3xx 0
4xx 0
5xx 9
busiest x 11'

rm -rf tmp
[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
