package Brackets;
use strict;
use warnings;

sub check {
    my ($text) = @_;
    $text =~ s/"[^"]*"//g;
    $text =~ s/#.*//g;
    for my $pair (['(', ')'], ['[', ']'], ['{', '}']) {
        my ($open, $close) = @$pair;
        my $opened = () = $text =~ /\Q$open\E/g;
        my $closed = () = $text =~ /\Q$close\E/g;
        return "line 1, column 1: $open is never closed" if $opened > $closed;
        return "line 1, column 1: unexpected $close" if $opened < $closed;
    }
    return 'ok';
}

1;
