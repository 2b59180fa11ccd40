package httpdoor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// finish begins the end and gives how long it took.
func (s *site) finish() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatal("Serve does not end")
	}
	s.ended = nil
	return time.Since(began)
}

func TestTheEndWithNothingToDoIsQuick(t *testing.T) {
	s := open(t, Config{})
	s.do("POST", "/mcp", "{}", nil)
	if took := s.finish(); took > 9*time.Second {
		t.Error(took)
	}
	if _, err := net.Dial("tcp", s.addr); err == nil {
		t.Error("the port is still open")
	}
}

func TestAnswersGetOutBeforeTheEnd(t *testing.T) {
	work, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	entered, looked := make(chan struct{}, 2), make(chan struct{})
	s := open(t, Config{
		Stop: func(ctx context.Context) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > 2*time.Second || ctx.Err() != nil {
				t.Errorf("Stop has until %v: %v", until, ctx.Err())
			}
			stopWork()
		},
		MCP: handler(func(w http.ResponseWriter, r *http.Request) {
			events(w)
			_ = http.NewResponseController(w).Flush()
			entered <- struct{}{}
			if r.Method == http.MethodGet {
				<-r.Context().Done()
				_, _ = io.WriteString(w, ": bye\n\n")
				return
			}
			<-work.Done()
			<-looked // as if it wrote down what there is
			if r.Context().Err() != nil {
				t.Error("the request was cancelled")
			}
			_, _ = io.WriteString(w, "data: partial\n\n")
		})})
	type answer struct {
		text string
		err  error
	}
	post, get := make(chan answer, 1), make(chan answer, 1)
	go func() {
		_, text, err := s.try("POST", "/mcp", "{}", nil)
		post <- answer{text, err}
	}()
	go func() {
		_, text, err := s.try("GET", "/mcp", "", header{"Accept": "text/event-stream"})
		get <- answer{text, err}
	}()
	<-entered
	<-entered
	go s.stop()
	<-work.Done()
	// While the last answers get out, it is alive, not ready, and takes no more.
	resp, text := s.do("POST", "/mcp", "{}", nil)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || reason(t, text) != "ending" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := s.do("GET", "/mcp", "", nil); resp.StatusCode != 503 {
		t.Errorf("a new stream: %d", resp.StatusCode)
	}
	if resp, text := s.do("GET", "/readyz", "", nil); resp.StatusCode != 503 || text != "not ready: shutting down\n" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := s.do("GET", "/healthz", "", nil); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
	close(looked)
	if a := <-post; a.err != nil || a.text != "data: partial\n\n" {
		t.Errorf("what there is was lost: %q %v", a.text, a.err)
	}
	if a := <-get; a.err != nil || a.text != ": bye\n\n" {
		t.Errorf("the stream: %q %v", a.text, a.err)
	}
	if took := s.finish(); took > 4*time.Second {
		t.Errorf("the stream holds up the end: %v", took)
	}
}

func TestTheEndDoesNotWaitForEver(t *testing.T) {
	for name, c := range map[string]struct{ call, work, method string }{
		"a handler that ignores everything": {"stuck", "quick", "POST"},
		"a stream that never ends":          {"stuck", "quick", "GET"},
		"work that does not stop":           {"quick", "stuck", "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, entered := make(chan struct{}), make(chan struct{}, 1)
			left := make(chan struct{}, 2)
			wait := func(how string) {
				if how == "stuck" {
					<-release
				}
				left <- struct{}{}
			}
			s := open(t, Config{
				Grace: 500 * time.Millisecond,
				Stop:  func(context.Context) { wait(c.work) },
				MCP: handler(func(w http.ResponseWriter, r *http.Request) {
					events(w)
					_ = http.NewResponseController(w).Flush()
					entered <- struct{}{}
					wait(c.call)
				})})
			called := make(chan struct{})
			go func() {
				defer close(called)
				_, _, _ = s.try(c.method, "/mcp", "{}", header{"Accept": "text/event-stream"})
			}()
			<-entered
			took := s.finish()
			t.Logf("%v", took)
			if took > 5*time.Second || c.method == "GET" && took > 4*time.Second {
				t.Errorf("the end took %v", took)
			}
			<-called // the connection is closed
			close(release)
			<-left
			<-left
		})
	}
}

func TestServeSaysWhatWentWrong(t *testing.T) {
	d, err := New(Config{MCP: echo, Now: time.Now, CertFile: "/nonexistent/cert", KeyFile: "/nonexistent/key"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Serve(t.Context(), l); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
	d, _ = New(Config{MCP: echo, Now: time.Now})
	if err := d.Serve(t.Context(), l); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("a closed listener: %v", err)
	}
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	s := open(t, Config{CertFile: cert, KeyFile: key, Auth: someTokens(), Metadata: []byte("{}"),
		MaxBody: 1000, BodyTimeout: 200 * time.Millisecond})
	good := header{"Authorization": "Bearer ann-secret"}
	if resp, _ := s.do("POST", "/mcp", "{}", good); resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Error(resp.Proto, resp.StatusCode)
	}
	if resp, _ := s.do("POST", "/mcp", "{}", nil); resp.Header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://`+s.addr+`/.well-known/oauth-protected-resource/mcp"` {
		t.Errorf("%v", resp.Header)
	}
	if resp, _ := s.do("POST", "/mcp", strings.Repeat("x", 2000), good); resp.StatusCode != 413 {
		t.Errorf("%d", resp.StatusCode)
	}
	// A body that never ends, over HTTP/2.
	body, end := io.Pipe()
	defer end.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer ann-secret")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 408 {
		t.Errorf("a slow body: %d", resp.StatusCode)
	}
	if took := s.finish(); took > 4*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// certificate makes files of a key and a certificate for it.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8642": true, "127.9.9.9:0": true, "localhost:1": true, "LOCALHOST:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		":8642": false, "0.0.0.0:1": false, "[::]:1": false, "192.168.0.1:1": false, "example.org:1": false, "localhost.example.org:1": false, "[fe80::1%lo]:1": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	for _, addr := range []string{"", "localhost", "127.0.0.1", "::1:1"} {
		if Loopback(addr) {
			t.Error(addr)
		}
	}
}
