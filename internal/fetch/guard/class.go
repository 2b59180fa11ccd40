package guard

import (
	"net/netip"
	"strings"
)

// azureWire answers every virtual machine of one cloud with its settings, from
// an address that looks public.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// classes names ranges for people, the narrower before the wider. It decides
// nothing: what it misses is refused all the same.
var classes = []struct{ name, prefixes string }{
	{"a cloud metadata service", "169.254.169.254/32 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32 fd00:ec2::254/128 fd20:ce::254/128"},
	{"an unspecified address (this machine)", "0.0.0.0/8 ::/128"},
	{"a loopback address (this machine)", "127.0.0.0/8 ::1/128"},
	{"a private network address", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"},
	{"a shared address of a provider's network", "100.64.0.0/10"},
	{"a link-local address", "169.254.0.0/16 fe80::/10"},
	{"a documentation address", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
	{"a benchmarking address", "198.18.0.0/15"},
	{"a multicast address", "224.0.0.0/4 ff00::/8"},
	{"the broadcast address", "255.255.255.255/32"},
	{"an IPv4 address in an outdated IPv6 form", "::/96"},
	{"an IPv4 address behind NAT64", "64:ff9b::/96 64:ff9b:1::/48"},
	{"an IPv4 address behind Teredo", "2001::/32"},
	{"an IPv4 address behind 6to4", "2002::/16"},
	{"a discard-only address", "100::/64"},
	{"a private network address (unique local)", "fc00::/7"},
	{"a private network address (site-local)", "fec0::/10"},
}

// class says what kind of address a refused one is.
func class(addr netip.Addr) string {
	addr = addr.WithZone("")
	for _, c := range classes {
		for prefix := range strings.FieldsSeq(c.prefixes) {
			if netip.MustParsePrefix(prefix).Contains(addr) {
				return c.name
			}
		}
	}
	return "a reserved address, not public internet"
}
