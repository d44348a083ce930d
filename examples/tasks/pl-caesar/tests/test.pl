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

require './Cipher.pm';

sub caesar {
    my ($text, $shift, $want) = @_;
    is('caesar(' . show($text) . ", $shift)", Cipher::caesar($text, $shift), $want);
}

sub vigenere {
    my ($plain, $key, $code) = @_;
    my $args = show($plain) . ', ' . show($key);
    is("vigenere($args)", Cipher::vigenere($plain, $key), $code);
    is("vigenere($args, 0)", Cipher::vigenere($plain, $key, 0), $code);
    is('vigenere(' . show($code) . ', ' . show($key) . ', 1)',
        Cipher::vigenere($code, $key, 1), $plain);
}

caesar('abc', 1, 'bcd');
caesar('xyz', 3, 'abc');
caesar('XYZ', 3, 'ABC');
caesar('Hello, World!', 13, 'Uryyb, Jbeyq!');
caesar('abc', 0, 'abc');
caesar('abc', 26, 'abc');
caesar('abc', 27, 'bcd');
caesar('abc', -1, 'zab');
caesar('ABC', -27, 'ZAB');
caesar('aZ', 1000, 'mL');
caesar('aZ', -1000, 'oN');
caesar('', 5, '');
caesar("a b\nc\n", 1, "b c\nd\n");
caesar('0123 @[`{', 7, '0123 @[`{');
caesar("\xe9a\xc9\x{100}", 2, "\xe9c\xc9\x{100}");
my $all = join '', 'a' .. 'z', 'A' .. 'Z';
for my $n (-60 .. 60) {
    is("caesar there and back by $n", Cipher::caesar(Cipher::caesar($all, $n), -$n), $all);
}
my $kept = 'keep';
Cipher::caesar($kept, 3);
is('the argument of caesar afterwards', $kept, 'keep');

vigenere('attackatdawn', 'lemon', 'lxfopvefrnhr');
vigenere('ATTACKATDAWN', 'lemon', 'LXFOPVEFRNHR');
vigenere('Attack at dawn!', 'LeMoN', 'Lxfopv ef rnhr!');
vigenere('abc', 'a', 'abc');
vigenere('abc', 'Z', 'zab');
vigenere('a-b c', 'bcd', 'b-d f');
vigenere('zz', 'bcdefgh', 'ab');
vigenere('', 'key', '');
vigenere("1\n2\n", 'key', "1\n2\n");
for my $key ('', 'ab1', 'a b', "abc\n", '-', "\xe9") {
    my $got = eval { Cipher::vigenere('text', $key) };
    is('vigenere with the key ' . show($key), defined $got ? $got : 'died', 'died');
}

is("crack('e')", Cipher::crack('e'), 0);
is("crack('f')", Cipher::crack('f'), 1);
is("crack('D')", Cipher::crack('D'), 25);
is("crack('a')", Cipher::crack('a'), 22);
is("crack('aabb')", Cipher::crack('aabb'), 22);
is("crack('zzAaZz')", Cipher::crack('zzAaZz'), 21);
is("crack('xY')", Cipher::crack('xY'), 19);
is("crack('ee fFf')", Cipher::crack('ee fFf'), 1);
is("crack('')", scalar Cipher::crack(''), undef);
is("crack('12 !!!!')", scalar Cipher::crack('12 !!!!'), undef);
my $text = 'Never before were there these seven green trees here, she remembered.';
for my $n (0 .. 25) {
    is("crack(caesar(text, $n))", Cipher::crack(Cipher::caesar($text, $n)), $n);
}

if ($failures) {
    print "$failures failed\n";
    exit 1;
}
open my $out, '>', '.passed' or die;
print $out "passed $token";
close $out or die;
print "all passed\n";
