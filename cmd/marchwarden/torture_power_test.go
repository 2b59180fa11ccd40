//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// platter is what of a folder would survive a power loss at any moment, in the
// worst case that a file system may make of it: the bytes of a file as they were
// when it was last synced, under the names that its folder had when that was last
// synced, and nothing else. It learns from the system calls of a traced program.
type platter struct {
	root  string
	nodes map[uint64]*sector // by inode
	fresh map[int]bool       // threads that are about to make what they name
	errs  []error
}

// sector is a file or a folder.
type sector struct {
	bytes []byte             // of a file, as last synced
	names map[string]*sector // of a folder, as last synced; nil for a file
}

// newPlatter is a platter on which everything is that is in the folder now.
func newPlatter(root string) *platter {
	p := &platter{root: root, nodes: map[uint64]*sector{}, fresh: map[int]bool{}}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		p.sync(path)
		return err
	})
	if err != nil {
		p.errs = append(p.errs, err)
	}
	return p
}

// watch takes a system call into account.
func (p *platter) watch(c *sysCall) {
	if !c.below(p.root) {
		return
	}
	switch c.name {
	case "openat", "mkdirat":
		if !c.ends {
			_, err := os.Lstat(c.path)
			p.fresh[c.process] = errors.Is(err, os.ErrNotExist)
		} else if c.ret >= 0 && p.fresh[c.process] {
			if ino, info, err := inode(c.path); err == nil { // numbers are used again
				p.nodes[ino] = newSector(info.IsDir())
			}
		}
	case "fsync", "fdatasync":
		if c.ends && c.ret == 0 {
			p.sync(c.path)
		}
	}
}

// sync makes durable what a file or a folder holds.
func (p *platter) sync(path string) {
	ino, info, err := inode(path)
	if err != nil {
		return // gone already, and its name with it
	}
	s := p.sector(ino, info.IsDir())
	if !info.IsDir() {
		if s.bytes, err = os.ReadFile(path); err != nil {
			p.errs = append(p.errs, err)
		}
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	s.names = map[string]*sector{}
	for _, e := range entries {
		if ino, info, err := inode(filepath.Join(path, e.Name())); err == nil { // else it went meanwhile
			s.names[e.Name()] = p.sector(ino, info.IsDir())
		}
	}
}

func (p *platter) sector(ino uint64, folder bool) *sector {
	if p.nodes[ino] == nil {
		p.nodes[ino] = newSector(folder)
	}
	return p.nodes[ino]
}

func newSector(folder bool) *sector {
	if folder {
		return &sector{names: map[string]*sector{}}
	}
	return &sector{}
}

func inode(path string) (uint64, os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, nil, errors.New("there are no inodes here")
	}
	return stat.Ino, info, nil
}

// restore writes what survived to a new folder.
func (p *platter) restore(to string) error {
	ino, _, err := inode(p.root)
	if err != nil {
		return err
	}
	return errors.Join(append(p.errs, p.sector(ino, true).restore(to))...)
}

func (s *sector) restore(to string) error {
	if s.names == nil {
		return os.WriteFile(to, s.bytes, 0o600)
	}
	errs := []error{os.MkdirAll(to, 0o700)}
	for name, below := range s.names {
		errs = append(errs, below.restore(filepath.Join(to, name)))
	}
	return errors.Join(errs...)
}
