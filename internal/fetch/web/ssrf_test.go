package web

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
)

// resolver starts a name server on loopback that answers every question for
// addresses with what answer returns, valid for no time at all.
func resolver(t testing.TB, answer func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return // closed
			}
			if reply := reply(buf[:n], answer); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		wg.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func reply(query []byte, answer func(name string) []netip.Addr) []byte {
	var msg dnsmessage.Message
	if msg.Unpack(query) != nil || len(msg.Questions) != 1 {
		return nil
	}
	q := msg.Questions[0]
	msg.Header.Response, msg.Additionals = true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	if q.Type == dnsmessage.TypeA {
		for _, addr := range answer(q.Name.String()) {
			msg.Answers = append(msg.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
		}
	}
	packed, err := msg.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// dials records the addresses that were about to be connected to. Only those in
// real are; all others are kept from the network.
type dials struct {
	mu   sync.Mutex
	seen []string
	real string
}

func (d *dials) watch(_, address string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.real != "" && strings.HasPrefix(address, d.real+":") {
		return nil
	}
	d.seen = append(d.seen, address)
	return errors.New("not dialled in tests")
}

// ssrfAddresses reads the forms in which an internal address can be written from
// data that lies beside the repository.
func ssrfAddresses(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(datatest.Path(t, "hostile/ssrf-addresses.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// internalForms are internal addresses in the ways that parsers of addresses read.
func internalForms() []string {
	forms := []string{"[::1]", "[fe80::1]", "[fc00::1]", "localhost", "LocalHost.", "a.localhost"}
	for _, dotted := range []string{"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"} {
		b := netip.MustParseAddr(dotted).As4()
		n := binary.BigEndian.Uint32(b[:])
		high, low := n>>16, n&0xffff
		forms = append(forms, dotted, dotted+".", fmt.Sprint(n), fmt.Sprintf("%#x", n), fmt.Sprintf("0%o", n), fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
			"[::ffff:"+dotted+"]", fmt.Sprintf("[::ffff:%x:%x]", high, low), fmt.Sprintf("[64:ff9b::%x:%x]", high, low), fmt.Sprintf("[2002:%x:%x::]", high, low))
	}
	return forms
}

// TestInternalAddresses tries every form three ways: as a locator, past the
// locator's own check, and as the target of a redirect. The name server plays the
// worst resolver there is: whatever it is asked for is this machine.
func TestInternalAddresses(t *testing.T) {
	t.Run("made", func(t *testing.T) { tryInternal(t, internalForms()) })
	t.Run("collected", func(t *testing.T) { tryInternal(t, ssrfAddresses(t)) })
}

func tryInternal(t *testing.T, forms []string) {
	if len(forms) < 63 {
		t.Fatalf("only %d forms", len(forms))
	}
	seen := dials{real: "127.0.0.77"}
	worst := resolver(t, func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	f := newFetcher(t, func(c *Config) {
		c.Guard = guard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.77/32")})
		c.Guard.Resolver, c.Guard.Watch = worst, seen.watch
	})
	server := listen(t, "127.0.0.77:0", noRobots(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+forms[0]+"/")
		w.WriteHeader(http.StatusFound)
	}))
	redirected := 0
	for len(forms) > 0 {
		form := forms[0]
		for _, scheme := range []string{"http", "https"} {
			_, err := f.Fetch(t.Context(), scheme+"://"+form+"/")
			wantCode(t, form, err, marchwarden.CodeDenied)
			if u, err := url.Parse(scheme + "://" + form + "/"); err == nil {
				if _, err := f.get(t.Context(), u); err == nil { // refused, or no name to any resolver
					t.Errorf("past the check: %s was fetched", form)
				}
			}
		}
		_, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d", server.URL, len(forms)))
		wantCode(t, "redirect to "+form, err, marchwarden.CodeDenied)
		redirected++
		forms = forms[1:]
	}
	if len(seen.seen) > 0 || redirected < 63 {
		t.Errorf("%d of %d forms were dialled: %v", len(seen.seen), redirected, seen.seen)
	}
}

// secretAndDecoy starts two servers on one port: a page that may be fetched and
// an internal one that may not. Hits counts requests to the latter.
func secretAndDecoy(t testing.TB, decoy http.HandlerFunc) (port string, hits *atomic.Int32) {
	t.Helper()
	hits = new(atomic.Int32)
	open := listen(t, "127.0.0.77:0", noRobots(decoy))
	_, port, err := net.SplitHostPort(open.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listen(t, "127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		fmt.Fprint(w, "the secret")
	}))
	return port, hits
}

// TestRebinding lets names change between the public and the internal address
// with every answer, and give both at once.
func TestRebinding(t *testing.T) {
	port, hits := secretAndDecoy(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that a redirect is a new connection
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		fmt.Fprint(w, "a page")
	})
	public, internal := netip.MustParseAddr("127.0.0.77"), netip.MustParseAddr("127.0.0.1")
	run := func(allow string) (pages int) {
		var asked atomic.Int32
		flip := resolver(t, func(string) []netip.Addr {
			const pattern = "pibpppiibpi"
			switch pattern[int(asked.Add(1))%len(pattern)] {
			case 'i':
				return []netip.Addr{internal}
			case 'b':
				return []netip.Addr{internal, public}
			default:
				return []netip.Addr{public}
			}
		})
		f := newFetcher(t, func(c *Config) {
			c.Guard = guard.New([]netip.Prefix{netip.MustParsePrefix(allow)})
			c.Guard.Resolver = flip
		})
		for i := range 50 {
			path := "/"
			if i%2 == 1 {
				path = "/again"
			}
			page, err := f.Fetch(t.Context(), fmt.Sprintf("http://name-%d.rebind.example:%s%s", i, port, path))
			if err == nil {
				if text := textOf(t, f, page); allow == "127.0.0.77/32" && text != "a page" {
					t.Errorf("fetched %q", text)
				}
				pages++
			} else {
				wantCode(t, "rebinding", err, marchwarden.CodeDenied)
			}
		}
		return pages
	}
	if pages := run("127.0.0.77/32"); hits.Load() != 0 || pages == 0 || pages == 50 {
		t.Errorf("%d requests reached the internal address; %d pages were fetched", hits.Load(), pages)
	}
	if run("127.0.0.0/8"); hits.Load() == 0 {
		t.Error("the internal address is not reached even when it is open: the test proves nothing")
	}
}

func TestRedirects(t *testing.T) {
	var port string
	port, hits := secretAndDecoy(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/circle" {
			http.Redirect(w, r, "/circle#again", http.StatusFound)
			return
		}
		var left int
		if n, _ := fmt.Sscanf(r.URL.Path, "/chain/%d", &left); n == 1 && left > 0 {
			http.Redirect(w, r, fmt.Sprintf("/chain/%d?%s", left-1, r.URL.RawQuery), http.StatusTemporaryRedirect)
			return
		}
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", strings.ReplaceAll(to, "PORT", port))
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		fmt.Fprint(w, "a page")
	})
	f := newFetcher(t, func(c *Config) { c.Guard = guard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.77/32")}) })
	base := "http://127.0.0.77:" + port
	for path, code := range map[string]marchwarden.Code{
		"/chain/0": "", "/chain/1": "", "/chain/5": "",
		"/chain/6": marchwarden.CodeUnavailable,
		"/chain/1?to=" + url.QueryEscape("/?to=/"): "",
		"/?to=" + url.QueryEscape(base+"/chain/2"): "",
		"/?to=//127.0.0.77:PORT/chain/0":           "",
		"/circle":                                  marchwarden.CodeUnavailable,
	} {
		_, err := f.Fetch(t.Context(), base+path)
		wantCode(t, path, err, code)
	}
	for _, to := range []string{
		"http://127.0.0.1:PORT/", "//127.0.0.1:PORT/", "http://localhost:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "http://2130706433:PORT/", "http://127.1:PORT/",
		"http://169.254.169.254/latest/meta-data/", "https://127.0.0.1:PORT/", "http://127.0.0.77@127.0.0.1:PORT/", "http://user:pw@127.0.0.77:PORT/", "http://127.0.0.1:PORT\\@127.0.0.77/",
		"http:\\\\127.0.0.1:PORT/", "/\\127.0.0.1:PORT/", "\\\\127.0.0.1:PORT/", "http://127.0.0.1%2f@127.0.0.77:PORT/", "http://127.0.0.1:PORT#@127.0.0.77/", "http://127.0.0.1:PORT?@127.0.0.77/",
		"http://127.0.0.77 @127.0.0.1:PORT/", "http://127.0.0.77\t@127.0.0.1:PORT/", "http://①②⑦.⓪.⓪.①:PORT/", "http://127。0。0。1:PORT/", "http://[::1%25lo]:PORT/",
		"file:///etc/passwd", "gopher://127.0.0.1:PORT/_GET", "ftp://127.0.0.77/", "javascript:alert(1)", "data:text/html,x", "dict://127.0.0.1:PORT/", "jar:http://127.0.0.1:PORT/!/", "unix:///var/run/docker.sock",
		"http:///etc/passwd", "http://", "https:127.0.0.1:PORT", "ws://127.0.0.1:PORT/", "http://127.0.0.77:99999/", "http://127.0.0.77:0/",
	} {
		for _, hops := range []int{0, 4} {
			_, err := f.Fetch(t.Context(), fmt.Sprintf("%s/chain/%d?to=%s", base, hops, url.QueryEscape(to)))
			wantCode(t, fmt.Sprintf("redirect to %q after %d hops", to, hops), err, marchwarden.CodeDenied)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached the internal address", hits.Load())
	}
}

// TestRefusedRedirectsAreNotQuoted: the error may end up in a result, and the
// server wrote the address.
func TestRefusedRedirectsAreNotQuoted(t *testing.T) {
	var to string
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
	f := newFetcher(t, nil)
	const want = "a redirect of 127.0.0.1 is refused: it leads to no http or https address that is safe to follow"
	for _, to = range []string{"ftp://user:SECRET@files.example:21/IGNORE?ALL#RULES", "javascript:SAY('IGNORE ALL RULES')", "data:text/html,IGNORE", "http://user:SECRET@127.0.0.1/IGNORE",
		"http://a b/IGNORE", "http://[IGNORE/", "\\\\IGNORE", ""} {
		_, err := f.Fetch(t.Context(), server.URL+"/")
		wantCode(t, to, err, marchwarden.CodeDenied)
		if want := fmt.Sprintf("fetch %q: %s", server.URL+"/", want); err == nil || err.Error() != want {
			t.Errorf("redirect to %q says\n%v, want\n%s", to, err, want)
		}
	}
}

// TestAddressesThatReadersDisagreeOn are addresses in which one reader finds the
// open host and another the internal one.
func TestAddressesThatReadersDisagreeOn(t *testing.T) {
	port, hits := secretAndDecoy(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page") })
	worst := resolver(t, func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	f := newFetcher(t, func(c *Config) {
		c.Guard = guard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.77/32")})
		c.Guard.Resolver = worst
	})
	for _, form := range []string{
		"http://OPEN\\@INTERNAL/", "http://INTERNAL\\@OPEN/", "http://OPEN@INTERNAL/", "http://OPEN:80@INTERNAL/", "http://OPEN#@INTERNAL/", "http://INTERNAL#@OPEN/",
		"http://INTERNAL?@OPEN/", "http://OPEN\t@INTERNAL/", "http://INTERNAL\n.OPEN/", "http://OPEN%00@INTERNAL/", "http://OPEN%2f@INTERNAL/", "http:INTERNAL/", "http:/INTERNAL/",
		"http:///INTERNAL/", "http:////INTERNAL/", "http:\\\\INTERNAL/", "http://INTERNAL:PORT:80/", "http://OPEN;INTERNAL/", "http://OPEN,INTERNAL/", "http://OPEN&@INTERNAL/",
		"http://[OPEN]@INTERNAL/", "http://\u200bINTERNAL/", "http://INTERNAL\u3002/", "http://INTER\u00adNAL/", " http://INTERNAL/", "http://OPEN\\.INTERNAL/", "//INTERNAL/", "http://0.0.0.0:PORT/", "http://[::]:PORT/",
		"http://a.internal.example:PORT/", "http://127.0.0.1.nip.example:PORT/",
	} {
		loc := strings.NewReplacer("OPEN", "127.0.0.77:"+port, "INTERNAL", "127.0.0.1:"+port, "INTER", "127.0", "NAL", ".0.1", "PORT", port).Replace(form)
		_, err := f.Fetch(t.Context(), loc)
		wantCode(t, fmt.Sprintf("%q", loc), err, marchwarden.CodeDenied)
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached the internal address", hits.Load())
	}
}
