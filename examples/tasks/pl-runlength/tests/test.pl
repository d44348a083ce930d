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

require './RunLength.pm';

sub both {
    my ($text, $code) = @_;
    is('encode(' . show($text) . ')', RunLength::encode($text), $code);
    my $got = eval { RunLength::decode($code) };
    is('decode(' . show($code) . ')', defined $got ? $got : "died: $@", $text);
}

both('', '');
both('a', 'a');
both('ab', 'ab');
both('aa', '2a');
both('aaab', '3ab');
both('abbb', 'a3b');
both('aabbaa', '2a2b2a');
both('abab', 'abab');
both('aAaA', 'aAaA');
both('a' x 10, '10a');
both('a' x 123 . 'b', '123ab');
both('1', '\\1');
both('11', '2\\1');
both('12', '\\1\\2');
both('a1', 'a\\1');
both('2a', '\\2a');
both('0' x 30, '30\\0');
both('\\', '\\\\');
both('\\\\\\', '3\\\\');
both('x\\', 'x\\\\');
both('\\1', '\\\\\\1');
both("\n", "\n");
both("\n\n", "2\n");
both("a\n", "a\n");
both("aa\n\n\nb", "2a3\nb");
both("1\n", "\\1\n");
both('  ', '2 ');
both('..**', '2.2*');
both("\0\0", "2\0");
both("\xe9\xe9", "2\xe9");
both("\x{263a}\x{263a}-", "2\x{263a}-");
both('z' x 70000, '70000z');

for my $code ('1', '12', 'a3', '0a', '1a', '00a', '02a', '007b', '\\', 'a\\', '3\\', '\\a', '2\\b',
    "\\\n", 'aa', '2a3a', 'a2a', '2aa', '2\\1\\1', '\\\\\\\\', "\n\n", "3\n\n", "2a\n2", '\\1\\1',
    "2\x{663}\x{663}") {
    my $got = eval { RunLength::decode($code) };
    is('decode(' . show($code) . ')', defined $got ? $got : 'died', 'died');
}

my $seed = 3;
for my $turn (1 .. 500) {
    my $text = '';
    for (1 .. $turn % 12) {
        $seed = ($seed * 1103515245 + 12345) % 2**31;
        my @set = ('a', '1', '0', '\\', "\n", ' ');
        $text .= $set[$seed / 65536 % 6] x (1 + $seed / 4096 % 13);
    }
    my $back = eval { RunLength::decode(RunLength::encode($text)) };
    is('decode(encode(' . show($text) . '))', defined $back ? $back : "died: $@", $text);
}

if ($failures) {
    print "$failures failed\n";
    exit 1;
}
open my $out, '>', '.passed' or die;
print $out "passed $token";
close $out or die;
print "all passed\n";
