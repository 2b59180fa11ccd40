package httpdoor

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// hostPort is a name or address in lower case, without brackets and final dot, and a port, or "".
type hostPort struct{ name, port string }

// splitHost takes a Host header apart. Not ok if it is none.
func splitHost(s string) (hostPort, bool) {
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (strings.HasSuffix(s[:i], "]") || strings.Count(s, ":") == 1) {
		name, port = s[:i], s[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return hostPort{}, false
		}
	}
	bracketed := strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
	if bracketed {
		name = name[1 : len(name)-1]
	}
	if strings.Contains(name, ":") != bracketed || strings.ContainsAny(name, "/\\@?#*[] \t,%") {
		return hostPort{}, false
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return hostPort{name, port}, name != ""
}

// policy says which names a server may be called by, apart from loopback and the address that a
// connection came to, and from which pages in a browser. It is safe for concurrent use.
//
// A page in a browser can make a name of its own point to this machine and then talk
// to it as if it were its own server (DNS rebinding). It cannot make the browser put
// another name than its own into Host.
//
// http.CrossOriginProtection is not enough: it is made against forged forms and so lets every GET pass, and any
// Origin under a Sec-Fetch-Site that says same-origin; it does not know that Host may be forged by DNS, nor the
// scheme. Here a GET opens a stream of answers, so a client that sends an Origin must be allowed, whatever the method
// and whatever else is claimed.
type policy struct {
	hosts   []hostPort
	trusted map[string]bool // origins
}

// newPolicy reads names and origins as Config has them. CodeInvalid names the field that is wrong.
func newPolicy(names, origins []string) (*policy, error) {
	p := &policy{trusted: map[string]bool{}}
	for _, s := range names {
		h, ok := splitHost(s)
		if !ok {
			return nil, invalid("hosts", "%q is not a name with or without a port, such as research.example.org", s)
		}
		p.hosts = append(p.hosts, h)
		at := h.name
		if strings.Contains(at, ":") {
			at = "[" + at + "]"
		}
		for scheme, usual := range defaultPorts {
			origin := scheme + "://" + at
			if h.port != "" && h.port != usual {
				origin += ":" + h.port
			}
			p.trusted[origin] = true
		}
	}
	for _, s := range origins {
		s = strings.ToLower(s)
		scheme, host, _ := strings.Cut(s, "://")
		if _, plain := splitHost(host); !plain || defaultPorts[scheme] == "" {
			return nil, invalid("origins", "%q is not an origin, such as https://app.example.org", s)
		}
		p.trusted[s] = true
	}
	return p, nil
}

// CheckHosts says what is wrong with Config.Hosts and Config.Origins, without making a door of them.
func CheckHosts(names, origins []string) error {
	_, err := newPolicy(names, origins)
	return err
}

// knows reports whether a request is for a name that the server is known by.
func (p *policy) knows(r *http.Request) bool {
	h, ok := splitHost(r.Host)
	if !ok {
		return false
	}
	if access.IsLoopback(h.name) || slices.ContainsFunc(p.hosts, func(known hostPort) bool { // without a port by either scheme
		return known.name == h.name && (known.port == "" || known.port == h.port || h.port == "" && (known.port == "443" || known.port == "80"))
	}) {
		return true
	}
	// The address that the connection came to: a page served under it is from here.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	asked, err2 := netip.ParseAddr(h.name)
	return err == nil && err2 == nil && asked.Unmap() == to.Addr().Unmap().WithZone("") && cmp.Or(h.port, defaultPorts[schemeOf(r)]) == strconv.Itoa(int(to.Port()))
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// foreign says what is wrong with the origin of a request, in words that any caller may read; "" if
// nothing is. Programs other than browsers send no origin.
func (p *policy) foreign(r *http.Request, hostOK bool) string {
	all, site := r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case len(all) > 1:
		return "the request has several origins"
	case len(all) == 1 && p.trusted[all[0]]:
	case len(all) == 1 && !(hostOK && sameOrigin(all[0], r)):
		return "the request is from a page of an origin that may not call this server"
	case site != "" && site != "none" && site != "same-origin":
		return "a browser sends this for a page of another site"
	}
	return ""
}

// sameOrigin reports whether a page of this origin is from where the request goes, maybe by a TLS proxy.
func sameOrigin(origin string, r *http.Request) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	if !ok || scheme != "https" && (scheme != "http" || r.TLS != nil) {
		return false
	}
	from, ok := splitHost(rest)
	to, ok2 := splitHost(r.Host)
	if !ok || !ok2 || from.name != to.name {
		return false
	}
	return cmp.Or(from.port, defaultPorts[scheme]) == cmp.Or(to.port, defaultPorts[scheme])
}

const (
	corsHeaders = "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
	corsExposed = "Mcp-Session-Id, WWW-Authenticate"
	corsMaxAge  = "600"
)

// answerCORS tells a browser that an allowed origin may read the answer, and answers a preflight.
func answerCORS(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", corsExposed)
	}
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Allow", strings.Join(methods, ", "))
	if r.Header.Get("Origin") != "" {
		h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", corsHeaders)
		h.Set("Access-Control-Max-Age", corsMaxAge)
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
