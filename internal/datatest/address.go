package datatest

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

var addresses atomic.Int64

// FreeAddresses are addresses on this machine for servers that have to know each other before they
// are up. Nothing listens there, and no outgoing connection gets such a port: those have higher ones.
func FreeAddresses(tb testing.TB, n int) []string {
	tb.Helper()
	var out []string
	for range 10_000 {
		if len(out) == n {
			return out
		}
		port := 20_000 + (int64(os.Getpid())*37+addresses.Add(1))%12_000
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.FormatInt(port, 10))
		if err != nil {
			continue // another program has it
		}
		out = append(out, l.Addr().String())
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Fatal("no port is free")
	return nil
}
