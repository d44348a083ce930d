#!/bin/sh
# What the library shows to others: its exports, its version, and an installed copy that programs build against.
# usage: check.sh build-directory version
set -eu
build=$1 version=$2
so=$build/libdsec.so

fail() {
	echo "check-abi: $*" >&2
	exit 1
}

nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort > "$build/exports.txt"
sort tests/abi/symbols.txt | diff - "$build/exports.txt" || fail "exports differ from tests/abi/symbols.txt"
node=$(sed -n 's/^DSEC_\([0-9.]*\) {/\1/p' lib/libdsec.map | tail -1)
case $version in "$node" | "$node".*) ;; *) fail "version $version, newest map node $node" ;; esac
grep -qx "Version: $version" "$build/libdsec.pc" || fail "libdsec.pc has another version"
readelf -d "$so" | grep -q "SONAME.*libdsec.so.${version%%.*}\]" || fail "wrong soname"
needed=$(readelf -d "$so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | tr '\n' ' ')
[ "$needed" = "libc.so.6 " ] || fail "needs more than libc: $needed"

# In a place of its own, as a user would: nothing of the source tree is in the search paths.
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
make -s install PREFIX="$there" >/dev/null
flags=$(PKG_CONFIG_PATH="$there/lib/pkgconfig" pkg-config --cflags --libs libdsec)
# shellcheck disable=SC2086 # a list of words
cc -Wall -Wextra -Werror -std=c11 -pedantic -o "$there/hello" examples/hello.c $flags -Wl,-rpath,"$there/lib"
printf '#include <dsec/dsec.h>\nint main() { return dsec_version()[0] == 0; }\n' > "$there/x.cc"
# shellcheck disable=SC2086
c++ -Wall -Wextra -Werror -o "$there/cxx" "$there/x.cc" $flags -Wl,-rpath,"$there/lib"
"$there/cxx" || fail "the C++ program failed"
DSEC_ROOT=$there/run DSEC_IMAGES=$there/images "$there/hello" >/dev/null || fail "the installed hello failed"
make -s uninstall PREFIX="$there" >/dev/null
left=$(find "$there" -name '*dsec*' ! -path "$there/run*" ! -path "$there/images*" ! -name x.cc)
[ -z "$left" ] || fail "uninstall left $left"
echo "check-abi: 1 passed, 0 failed"
