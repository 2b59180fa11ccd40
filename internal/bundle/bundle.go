// Package bundle is a run in one file, for checking it on another machine: a .mwz holds the result
// as it left the process, the traces of the run, of its rihlas and of the runs that it follows, every blob that they need, and
// what they were made with. It owns the form of that file, its verification and the
// way back into a home. Whether the citations of the result stand in the blobs is package verify's
// to say, and what a rerun gives is the researchers'.
//
// A bundle is a zip that holds a BagIt bag (RFC 8493) in one folder, so that other
// tools can open and validate it:
//
//	marchwarden-<trace id>/
//	  data/about.json              what is inside and who made it
//	  data/blobs/sha256/ab/<hex>   blobs, as their content
//	  data/result.json             the result, to the byte
//	  data/traces/<trace id>.jsonl the traces, up to their last whole line
//	  bag-info.txt, bagit.txt      as every bag has them
//	  manifest-sha256.txt          the hashes of what is below data/
//	  packed-sha256.txt            the hashes of the same members as they are packed
//	  signature-ed25519.json       only if an earlier version signed it; it is not checked
//	  tagmanifest-sha256.txt       the hashes of the files beside data/ but the signature
//
// Members stand in that order, sorted by name below data/. Everything that the zip
// itself says (names, sizes, checksums, times) follows from the members, so there
// is one right sequence of bytes, and Verify finds any other.
//
//	bundle.go     names, limits, about.json
//	write.go      making a bundle
//	read.go       opening one and reading its parts
//	check.go      verification
//	import.go     the way into a home
//	format.go     all forms in which a run can leave
package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// The versions of the form that this package writes and reads: a bundle of the first has one run with its rihlas, and
// one of the second also the runs that it follows.
const (
	formatAlone = 1
	formatNow   = 2
)

// Suffix ends the name of a bundle.
const Suffix = ".mwz"

// zipHead is how a zip with something in it begins.
const zipHead = "PK\x03\x04"

// Named reports whether a path names a bundle: by its ending, or by how the file begins.
func Named(path string) bool {
	if strings.HasSuffix(strings.ToLower(path), Suffix) {
		return true
	}
	f, err := durable.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(zipHead))
	_, err = f.ReadAt(head, 0)
	return err == nil && string(head) == zipHead
}

// What a bundle may hold. A writer keeps to it and a reader refuses more, before
// it has spent memory on it.
const (
	maxMembers = 60_000
	maxMember  = blob.MaxSize
	maxTotal   = 3 << 30  // of all members unpacked
	maxTag     = 16 << 20 // of a file beside data/, and of about.json
	maxRatio   = 200      // unpacked to packed; what packs better is not packed
)

// The names of the members, below the top folder.
const (
	topPrefix     = "marchwarden-"
	dataDir       = "data/"
	aboutName     = "data/about.json"
	resultName    = "data/result.json"
	tracesDir     = "data/traces/"
	traceSuffix   = ".jsonl"
	blobsDir      = "data/blobs/sha256/"
	bagInfoName   = "bag-info.txt"
	bagitName     = "bagit.txt"
	manifestName  = "manifest-sha256.txt"
	packedName    = "packed-sha256.txt"
	signatureName = "signature-ed25519.json"
	tagsName      = "tagmanifest-sha256.txt"
)

const bagit = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

// tagNames are the files beside data/, in the order in which they stand.
var tagNames = []string{bagInfoName, bagitName, manifestName, packedName, signatureName, tagsName}

func traceName(id marchwarden.TraceID) string { return tracesDir + id.String() + traceSuffix }

func blobName(ref blob.Ref) string { return blobsDir + ref.Hex()[:2] + "/" + ref.Hex() }

// blobOf is the blob that a member holds by its name; invalid if it is none.
func blobOf(name string) blob.Ref {
	ref, err := blob.Parse("sha256:" + path.Base(name))
	if err != nil || blobName(ref) != name {
		return blob.Ref{}
	}
	return ref
}

// traceOf is the trace that a member holds by its name; invalid if it is none.
func traceOf(name string) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(strings.TrimSuffix(strings.TrimPrefix(name, tracesDir), traceSuffix))
	if err != nil || traceName(id) != name {
		return marchwarden.TraceID{}
	}
	return id
}

// before orders members: those below data/ by name, then the tag files.
func before(a, b string) int {
	last := func(name string) int { return len(name) - len(strings.TrimPrefix(name, dataDir)) } // 0 for a tag file
	return cmp.Or(cmp.Compare(last(b), last(a)), strings.Compare(a, b))
}

// About is about.json: what is inside and who made it. It repeats what the traces
// say, for readers that do not read them. Fields are only ever added.
type About struct {
	Format     int                 `json:"format"`
	Version    string              `json:"program_version"` // of the program that exported it
	Contract   string              `json:"contract_version"`
	ExportedAt time.Time           `json:"exported_at"`
	TraceID    marchwarden.TraceID `json:"trace_id"`
	Question   string              `json:"question"`
	Runs       []RunInfo           `json:"runs"` // the run itself first
	Models     []string            `json:"models"`
	Prompts    []Prompt            `json:"prompts"`
	// Elsewhere are the rihlas whose traces are not inside: of other people's
	// researchers, who keep their own.
	Elsewhere []Elsewhere `json:"kept_elsewhere"`
}

// RunInfo says what a run was made with, in the words of its trace.
type RunInfo struct {
	TraceID     marchwarden.TraceID `json:"trace_id"`
	TraceFormat int                 `json:"trace_format"`
	Version     string              `json:"program_version"`
	Researcher  string              `json:"researcher"`
	Question    string              `json:"question"`
	StartedAt   time.Time           `json:"started_at"`
	Mind        string              `json:"mind"`
	MindVersion string              `json:"mind_version,omitempty"`
	Planner     string              `json:"planner,omitempty"`
	Model       string              `json:"model,omitempty"`
	Engine      string              `json:"engine,omitempty"`
}

// Prompt is a prompt that a model was given, with the hash of its file.
type Prompt struct {
	Name         string `json:"name"`
	TemplateHash string `json:"template_hash"`
}

// Elsewhere is a rihla whose trace is kept by who made it.
type Elsewhere struct {
	TraceID    marchwarden.TraceID `json:"trace_id"`
	Researcher string              `json:"researcher"`
}

func formatOf(r *run.Run) int {
	if r.Before != nil {
		return formatNow
	}
	return formatAlone
}

// aboutOf describes a run as its traces do.
func aboutOf(run *run.Run, o Options) About {
	a := About{Format: formatOf(run), Version: o.Version, Contract: marchwarden.ContractVersion, ExportedAt: o.Now.UTC().Truncate(time.Second),
		TraceID: run.ID, Question: run.Start.Request.Question, Models: []string{}, Prompts: []Prompt{}, Elsewhere: []Elsewhere{}}
	kept := map[marchwarden.TraceID]bool{}
	for _, r := range run.All() {
		kept[r.ID] = true
		s := r.Start
		info := RunInfo{TraceID: r.ID, TraceFormat: s.Format, Version: s.Version, Researcher: s.Researcher, Question: s.Request.Question,
			StartedAt: s.StartedAt, Mind: s.Mind, MindVersion: s.MindVersion, Model: s.Model, Engine: s.Engine}
		if s.Investigation != nil {
			info.Planner = s.Investigation.Planner
		}
		a.Runs = append(a.Runs, info)
		for _, step := range r.Log.Steps {
			done, ok := step.(*trace.ModelComplete)
			if !ok {
				continue
			}
			if !slices.Contains(a.Models, done.Model) {
				a.Models = append(a.Models, done.Model)
			}
			if p := (Prompt{done.Prompt, done.TemplateHash}); !slices.Contains(a.Prompts, p) {
				a.Prompts = append(a.Prompts, p)
			}
		}
	}
	for _, r := range run.All() {
		for _, done := range r.Facts().Reports {
			away := Elsewhere{done.TraceID, done.Researcher}
			if away.TraceID.Valid() && !kept[away.TraceID] && !slices.Contains(a.Elsewhere, away) {
				a.Elsewhere = append(a.Elsewhere, away)
			}
		}
	}
	slices.Sort(a.Models)
	slices.SortFunc(a.Prompts, func(x, y Prompt) int {
		return strings.Compare(x.Name+"\x00"+x.TemplateHash, y.Name+"\x00"+y.TemplateHash)
	})
	return a
}

func bagInfo(a About, octets int64, members int) []byte {
	var b bytes.Buffer
	for _, line := range [][2]string{
		{"Bag-Software-Agent", "marchwarden " + a.Version},
		{"Bagging-Date", a.ExportedAt.Format(time.DateOnly)},
		{"External-Description", a.Question},
		{"External-Identifier", a.TraceID.String()},
		{"Marchwarden-Bundle-Format", fmt.Sprint(a.Format)},
		{"Payload-Oxum", fmt.Sprintf("%d.%d", octets, members)},
	} {
		// A value is one line; what is no text would end it for some readers.
		value := strings.Join(strings.FieldsFunc(line[1], func(r rune) bool { return r <= ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }), " ")
		fmt.Fprintf(&b, "%s: %s\n", line[0], value)
	}
	return b.Bytes()
}
