// Package guard decides which network addresses pages may be fetched from, at
// the moment a connection is made, when the name has been resolved and nothing
// can change any more. What is not public internet (this machine, the local
// network, the metadata services of clouds, reserved ranges) is refused unless
// the user opened it on purpose.
//
// It knows nothing of pages, robots.txt or how much is read; that is package
// web's work. Calls to services that the user configured do not pass here.
package guard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The limits of a connection. A page has a time limit of its own on top.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	headerTimeout    = 25 * time.Second

	// MaxHeaderBytes is the largest header of a response.
	MaxHeaderBytes = 256 << 10
)

// azureWire answers every virtual machine of one cloud with its settings, from
// an address that looks public.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// Guard makes connections to addresses that are allowed and to no others. It is
// safe for concurrent use.
type Guard struct {
	// Resolver resolves names; nil is the system's.
	Resolver *net.Resolver
	// Watch, if there is one, is called with every resolved address that is allowed, before
	// it is connected to: for audits and tests. An error keeps the connection from being
	// made. Watch must be safe for concurrent use.
	Watch func(network, address string) error

	allow  []netip.Prefix
	public *ssrf.Guardian
}

// New makes a Guard. Addresses in allow may be connected to on every port,
// whatever they are; all others must be public and on port 80 or 443. Its fields may be
// set before the first connection.
func New(allow []netip.Prefix) *Guard {
	return &Guard{allow: slices.Clone(allow), public: ssrf.New(ssrf.WithDeniedV4Prefixes(azureWire))}
}

// ParseAllow reads the list of addresses that a user opens: CIDRs and single
// addresses, an entry may hold several apart by commas or spaces. A bad one is
// CodeInvalid and named.
func ParseAllow(list []string) ([]netip.Prefix, error) {
	var allow []netip.Prefix
	for _, entry := range list {
		for _, item := range strings.FieldsFunc(entry, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
			prefix, ok := parsePrefix(item)
			if !ok {
				return nil, &marchwarden.Error{
					Code: marchwarden.CodeInvalid, Field: "fetch_allow", Message: fmt.Sprintf("%q is neither an IP address nor a CIDR", item),
					Hint: "write addresses such as 10.1.2.3, 192.168.0.0/16 or fd00::/8, apart by commas",
				}
			}
			allow = append(allow, prefix)
		}
	}
	return allow, nil
}

// parsePrefix reads an address as the prefix that holds it alone. IPv4 written as
// IPv6 becomes IPv4, as connections see it.
func parsePrefix(s string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < 96 {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), true
}

// DialContext connects as net.Dialer does, to what is allowed. A refusal is a
// *marchwarden.Error with CodeDenied that names the address and its class; it is
// found by errors.As in what an http.Client returns. Networks other than TCP are
// refused. The caller closes the connection.
func (g *Guard) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "network %q is refused: pages are fetched over TCP", network)
	}
	d := net.Dialer{Timeout: dialTimeout, Control: g.control, Resolver: g.Resolver}
	return d.DialContext(ctx, network, addr)
}

// control is the check itself: the dialler calls it with the resolved address of
// every attempt, after the socket was made and before it connects.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return marchwarden.Errorf(marchwarden.CodeDenied, "network %q is refused: pages are fetched over TCP", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeDenied, "address %q is refused: it cannot be read", address)
	}
	if err := g.check(to); err != nil {
		return err
	}
	if g.Watch != nil {
		return g.Watch(network, address)
	}
	return nil
}

// check asks the user's list first and the public rules after it.
func (g *Guard) check(to netip.AddrPort) error {
	addr := to.Addr().Unmap()
	if bare := addr.WithZone(""); to.Port() != 0 && slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(bare) }) {
		return nil
	}
	if err := g.public.SafeAddr(addr); err != nil {
		return &marchwarden.Error{
			Code: marchwarden.CodeDenied, Message: fmt.Sprintf("%s is refused: it is %s", addr, class(addr)), Hint: openHint,
		}
	}
	return checkPort(addr.String(), to.Port())
}

// class says what kind of address a refused one is.
func class(addr netip.Addr) string {
	switch {
	case addr.IsLoopback(), addr.IsUnspecified():
		return "a loopback address (this machine)"
	case addr.IsPrivate():
		return "a private network address"
	}
	return "no address of the public internet"
}

const openHint = "an address is opened on purpose by naming it in MARCHWARDEN_FETCH_ALLOW"

func checkPort(host string, port uint16) error {
	if port == 80 || port == 443 {
		return nil
	}
	return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: fmt.Sprintf("port %d of %s is refused: pages are fetched from ports 80 and 443", port, host), Hint: openHint}
}

// CheckURL refuses, with CodeDenied, what can be told to be forbidden from an
// address as written: schemes other than http and https, user names, no host,
// addresses and ports that DialContext would refuse. It resolves nothing, so a
// name that passes here is not allowed yet.
func (g *Guard) CheckURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return marchwarden.Errorf(marchwarden.CodeDenied, "scheme %q is refused: pages are fetched over http and https", u.Scheme)
	}
	host := u.Hostname()
	if u.User != nil || u.Opaque != "" || host == "" {
		return marchwarden.Errorf(marchwarden.CodeDenied, "an address needs a host and must not hold a user name or password")
	}
	port := uint16(80)
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return marchwarden.Errorf(marchwarden.CodeDenied, "port %q is refused: it is no port", p)
		}
		port = uint16(n)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.check(netip.AddrPortFrom(addr, port))
	}
	if len(g.allow) > 0 {
		return nil // the name may lead to an address that is open on every port
	}
	return checkPort(strconv.Quote(host), port)
}

// Transport makes an HTTP transport whose connections are the guard's. It uses
// no proxy, because the guard would see the proxy's address instead of the
// page's, and leaves bodies compressed, so that the reader can bound what they
// become.
//
// Connections are kept open for the next page of the same host. That is safe: an
// open connection stays with the address that was checked, whatever the name
// resolves to by now, and it is never used for another host. The caller closes
// idle connections when done.
func (g *Guard) Transport() *http.Transport {
	return &http.Transport{
		DialContext:            g.DialContext,
		ForceAttemptHTTP2:      true, // a dialler of our own switches it off otherwise
		DisableCompression:     true,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: MaxHeaderBytes,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}
}
