package depot

import (
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/objects"
)

// Every kind of store gives the same content the same name, and lists it alike.
func TestOneRefEverywhere(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("evidence"); err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(service.Close)
	means := Means{JetStream: cluster(t), AccessKey: "test", SecretKey: "secret"}
	var lists []string
	for _, address := range []string{"dir:" + t.TempDir(), "jetstream", "", "s3://evidence/x?region=us-east-1&endpoint=" + service.URL} {
		store, done, err := Open(t.Context(), address, means)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		var list strings.Builder
		for _, content := range []string{"", "a page", strings.Repeat("a long page ", 40_000)} {
			ref, err := store.Put(t.Context(), []byte(content))
			if err != nil || ref != blob.Of([]byte(content)) {
				t.Errorf("%s: Put = %s, %v", address, ref, err)
			}
		}
		if err := store.Walk(t.Context(), func(i blob.Info) error { list.WriteString(i.Ref.String() + "\n"); return nil }); err != nil {
			t.Error(err)
		}
		lists = append(lists, list.String())
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	for _, list := range lists {
		if list != lists[0] || strings.Count(list, "\n") != 3 {
			t.Errorf("listed:\n%sand elsewhere:\n%s", list, lists[0])
		}
	}
}

func cluster(t *testing.T) func(context.Context) (blob.Store, error) {
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.Prepare(t.Context(), js, objects.Limits{}); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (blob.Store, error) { return objects.Open(ctx, js) }
}

// A folder that is not mounted is not made: no other host would see what is in it.
func TestFolderMustBeThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not-mounted")
	_, done, err := Open(t.Context(), "dir:"+path, Means{})
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(marchwarden.HintOf(err), "mount") {
		t.Errorf("Open: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"dir:", "dir:relative", "nfs://host", "s3://", "s3://k:hunter2@evidence", "s3://evidence/x?endpoint=s3.example.org:9000", "AKIAhunter2"} {
		checked := Check(address)
		_, done, err := Open(t.Context(), address, Means{})
		for _, err := range []error{checked, err} {
			if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", address, err)
			}
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := Open(t.Context(), JetStream, Means{}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("jetstream without a cluster: %v", err)
	}
	if err := Check(JetStream); err != nil {
		t.Error(err)
	}
}
