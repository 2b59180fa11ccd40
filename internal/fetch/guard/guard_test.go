package guard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func prefixes(list ...string) []netip.Prefix {
	allow, err := ParseAllow(list)
	if err != nil {
		panic(err)
	}
	return allow
}

// noDial makes a guard that never connects; calls counts what it would have
// connected to.
func noDial(calls *atomic.Int32, allow ...string) *Guard {
	g := New(prefixes(allow...))
	g.Watch = func(string, string) error {
		calls.Add(1)
		return errors.New("not dialled in tests")
	}
	return g
}

func TestDialRefusesWhatIsNotPublic(t *testing.T) {
	for addr, class := range map[string]string{
		"127.0.0.1:80": "loopback", "0.0.0.0:80": "this machine", "10.0.0.1:443": "private network", "172.31.255.255:80": "private network", "192.168.1.1:80": "private network",
		"100.64.0.1:80": "no address of the public", "169.254.1.1:80": "no address of the public", "169.254.169.254:80": "no address of the public", "168.63.129.16:80": "no address of the public", "100.100.100.200:80": "no address of the public",
		"192.0.0.192:80": "no address of the public", "192.0.0.1:80": "no address of the public", "192.0.2.1:80": "no address of the public", "198.18.0.1:80": "no address of the public", "224.0.0.1:80": "no address of the public",
		"240.0.0.1:80": "no address of the public", "255.255.255.255:80": "no address of the public",
		"[::1]:80": "loopback", "[::]:80": "this machine", "[::ffff:127.0.0.1]:80": "loopback", "[::127.0.0.1]:80": "no address of the public", "[64:ff9b::7f00:1]:80": "no address of the public",
		"[64:ff9b:1::1]:80": "no address of the public", "[2002:7f00:1::]:80": "no address of the public", "[2001:0:7f00:1::]:80": "no address of the public", "[fe80::1]:80": "no address of the public", "[fc00::1]:80": "private network",
		"[fd00:ec2::254]:80": "private network", "[fec0::1]:80": "no address of the public", "[ff02::1]:80": "no address of the public", "[100::1]:80": "no address of the public", "[2001:db8::1]:80": "no address of the public",
		"[5f00::1]:80": "no address of the public", "[3fff::1]:80": "no address of the public",
		"8.8.8.8:22": "port 22", "[2606:4700::1111]:8080": "port 8080", "8.8.8.8:0": "port 0",
	} {
		var calls atomic.Int32
		_, err := noDial(&calls).DialContext(t.Context(), "tcp", addr)
		var e *marchwarden.Error
		if !errors.As(err, &e) || e.Code != marchwarden.CodeDenied || !strings.Contains(e.Message, class) || e.Hint == "" || calls.Load() != 0 {
			t.Errorf("dialling %s gave %v after %d connections, want %v, %q and a hint", addr, err, calls.Load(), marchwarden.CodeDenied, class)
		}
		if err := New(nil).CheckURL(&url.URL{Scheme: "http", Host: addr}); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
			t.Errorf("CheckURL(%s) gave %v", addr, err)
		}
	}
}

func TestDialAllows(t *testing.T) {
	for _, test := range []struct{ addr, allow string }{
		{"8.8.8.8:80", ""}, {"[2606:4700::1111]:443", ""}, {"[::ffff:8.8.8.8]:80", ""},
		{"127.0.0.1:9999", "127.0.0.0/8"}, {"[::ffff:127.0.0.1]:9999", "127.0.0.1"}, {"10.1.2.3:22", "10.1.2.3"}, {"[fd00::1]:8080", "fd00::/8"},
		{"168.63.129.16:80", "168.63.129.16"}, {"8.8.8.8:8080", "8.8.8.0/24"},
	} {
		var calls atomic.Int32
		g := noDial(&calls, test.allow)
		if _, err := g.DialContext(t.Context(), "tcp", test.addr); calls.Load() != 1 {
			t.Errorf("dialling %s with %q open gave %v after %d connections, want one", test.addr, test.allow, err, calls.Load())
		}
		if err := g.CheckURL(&url.URL{Scheme: "http", Host: test.addr}); err != nil {
			t.Errorf("CheckURL(%s) gave %v", test.addr, err)
		}
	}
	var calls atomic.Int32
	if _, err := noDial(&calls, "127.0.0.0/8").DialContext(t.Context(), "tcp", "10.0.0.1:80"); calls.Load() != 0 || marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("opening one range opened another: %v", err)
	}
}

func TestOtherNetworksAreRefused(t *testing.T) {
	g := New(prefixes("0.0.0.0/0"))
	for _, network := range []string{"udp", "udp4", "unix", "ip4:icmp", ""} {
		if _, err := g.DialContext(t.Context(), network, "127.0.0.1:80"); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
			t.Errorf("network %q gave %v", network, err)
		}
	}
	if err := g.control("udp4", "127.0.0.1:80", nil); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("control gave %v", err)
	}
	if err := g.control("tcp4", "localhost:80", nil); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("control of a name gave %v", err)
	}
}

func TestCheckURL(t *testing.T) {
	for raw, open := range map[string]bool{
		"http://example.org/": true, "https://example.org:443/": true, "https://example.org:80/": true,
		"https://example.org:8443/": false, "ftp://example.org/": false, "file:///etc/passwd": false, "http://u@example.org/": false, "http:example.org": false,
		"http://127.0.0.1/": false, "http://[::1]/": false, "http://[fe80::1%25lo]/": false, "http:///a": false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		err = New(nil).CheckURL(u)
		if open != (err == nil) || err != nil && marchwarden.CodeOf(err) != marchwarden.CodeDenied {
			t.Errorf("CheckURL(%s) gave %v, want open %v", raw, err, open)
		}
	}
	if err := New(prefixes("10.0.0.0/8")).CheckURL(&url.URL{Scheme: "http", Host: "intranet:8080"}); err != nil {
		t.Errorf("a name that may lead to an open address is refused: %v", err)
	}
	if err := New(nil).CheckURL(&url.URL{Scheme: "http", Host: "example.org:70000"}); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("port 70000 gave %v", err)
	}
}

func TestParseAllow(t *testing.T) {
	got, err := ParseAllow([]string{" 10.0.0.1/8 , 192.168.1.5", "", "fd00::1/8 ::1", "::ffff:10.1.0.0/112", "::ffff:1.2.3.4"})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, p := range got {
		text = append(text, p.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.0/8", "192.168.1.5/32", "fd00::/8", "::1/128", "10.1.0.0/16", "1.2.3.4/32"}, text); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"10.0.0/8", "localhost", "10.0.0.1/33", "fe80::1%lo", "::ffff:1.2.3.4/90", "*"} {
		_, err := ParseAllow([]string{"10.0.0.1", bad})
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(err.Error(), `"`+bad+`"`) || marchwarden.HintOf(err) == "" {
			t.Errorf("ParseAllow(%q) gave %v", bad, err)
		}
	}
}

func TestTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			w.Header().Set("X-Large", strings.Repeat("x", MaxHeaderBytes+1))
		}
	}))
	defer server.Close()
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")

	shut := New(nil).Transport()
	defer shut.CloseIdleConnections()
	_, err := (&http.Client{Transport: shut}).Get(server.URL)
	var e *marchwarden.Error
	if !errors.As(err, &e) || marchwarden.CodeOf(err) != marchwarden.CodeDenied || !strings.Contains(e.Message, "loopback") {
		t.Errorf("the client gave %v, want %v", err, marchwarden.CodeDenied)
	}

	open := New(prefixes("127.0.0.0/8")).Transport()
	defer open.CloseIdleConnections()
	client := &http.Client{Transport: open}
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp, err := client.Get(server.URL + "/large"); err == nil {
		resp.Body.Close()
		t.Error("a header over the limit was read")
	}
}

func TestNamesAreJudgedByWhatTheyResolveTo(t *testing.T) {
	var calls atomic.Int32
	g := noDial(&calls)
	if _, err := g.DialContext(t.Context(), "tcp", "localhost:80"); marchwarden.CodeOf(err) != marchwarden.CodeDenied || calls.Load() != 0 {
		t.Errorf("localhost gave %v after %d connections", err, calls.Load())
	}
	asked := errors.New("asked")
	g = New(nil)
	g.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, asked }}
	if _, err := g.DialContext(t.Context(), "tcp", "name.invalid.example:80"); err == nil || !strings.Contains(err.Error(), asked.Error()) {
		t.Errorf("the resolver was not used: %v", err)
	}
}
