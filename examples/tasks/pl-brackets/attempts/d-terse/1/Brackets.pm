package Brackets;
use strict;
use warnings;

sub place {
    my ($text, $offset) = @_;
    my $before = substr $text, 0, $offset;
    my $line = 1 + ($before =~ tr/\n//);
    $before =~ s/.*\n//s;
    return sprintf 'line %d, column %d', $line, 1 + length $before;
}

sub check {
    my ($text) = @_;
    my @stack;
    while ($text =~ / "(?:[^"\\]|\\.)*+("?) | \#[^\n]* | ([(\[{]) | ([)\]}]) /gsx) {
        my ($quote, $open, $close, $at) = ($1, $2, $3, $-[0]);
        if (defined $quote) {
            return place($text, $at) . ': string is never closed' if $quote eq '';
        } elsif (defined $open) {
            (my $want = $open) =~ tr/([{/)]}/;
            push @stack, [$at, $open, $want];
        } elsif (defined $close) {
            my $top = pop @stack or return place($text, $at) . ": unexpected $close";
            next if $top->[2] eq $close;
            return place($text, $at) . ": expected $top->[2] but found $close";
        }
    }
    return 'ok' unless @stack;
    my ($at, $open) = @{ $stack[-1] };
    return place($text, $at) . ": $open is never closed";
}

1;
