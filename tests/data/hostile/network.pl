# Knocks at every door of the host's network. Names each that opens, or that a packet could leave by.
use Socket qw(:DEFAULT pack_sockaddr_in6 IN6ADDR_LOOPBACK MSG_NOSIGNAL);

sub knock {
    my ($door, $domain, $type, $address) = @_;
    socket(my $socket, $domain, $type, 0) or return;
    connect($socket, $address) and send($socket, "x", MSG_NOSIGNAL) and print "$door\n";
}

my $port = $ENV{PORT};
knock("the host's loopback", AF_INET, SOCK_STREAM, pack_sockaddr_in($port, INADDR_LOOPBACK));
knock("the host's loopback by IPv6", AF_INET6, SOCK_STREAM, pack_sockaddr_in6($port, IN6ADDR_LOOPBACK));
knock("an address outside", AF_INET, SOCK_STREAM, pack_sockaddr_in(80, inet_aton("192.0.2.1")));
knock("a datagram outside", AF_INET, SOCK_DGRAM, pack_sockaddr_in(53, inet_aton("192.0.2.1")));
knock("a broadcast", AF_INET, SOCK_DGRAM, pack_sockaddr_in(67, INADDR_BROADCAST));
knock("the metadata service of a cloud", AF_INET, SOCK_STREAM, pack_sockaddr_in(80, inet_aton("169.254.169.254")));
knock("an abstract socket", AF_UNIX, SOCK_STREAM, pack("S a*", AF_UNIX, "\0$ENV{ABSTRACT}"));
knock("a socket by its path", AF_UNIX, SOCK_STREAM, pack("S a*", AF_UNIX, "$ENV{SOCKET}\0"));

# To its own loopback, if it has one: nobody of the host may get it.
socket(my $socket, AF_INET, SOCK_DGRAM, 0) and send($socket, "x", 0, pack_sockaddr_in($port, INADDR_LOOPBACK));

my @interfaces = map { /^\s*(\w+):/ ? $1 : () } do { open(my $list, "<", "/proc/net/dev"); <$list> };
print "interfaces: @interfaces\n" if "@interfaces" ne "lo";
