package s3

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// gatewayVar names the program of a service that others have written, versitygw, for the
// suite to run against. Makefile has a target that builds it.
const gatewayVar = "MARCHWARDEN_TEST_VERSITYGW"

func TestGateway(t *testing.T) {
	program := os.Getenv(gatewayVar)
	if program == "" {
		t.Skipf("%s names no program", gatewayVar)
	}
	suite(t, func(t *testing.T) func(t *testing.T) Config {
		address := freePort(t)
		root := filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(program, "--port", address, "--quiet", "--keep-alive", "posix", root)
		command.Env = append(os.Environ(), "ROOT_ACCESS_KEY=test", "ROOT_SECRET_KEY="+secret)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if conn, err := net.Dial("tcp", address); err == nil {
				conn.Close()
				break
			}
			if time.Since(begun) > 20*time.Second {
				t.Fatal("the gateway does not start")
			}
		}
		return buckets(Config{Endpoint: address, Plain: true, AccessKey: "test", SecretKey: secret, Region: "us-east-1"})
	})
}

// freePort is a free address on loopback.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
