# Runs rotate.sh in a fresh directory and looks at what is there afterwards.
LC_ALL=C
export LC_ALL
read -r token
exec </dev/null
failed=0
here=$(pwd)

# fresh NAME=CONTENT...
fresh() {
    rm -rf "$here/tmp"
    mkdir "$here/tmp"
    cd "$here/tmp" || exit 2
    for arg; do
        printf %s "${arg#*=}" >"./${arg%%=*}"
    done
    start="$*"
}

# the files here and what they hold, on one line
listing() {
    for f in ./* ./.[!.]*; do
        if [ -d "$f" ]; then
            printf '%s/ ' "${f#./}"
        elif [ -e "$f" ]; then
            printf '%s=%s ' "${f#./}" "$(cat "$f")"
        fi
    done
}

# check STATUS LISTING ARGUMENT...
check() {
    want_status=$1
    want=$2
    shift 2
    sh "$here/rotate.sh" "$@" >"$here/out.txt" 2>"$here/err.txt"
    status=$?
    got=$(listing)
    got=${got% }
    if [ "$status" != "$want_status" ]; then
        printf 'FAIL rotate.sh %s with %s: expected exit status %s, got %s\n' \
            "$*" "$start" "$want_status" "$status"
        failed=1
    fi
    if [ "$got" != "$want" ]; then
        printf 'FAIL rotate.sh %s with %s:\n  expected %s\n  got      %s\n' \
            "$*" "$start" "$want" "$got"
        failed=1
    fi
    if [ "$want_status" = 2 ] && [ ! -s "$here/err.txt" ]; then
        printf 'FAIL rotate.sh %s: expected a message on standard error, got none\n' "$*"
        failed=1
    fi
}

fresh log=new
check 0 'log= log.1=new' log 3
fresh log=new log.1=a
check 0 'log= log.1=new log.2=a' log 3
fresh log=new log.1=a log.2=b log.3=c
check 0 'log= log.1=new log.2=a log.3=b' log 3
fresh log=new log.1=a
check 0 'log= log.1=new' log 1
fresh log=new log.1=a log.3=c
check 0 'log= log.1=new log.2=a log.4=c' log 5
fresh log=new log.2=b
check 0 'log= log.1=new log.3=b' log 3
fresh log=new log.1=a log.4=d log.9=i log.12=l
check 0 'log= log.1=new log.2=a' log 3
fresh log=new log.1=a log.8=h log.9=i log.10=j log.11=k
check 0 'log= log.1=new log.10=i log.11=j log.2=a log.9=h' log 11
fresh log=new log.old=o log.1.gz=z log.01=x log.0=y log.1x=w log.=v log1=u catalog.1=t
check 0 'catalog.1=t log= log.=v log.0=y log.01=x log.1=new log.1.gz=z log.1x=w log.old=o log1=u' log 2
fresh log= log.1=a
check 0 'log= log.1=a' log 3
fresh log.1=a log.7=g
check 0 'log.1=a log.7=g' log 3
fresh
check 0 '' log 3
fresh log=new
mkdir log.5
check 0 'log= log.1=new log.5/' log 3

fresh 'my log=new' 'my log.1=a' 'my=m' 'log.1=q'
check 0 'log.1=q my=m my log= my log.1=new my log.2=a' 'my log' 3
fresh 'x[1]*=new' 'x[1]*.1=a' 'x1b.1=other' 'x1.2=other'
check 0 'x1.2=other x1b.1=other x[1]*= x[1]*.1=new x[1]*.2=a' 'x[1]*' 3
fresh 'a.b=new' 'a.b.1=a' 'axb.1=other'
check 0 'a.b= a.b.1=new a.b.2=a axb.1=other' a.b 3
fresh '-f=new' '-f.1=a'
check 0 '-f= -f.1=new -f.2=a' -f 3
fresh '.log=new' '.log.1=a' '.log.2=b'
check 0 '.log= .log.1=new .log.2=a' .log 2

fresh
mkdir 'a dir'
printf new >'a dir/log'
printf a >'a dir/log.1'
printf other >log.1
sh "$here/rotate.sh" 'a dir/log' 2
sh "$here/rotate.sh" "$here/tmp/a dir/log" 2
printf newer >'a dir/log'
sh "$here/rotate.sh" "$here/tmp/a dir/log" 2
got=$(cd 'a dir' && listing; cd .. && listing)
want='log= log.1=newer log.2=new a dir/ log.1=other '
if [ "$got" != "${want% }" ] && [ "$got" != "$want" ]; then
    printf 'FAIL three runs on "a dir/log":\n  expected %s\n  got      %s\n' "$want" "$got"
    failed=1
fi

for keep in 0 -1 x 3x '' 03 1.5 ' 3'; do
    fresh log=new log.1=a
    check 2 'log=new log.1=a' log "$keep"
done
fresh log=new
check 2 'log=new' log
check 2 'log=new' log 3 4
check 2 'log=new'
cd "$here" || exit 2
rm -f out.txt err.txt

rm -rf tmp
[ "$failed" = 0 ] || exit 1
echo "passed $token" >.passed
echo "all passed"
