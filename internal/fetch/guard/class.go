package guard

import "net/netip"

// azureWire answers every virtual machine of one cloud with its settings, from
// an address that looks public.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// classes names ranges for people, the narrower before the wider. It decides
// nothing: what it misses is refused all the same.
var classes = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud metadata service"},
	{azureWire, "a cloud metadata service"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a cloud metadata service"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud metadata service"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address (this machine)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address (this machine)"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a shared address of a provider's network"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address (this machine)"},
	{netip.MustParsePrefix("::1/128"), "a loopback address (this machine)"},
	{netip.MustParsePrefix("::/96"), "an IPv4 address in an outdated IPv6 form"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address behind NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address behind NAT64"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address behind Teredo"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address behind 6to4"},
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("100::/64"), "a discard-only address"},
	{netip.MustParsePrefix("fc00::/7"), "a private network address (unique local)"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a private network address (site-local)"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

// class says what kind of address a refused one is.
func class(addr netip.Addr) string {
	addr = addr.WithZone("")
	for _, c := range classes {
		if c.prefix.Contains(addr) {
			return c.name
		}
	}
	return "a reserved address, not public internet"
}
