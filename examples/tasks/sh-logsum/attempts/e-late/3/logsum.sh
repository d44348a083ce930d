LC_ALL=C
export LC_ALL
tab=$(printf '\t')
good=$(mktemp ./logsum.XXXXXX) || exit 3
all=$(mktemp ./logsum.XXXXXX) || exit 3
trap 'rm -f "$good" "$all"' EXIT

# one space between the fields, none at the ends, no empty lines
{ cat; echo; } | tr '\t' ' ' | sed -e 's/  */ /g' -e 's/^ //' -e 's/ $//' -e '/^$/d' >"$all"
grep -E '^[^ ]+ [^ ]+ [^ ]+ [2-5][0-9][0-9] (-|[0-9]+)$' "$all" >"$good"

n=$(wc -l <"$good")
a=$(wc -l <"$all")
sum=0
for b in $(cut -d ' ' -f 5 "$good" | sed -e 's/^0*//' -e 's/^-*$/0/'); do
    sum=$((sum + b))
done
printf '%s %d\n' requests "$n" skipped $((a - n)) bytes "$sum"
for class in 2 3 4 5; do
    printf '%dxx %d\n' $class "$(cut -d ' ' -f 4 "$good" | grep -c "^$class")"
done
cut -d ' ' -f 1 "$good" | sort | uniq -c | sort -s -k1,1nr | {
    read -r count host && printf 'busiest %s %d\n' "$host" "$count"
}
exit 0
