package Cipher;
use strict;
use warnings;

my @low = ('a' .. 'z');
my @high = ('A' .. 'Z');
my %place;
@place{@low, @high} = (0 .. 25) x 2;

sub vigenere {
    my ($text, $key, $decode) = @_;
    die "the key must be letters\n" if $key eq '' || $key =~ /[^A-Za-z]/;
    my @key = map { $decode ? -$place{$_} : $place{$_} } split //, $key;
    return join '', map { step($_, \@key) } split //, $text;
}

sub step {
    my ($c, $key) = @_;
    return $c unless exists $place{$c};
    my $by = shift @$key;
    push @$key, $by;
    my $set = $c =~ /[a-z]/ ? \@low : \@high;
    return $set->[($place{$c} + $by) % 26];
}

sub caesar {
    my ($text, $shift) = @_;
    my $by = [$shift];
    return join '', map { step($_, $by) } split //, $text;
}

sub crack {
    my @count = (0) x 26;
    my $best;
    for (split //, $_[0]) {
        $count[$place{$_}]++ if exists $place{$_};
    }
    for my $i (0 .. 25) {
        $best = $i if $count[$i] && (!defined $best || $count[$i] > $count[$best]);
    }
    return defined $best ? ($best + 26 - 4) % 26 : undef;
}

1;
