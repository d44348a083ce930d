package RunLength;
use strict;
use warnings;

sub encode {
    my ($text) = @_;
    my ($out, $from) = ('', 0);
    while ($text =~ /\G(.)/gcs) {
        my $c = $1;
        $text =~ /\G\Q$c\E+/gc;
        my $n = pos($text) - $from;
        $from = pos $text;
        $out .= $n if $n > 1;
        $out .= '\\' if $c =~ /[0-9\\]/;
        $out .= $c;
    }
    return $out;
}

sub decode {
    my ($code) = @_;
    my $out = '';
    while ($code =~ /\G([0-9]*)(?:\\([0-9\\])|([^0-9\\]))/gc) {
        my ($n, $c) = ($1, defined $2 ? $2 : $3);
        die "bad count\n" if $n ne '' && ($n =~ /^0/ || $n == 1 || length $n > 9);
        die "two runs of the same character\n" if $out ne '' && substr($out, -1) eq $c;
        $out .= $c x ($n || 1);
    }
    die "malformed\n" if (pos($code) || 0) < length $code;
    return $out;
}

1;
