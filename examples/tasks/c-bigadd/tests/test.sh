# Feeds every cases/*.in to ./bigadd and compares line by line with its .out file.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0

fail() {
    printf 'FAIL case %s: %s\n' "$name" "$1"
    failed=1
}

for in in cases/*.in; do
    name=${in#cases/}
    name=${name%.in}
    ./bigadd <"$in" >got.txt
    status=$?
    if [ "$status" -ne 0 ]; then
        fail "expected exit status 0, got $status"
        continue
    fi
    line=0
    shown=0
    while IFS= read -r want <&3; do
        line=$((line + 1))
        if ! IFS= read -r got <&4; then
            fail "line $line: expected $(printf %.60s "$want"), got the end of the output"
            break
        fi
        if [ "$got" != "$want" ] && [ "$shown" -lt 3 ]; then
            fail "line $line: expected $(printf %.60s "$want"), got $(printf %.60s "$got")"
            shown=$((shown + 1))
        fi
    done 3<"cases/$name.out" 4<got.txt
    lines=$(($(wc -l <got.txt)))
    if [ "$lines" -gt "$(($(wc -l <"cases/$name.out")))" ]; then
        fail "expected $line lines, got $lines"
    fi
done
rm -f got.txt
[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
