package RunLength;
use strict;
use warnings;

sub piece {
    my ($c, $n) = @_;
    return '' unless $n;
    return ($n > 1 ? $n : '') . ($c =~ /[0-9\\]/ ? "\\$c" : $c);
}

sub encode {
    my $out = '';
    my ($last, $n) = ('', 0);
    for my $c (split //, shift) {
        if ($n && $c eq $last) {
            $n++;
        } else {
            $out .= piece($last, $n);
            ($last, $n) = ($c, 1);
        }
    }
    return $out . piece($last, $n);
}

sub decode {
    my ($code) = @_;
    my @c = split //, $code;
    my $out = '';
    while (@c) {
        my $n = '';
        $n .= shift @c while @c && $c[0] =~ /[0-9]/;
        my $c = shift @c;
        $c = shift @c if defined $c && $c eq '\\';
        die "something is missing at the end\n" unless defined $c;
        $out .= $c x ($n eq '' ? 1 : $n);
    }
    return $out;
}

1;
