use strict;
use warnings;

my $token = <STDIN>;    # taken before any tested code runs
my $failures = 0;

sub show {
    my ($x) = @_;
    return 'undef' unless defined $x;
    $x = substr($x, 0, 60) . '...' . length($x) . ' in all' if length $x > 80;
    $x =~ s/([^ -~])/sprintf '\x%02x', ord $1/ge;
    return "'$x'";
}

sub fail {
    print "FAIL $_[0]\n";
    if (++$failures == 10) {
        print "too many failures, giving up\n";
        exit 1;
    }
}

sub is {
    my ($what, $got, $want) = @_;
    return if defined $got && defined $want ? $got eq $want : !defined $got && !defined $want;
    fail("$what: expected " . show($want) . ', got ' . show($got));
}

require './Brackets.pm';

sub try {
    my ($text, $want) = @_;
    is('check(' . show($text) . ')', scalar Brackets::check($text), $want);
}

try('', 'ok');
try('no brackets', 'ok');
try('()', 'ok');
try('([{}])', 'ok');
try('()[]{}', 'ok');
try("f(a[1], {\n  b => [2, (3)],\n})\n", 'ok');
try('(((((((((())))))))))', 'ok');
try(')', 'line 1, column 1: unexpected )');
try('())', 'line 1, column 3: unexpected )');
try("()\n  }", 'line 2, column 3: unexpected }');
try('(]', 'line 1, column 2: expected ) but found ]');
try('([)]', 'line 1, column 3: expected ] but found )');
try("{\n\t(\n\t}\n", 'line 3, column 2: expected ) but found }');
try('{)(}', 'line 1, column 2: expected } but found )');
try('(', 'line 1, column 1: ( is never closed');
try('([]', 'line 1, column 1: ( is never closed');
try('([', 'line 1, column 2: [ is never closed');
try("a {\n b (\n c [\n ]\n", 'line 2, column 4: ( is never closed');
try("\n\n[\n\n", 'line 3, column 1: [ is never closed');

try('"("', 'ok');
try('("(")', 'ok');
try('(")")', 'ok');
try('"a\\")" ', 'ok');
try('"\\\\" )', 'line 1, column 6: unexpected )');
try('"\\\\\\")"', 'ok');
try("\"(\n(\" ]", 'line 2, column 4: unexpected ]');
try("\"\\\n\" ]", 'line 2, column 3: unexpected ]');
try('"" (', 'line 1, column 4: ( is never closed');
try('"', 'line 1, column 1: string is never closed');
try('( "abc)', 'line 1, column 3: string is never closed');
try("(\n \"a\n\\\"", 'line 2, column 2: string is never closed');
try('"abc\\', 'line 1, column 1: string is never closed');
try('"a" "b', 'line 1, column 5: string is never closed');
try('] "', 'line 1, column 1: unexpected ]');
try("'('", 'line 1, column 2: ( is never closed');
try('\\"("', 'ok');

try('# (', 'ok');
try("( # )\n)", 'ok');
try("# it's \"quoted\n()", 'ok');
try("# \"\n)", 'line 2, column 1: unexpected )');
try('"#" )', 'line 1, column 5: unexpected )');
try("\"# \n\" ( # \"", 'line 2, column 3: ( is never closed');
try("#\\\n(", 'line 2, column 1: ( is never closed');
try("##\n#\n[ # ]", 'line 3, column 1: [ is never closed');

my $deep = '([{' x 2000 . '}])' x 2000;
is('check of 6000 nested brackets', scalar Brackets::check($deep), 'ok');
is('check of a long string', scalar Brackets::check('(' . '"' . 'a(\\"' x 20000 . '")'), 'ok');

if ($failures) {
    print "$failures failed\n";
    exit 1;
}
open my $out, '>', '.passed' or die;
print $out "passed $token";
close $out or die;
print "all passed\n";
