package bundle

import (
	"encoding/binary"
	"time"
)

// The methods of packing that a bundle uses.
const (
	stored   = 0
	deflated = 8
)

// entry is what the zip says about one member.
type entry struct {
	name   string // below the top folder
	method uint16
	crc    uint32
	packed uint32 // bytes in the zip
	size   uint32 // bytes unpacked
	offset uint32 // of its header in the zip
}

// layout writes the parts of the zip between the packed members. The form is the
// oldest there is: no extra fields, no descriptors, no comments, no 64-bit sizes,
// every time the same. It is written here rather than by a library because the
// bytes must be the same for ever.
type layout struct {
	top  string // the folder, with its slash
	date uint16
	time uint16
}

func newLayout(top string, when time.Time) layout {
	when = when.UTC()
	if when.Year() < 1980 { // where the clock of a zip begins
		when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return layout{top: top,
		date: uint16(when.Day() + int(when.Month())<<5 + (when.Year()-1980)<<9),
		time: uint16(when.Second()/2 + when.Minute()<<5 + when.Hour()<<11)}
}

const versionNeeded = 20 // for folders and deflate

// common is the part that both headers of a member share.
func (l layout) common(b []byte, e entry) []byte {
	b = le16(b, versionNeeded, 0, e.method, l.time, l.date)
	b = le32(b, e.crc, e.packed, e.size)
	return le16(b, uint16(len(l.top)+len(e.name)), 0)
}

// local is the header before a member.
func (l layout) local(e entry) []byte {
	return append(l.common(le32(nil, 0x04034b50), e), l.top+e.name...)
}

// directory is everything after the last member.
func (l layout) directory(all []entry, offset uint32) []byte {
	var b []byte
	for _, e := range all {
		b = le16(le32(b, 0x02014b50), versionNeeded)
		b = le16(l.common(b, e), 0, 0, 0) // comment, disk, kind
		b = le32(b, 0, e.offset)
		b = append(b, l.top+e.name...)
	}
	size := uint32(len(b))
	b = le16(le32(b, 0x06054b50), 0, 0, uint16(len(all)), uint16(len(all)))
	return le16(le32(b, size, offset), 0)
}

func le16(b []byte, vs ...uint16) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func le32(b []byte, vs ...uint32) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
