package Brackets;
use strict;
use warnings;

my %close = ('(' => ')', '[' => ']', '{' => '}');

sub check {
    my ($text) = @_;
    my ($line, $column) = (1, 0);
    my ($in, $escaped, $string_at) = ('code', 0, '');
    my @open;
    for my $c (split //, $text) {
        $column++;
        my $at = "line $line, column $column";
        if ($c eq "\n") {
            ($line, $column) = ($line + 1, 0);
        }
        if ($in eq 'comment') {
            $in = 'code' if $c eq "\n";
        } elsif ($in eq 'string') {
            $in = 'code' if $c eq '"' && !$escaped;
            $escaped = $c eq '\\';
        } elsif ($c eq '"') {
            ($in, $string_at) = ('string', $at);
        } elsif ($c eq '#') {
            $in = 'comment';
        } elsif ($close{$c}) {
            push @open, [$close{$c}, $at, $c];
        } elsif ($c =~ /[])}]/) {
            my $top = pop @open;
            return "$at: unexpected $c" unless $top;
            return "$at: expected $top->[0] but found $c" if $top->[0] ne $c;
        }
    }
    return "$string_at: string is never closed" if $in eq 'string';
    return "$open[-1][1]: $open[-1][2] is never closed" if @open;
    return 'ok';
}

1;
