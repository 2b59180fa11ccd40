package extract

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
)

// The parts of archives that hold or list the text.
const (
	docxMain         = "word/document.xml"
	xlsxMain         = "xl/workbook.xml"
	pptxMain         = "ppt/presentation.xml"
	openDocumentMain = "content.xml"
	epubMain         = "META-INF/container.xml"
)

// The bounds of one archive, which Word, Excel, PowerPoint, OpenDocument and EPUB files are.
const (
	maxUnzipped = 64 << 20 // bytes that are decompressed
	maxMembers  = 20_000   // files in it, and files that are opened
	maxMarkup   = 4 << 20  // bytes from one tag of a part to the next: what the parser holds at once
	maxAttrs    = 1000     // of one element
)

// archive is a zip of parts, read within its bounds.
type archive struct {
	files  map[string]*zip.File
	left   int64 // bytes that may still be unpacked
	opened int
}

var oldOffice, encryptedOffice = []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")

// openArchive fails with ErrEncrypted, ErrTooLarge or ErrDamaged.
func openArchive(raw []byte) (*archive, error) {
	switch {
	case bytes.HasPrefix(raw, oldOffice) && bytes.Contains(raw, encryptedOffice):
		return nil, ErrEncrypted
	case bytes.HasPrefix(raw, oldOffice):
		return nil, fmt.Errorf("%w: it is a file of an Office before 2007, which is not read", ErrDamaged)
	case bytes.Count(raw, []byte("PK\x01\x02")) > maxMembers: // each has that in the directory
		return nil, fmt.Errorf("%w: more than %d files in the archive", ErrTooLarge, maxMembers)
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	a := &archive{files: make(map[string]*zip.File, len(z.File)), left: maxUnzipped}
	for _, f := range z.File {
		if a.files[f.Name] == nil {
			a.files[f.Name] = f
		}
	}
	return a, nil
}

// archiveFormat tells the formats that are archives by the part that each must have, or the type that it declares.
func archiveFormat(raw []byte) format {
	a, err := openArchive(raw)
	if err != nil {
		return fmtUnknown
	}
	for f, about := range formats {
		if strings.Contains(about.main, "/") && a.files[about.main] != nil {
			return format(f)
		}
	}
	declared, _ := a.bytes("mimetype") // what cannot be read declares nothing
	for f, about := range formats {
		if about.main != "" && about.media == strings.TrimSpace(string(declared)) {
			return format(f)
		}
	}
	return fmtUnknown
}

// unpack gives one file of the archive to read and takes what it unpacks from left. A part that is not there has nothing to say.
func (a *archive) unpack(name string, read func(io.Reader) error) error {
	f := a.files[name]
	if f == nil {
		return nil
	}
	if a.opened++; f.UncompressedSize64 > uint64(a.left) || a.opened > maxMembers { // what it admits to; the reader below holds it to that
		return fmt.Errorf("%s: %w: the archive unpacks to more than %d bytes, or holds too many parts", name, ErrTooLarge, maxUnzipped)
	}
	if f.Flags&1 != 0 {
		return fmt.Errorf("%s: %w", name, ErrEncrypted)
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	limited := &io.LimitedReader{R: r, N: a.left + 1}
	err = read(limited)
	if a.left = limited.N - 1; a.left < 0 {
		err = fmt.Errorf("%w: unpacks to more than %d bytes", ErrTooLarge, maxUnzipped)
	}
	if err = errors.Join(err, r.Close()); err == nil {
		return nil
	}
	if !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrEncrypted) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (a *archive) bytes(name string) (data []byte, err error) {
	err = a.unpack(name, func(r io.Reader) error {
		data, err = io.ReadAll(r)
		return err
	})
	return data, err
}

// part reads one XML part.
func (a *archive) part(name string, use markup) error {
	return a.unpack(name, func(r io.Reader) error {
		dec := xml.NewDecoder(&boundedMarkup{r: r})
		dec.CharsetReader = charset.NewReaderLabel
		return use.read(dec)
	})
}

// elements calls start for the elements of one XML part.
func (a *archive) elements(name string, start func(xml.StartElement)) error {
	return a.part(name, markup{enter: func(t xml.StartElement) bool { start(t); return true }})
}

// boundedMarkup fails where two tags are further apart than the parser should hold at once.
type boundedMarkup struct {
	r     io.Reader
	since int // the last "<"
}

func (b *boundedMarkup) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '<'); i >= 0 {
		b.since = n - i
	} else if b.since += n; b.since > maxMarkup {
		return n, fmt.Errorf("%w: more than %d bytes without a tag", ErrTooLarge, maxMarkup)
	}
	return n, err
}

// markup is what is done with elements and with the characters between them.
type markup struct {
	enter     func(xml.StartElement) bool // an element that it refuses is passed over, with all that is in it
	end, text func(string) error          // nil does nothing
}

func (m markup) read(dec *xml.Decoder) error {
	for depth, refused := 0, 0; ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if depth++; depth > maxNesting || len(t.Attr) > maxAttrs {
				return fmt.Errorf("%w: elements over %d deep, or with over %d attributes", ErrTooLarge, maxNesting, maxAttrs)
			}
			if refused == 0 && !m.enter(t) {
				refused = depth
			}
		case xml.EndElement:
			if refused == 0 && m.end != nil {
				err = errors.Join(err, m.end(t.Name.Local))
			}
			if depth--; depth < refused {
				refused = 0
			}
		case xml.CharData:
			if refused == 0 && m.text != nil {
				err = errors.Join(err, m.text(string(t)))
			}
		}
		if err != nil {
			return err
		}
	}
}

func xmlAttr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// relation leads from a part of an Office file to another, or to an address.
type relation struct{ id, kind, target string }

// relations are those of a part, their targets as names in the archive. An address stays as it is.
func (a *archive) relations(part string) (found []relation, err error) {
	dir, base := path.Split(part)
	err = a.elements(dir+"_rels/"+base+".rels", func(t xml.StartElement) {
		target := xmlAttr(t, "Target")
		if xmlAttr(t, "TargetMode") != "External" && !strings.Contains(target, "://") {
			if target = strings.TrimPrefix(target, "/"); target == xmlAttr(t, "Target") {
				target = path.Join(dir, target)
			}
		}
		found = append(found, relation{xmlAttr(t, "Id"), path.Base(xmlAttr(t, "Type")), target})
	})
	return found, err
}

// target is where the relation with an id leads; "" where there is none.
func target(found []relation, id string) string {
	for _, r := range found {
		if r.id == id {
			return r.target
		}
	}
	return ""
}

// properties reads title, author and date of creation. Names, where it is given, says which elements these are.
func (a *archive) properties(part string, doc *Document, names map[string]string) error {
	name := ""
	return a.part(part, markup{
		enter: func(t xml.StartElement) bool {
			if name = t.Name.Local; names != nil {
				name = names[name]
			}
			return true
		},
		end:  func(string) error { name = ""; return nil },
		text: func(s string) error { describe(doc, name, strings.TrimSpace(s)); return nil },
	})
}

// readEpub reads the chapters of a book in the order of its spine.
func readEpub(s source, doc *Document) error {
	a, list := s.archive, ""
	err := a.elements(epubMain, func(t xml.StartElement) {
		if t.Name.Local == "rootfile" && list == "" {
			list = path.Clean(xmlAttr(t, "full-path"))
		}
	})
	if err != nil {
		return err
	}
	if a.files[list] == nil {
		return fmt.Errorf("%w: no list of chapters in the archive", ErrDamaged)
	}
	locked := map[string]bool{}
	err = a.elements("META-INF/encryption.xml", func(t xml.StartElement) {
		if t.Name.Local == "CipherReference" {
			locked[inArchive("", xmlAttr(t, "URI"))] = true
		}
	})
	chapters, listed := a.chapters(list)
	if err = errors.Join(err, listed, a.properties(list, doc, nil)); err != nil {
		return err
	}
	var out strings.Builder
	for _, name := range chapters {
		if locked[name] {
			return fmt.Errorf("%s: %w", name, ErrEncrypted)
		}
		raw, err := a.bytes(name)
		if err != nil {
			return err
		}
		text, links := htmlFragment(decode(raw, fmtHTML, ""))
		out.WriteString(text + "\n\n")
		doc.Links = append(doc.Links, links...)
		doc.Links = doc.Links[:min(len(doc.Links), 4*maxLinks)]
	}
	doc.Text = out.String()
	return nil
}

// chapters are the files of the spine, without the list of contents.
func (a *archive) chapters(list string) (names []string, err error) {
	files := map[string]string{}
	err = a.elements(list, func(t xml.StartElement) {
		switch t.Name.Local {
		case "item":
			if kind := xmlAttr(t, "media-type"); strings.Contains(kind, "html") && !strings.Contains(xmlAttr(t, "properties"), "nav") {
				files[xmlAttr(t, "id")] = inArchive(path.Dir(list), xmlAttr(t, "href"))
			}
		case "itemref":
			if name := files[xmlAttr(t, "idref")]; name != "" && len(names) < maxMembers {
				names = append(names, name)
			}
		}
	})
	return names, err
}

// inArchive is the name of the file that an address beside others in dir means.
func inArchive(dir, address string) string {
	address, _, _ = strings.Cut(address, "#")
	if plain, err := url.PathUnescape(address); err == nil {
		address = plain
	}
	return path.Join(dir, address)
}
