package researcher

// The researcher of local documents: the library inside the program and the user's own
// folders. It is assembly: the local index as engine and the folder fetcher.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
)

// FilesName is the researcher's name in the network, in traces and in costs.
const FilesName = "files"

// FilesScope says in a sentence what the researcher covers.
const FilesScope = "documents on this machine: the library that ships with the program and the folders of the user"

// Embedded is the library that ships with the program. Its locators are the same
// wherever it is searched, so that what one program recorded another can check.
func Embedded() *fetch.Folder { return fetch.EmbeddedFolder(corpus.Name, "embedded", corpus.FS()) }

// FilesConfig is what the researcher works with. The caller closes what it passes in.
type FilesConfig struct {
	Lab
	Library []*fetch.Folder // what is searched, at least one folder
	// IndexPath is the index file for user folders. Without those the index is kept in memory.
	IndexPath string
	Extractor *extract.Extractor
	Warn      func(string) // told of what went wrong beside the research, such as an unreadable file; nil: unused
}

// Files answers from local documents. It is safe for concurrent use.
type Files struct {
	cfg FilesConfig

	mu    sync.Mutex // guards index and serialises its updates
	index *local.Index
}

var _ marchwarden.Researcher = (*Files)(nil)

// NewFiles makes the researcher. Nothing is opened before the first call. Close it when done.
func NewFiles(cfg FilesConfig) *Files {
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	return &Files{cfg: cfg}
}

// Close closes the index.
func (r *Files) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index == nil {
		return nil
	}
	return r.index.Close()
}

// Research brings the index up to date and runs the loop under a new trace.
func (r *Files) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return Prepared{r.cfg.Lab, FilesName, func(ctx context.Context, _ marchwarden.Request) (Setup, error) {
		return r.prepare(ctx, sink)
	}}.Research(ctx, req, sink)
}

// prepare opens the index and brings it up to date. When ctx ends, what is indexed is used; a folder that fails is
// a gap, and the others are searched all the same.
func (r *Files) prepare(ctx context.Context, sink marchwarden.Sink) (Setup, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.update(ctx, sink, r.indexPath())
	if local.Unwritable(err) && r.indexPath() != "" {
		r.cfg.Warn(fmt.Sprintf("the index of the library cannot be written, and is made in memory for this time: %v", err))
		if r.index != nil {
			_ = r.index.Close() // what is wrong with it was said
			r.index = nil
		}
		if s, err = r.update(ctx, sink, ""); local.Unwritable(err) {
			return Setup{}, err
		}
	}
	index := r.index
	if index == nil {
		return Setup{}, err
	}
	s.Where, s.Engine = strings.Join(s.Library, ", "), index.Engine(nil, r.cfg.Library...)
	s.Ranked = func(e embed.Embedder) search.Engine { return index.Engine(e, r.cfg.Library...) }
	s.Fetcher = fetch.NewFiles(r.cfg.Blobs, r.cfg.Extractor, r.cfg.Now, r.cfg.Library...)
	s.Fingerprint, err = index.Fingerprint(context.WithoutCancel(ctx), r.cfg.Library...)
	return s, err
}

// update opens the index, at a path or in memory for this process, unless it is open and sound, and brings it up to date
// with the folders. What fails of a folder is a gap; its error is the first.
func (r *Files) update(ctx context.Context, sink marchwarden.Sink, path string) (s Setup, failed error) {
	if r.index != nil && r.index.Damaged() {
		_ = r.index.Close() // the question that met the damage said so
		r.index = nil
	}
	if r.index == nil {
		if r.index, failed = local.Open(context.WithoutCancel(ctx), path); failed != nil {
			return s, failed
		}
	}
	for _, f := range r.cfg.Library {
		report, err := r.index.Update(ctx, f, local.UpdateOptions{Extract: r.cfg.Extractor, Progress: sink, Now: r.cfg.Now})
		if err != nil && ctx.Err() == nil {
			s.Gaps = append(s.Gaps, marchwarden.GapFor("folder "+f.Name, err))
			failed = cmp.Or(failed, err)
		}
		if n := len(report.Notes); n > 0 {
			said, first := "; the first: ", report.Notes[0]
			if n == 1 {
				said = ": "
			}
			r.cfg.Warn(lexicon.Counted(n, "file", "files") + " of " + f.Name + " could not be read" + said + first.Name + ": " + first.Reason)
		}
		if report.Rebuilt != "" {
			r.cfg.Warn("the index was made anew: " + report.Rebuilt)
		}
		documents := report.Added + report.Changed + report.Unchanged
		s.Library = append(s.Library, f.Name+" ("+lexicon.Counted(documents, "document", "documents")+")")
	}
	return s, failed
}

// indexPath is where the index is kept: in memory for the program's own library alone, which is quick to index.
func (r *Files) indexPath() string {
	if slices.ContainsFunc(r.cfg.Library, func(f *fetch.Folder) bool { return !f.Embedded() }) {
		return r.cfg.IndexPath
	}
	return ""
}
