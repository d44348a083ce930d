package Cipher;
use strict;
use warnings;

sub turn {
    my ($c, $by) = @_;
    my $a = $c lt 'a' ? ord 'A' : ord 'a';
    return chr($a + (ord($c) - $a + $by) % 26);
}

sub caesar {
    my ($text, $shift) = @_;
    $text =~ s/([A-Za-z])/turn($1, $shift)/ge;
    return $text;
}

sub vigenere {
    my ($text, $key, $decode) = @_;
    die "bad key\n" unless $key =~ /\A[A-Za-z]+\z/;
    my @by = map { ord($_) - ord 'a' } split //, lc $key;
    $text =~ s/([A-Za-z])/
        my $by = $by[$-[0] % @by];
        turn($1, $decode ? -$by : $by)/gex;
    return $text;
}

sub crack {
    my ($text) = @_;
    my %n;
    $n{$_}++ for lc($text) =~ /[a-z]/g;
    return undef unless %n;
    my ($top) = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n;
    return (ord($top) - ord 'e') % 26;
}

1;
