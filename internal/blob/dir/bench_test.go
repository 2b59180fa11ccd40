package dir

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// page returns n bytes of text that differ for each i.
func page(n, i int) []byte {
	text := strings.Repeat("Spring-planted garlic in zone 6b is lifted when half the leaves are brown. ", n/75+1)
	content := []byte(text[:n])
	// every 64 bytes a number, so that it compresses like prose and not like a pattern
	for at := 0; at+8 < n; at += 64 {
		binary.BigEndian.PutUint64(content[at:], uint64(i+at)*0x9e3779b97f4a7c15)
	}
	return content
}

var sizes = []int{1 << 10, 64 << 10, 1 << 20}

// BenchmarkPut stores a new blob each time, synced.
func BenchmarkPut(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b, b.TempDir())
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if _, err := s.Put(context.Background(), page(size, i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPutAgain stores a blob that is there already.
func BenchmarkPutAgain(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b, b.TempDir())
			content := page(size, 0)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := s.Put(context.Background(), content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b, b.TempDir())
			ref, err := s.Put(context.Background(), page(size, 0))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := s.Get(context.Background(), ref); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
