package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfReader reads PDFs with PDFium in a WebAssembly sandbox that has no files, clock, network or chance. Each PDF gets a fresh instance, so that a crash costs one
// document and no state leads from one to the next. Compiling the module takes seconds, so it starts with the first PDF and is kept in the cache directory.
type pdfReader struct {
	cfg    Config
	ctx    context.Context // parent of every instance; its end interrupts them
	cancel context.CancelFunc
	work   sync.WaitGroup // the PDFs in progress

	mu       sync.Mutex
	closed   bool
	starting chan struct{} // closed when the start in progress has ended; nil when none was begun or the last one failed
	startErr error
	pool     pdfium.Pool
	cache    wazero.CompilationCache
}

func newPDFReader(cfg Config) *pdfReader {
	ctx, cancel := context.WithCancel(context.Background())
	return &pdfReader{cfg: cfg, ctx: ctx, cancel: cancel}
}

// pdfiumInstance is the part of a PDFium instance that is used here. It is the implementation behind pdfium.Pdfium, whose own bookkeeping may not be touched by
// two goroutines; this way Kill is the only call made on the outside while a document is being read.
type pdfiumInstance interface {
	OpenDocument(*requests.OpenDocument) (*responses.OpenDocument, error)
	FPDF_GetPageCount(*requests.FPDF_GetPageCount) (*responses.FPDF_GetPageCount, error)
	GetPageText(*requests.GetPageText) (*responses.GetPageText, error)
	GetMetaData(*requests.GetMetaData) (*responses.GetMetaData, error)
}

func (p *pdfReader) read(ctx context.Context, raw []byte) (Document, error) {
	pool, err := p.start(ctx)
	if err != nil {
		return Document{}, err
	}
	defer p.work.Done()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.PDFTimeout)
	defer cancel()
	outer, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return Document{}, p.fault(ctx, "start instance", err)
	}
	inner, ok := outer.GetImplementation().(pdfiumInstance)
	if !ok {
		return Document{}, errors.Join(errors.New("pdfium instance lacks methods"), outer.Kill())
	}
	var once sync.Once
	var killErr error
	kill := func() { once.Do(func() { killErr = outer.Kill() }) }
	stop := context.AfterFunc(ctx, kill)
	doc, err := p.document(ctx, inner, raw)
	stop()
	kill()
	if err == nil && killErr != nil {
		err = fmt.Errorf("end instance: %w", killErr)
	}
	return doc, err
}

func (p *pdfReader) document(ctx context.Context, in pdfiumInstance, raw []byte) (doc Document, err error) {
	defer func() {
		if v := recover(); v != nil {
			doc, err = Document{}, fmt.Errorf("%w: pdfium panic: %v", ErrDamaged, v)
		}
	}()
	opened, err := in.OpenDocument(&requests.OpenDocument{File: &raw})
	if err != nil {
		return Document{}, p.fault(ctx, "open", err)
	}
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return Document{}, p.fault(ctx, "count pages", err)
	}
	if count.PageCount == 0 {
		return Document{}, fmt.Errorf("%w: no pages", ErrDamaged)
	}
	doc = Document{MediaType: fmtPDF.mediaType(), Extractor: "pdf/2"}
	var text strings.Builder
	read := 0
	for i := range count.PageCount {
		page, err := in.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: opened.Document, Index: i}}})
		if err != nil {
			return Document{}, p.fault(ctx, fmt.Sprintf("read page %d", i+1), err)
		}
		raw := pdfChars.Replace(page.Text)
		addPage(&doc, &text, raw)
		if read += len(raw) + 2; int64(read) > 2*p.cfg.MaxBytes {
			return Document{}, fmt.Errorf("%w: text over %d bytes at page %d of %d", ErrTooLarge, p.cfg.MaxBytes, i+1, count.PageCount)
		}
	}
	doc.Text = text.String()
	if doc.NonText = doc.Text == ""; doc.NonText || len(doc.Pages) > maxPages { // pictures of pages; more than a person turns
		doc.Pages = nil
	}
	pdfMetadata(in, opened.Document, &doc)
	return doc, nil
}

// addPage writes the text of the next page in its final form, so that where it begins is known.
func addPage(doc *Document, text *strings.Builder, raw string) {
	doc.Links = append(doc.Links, linksInText(raw)...)
	doc.Links = doc.Links[:min(len(doc.Links), 4*maxLinks)]
	form := normalise(raw)
	if form != "" && text.Len() > 0 {
		text.WriteString("\n\n")
	}
	doc.Pages = append(doc.Pages, text.Len())
	text.WriteString(form)
}

// maxPages bounds Document.Pages.
const maxPages = 10_000

// pdfChars maps what PDFium writes for a hyphen at a line's end to a hyphen.
var pdfChars = strings.NewReplacer("\ufffe", "-", "\x02", "-", "\uffff", "")

// pdfMetadata reads the information dictionary; a document without one is unnamed, not damaged. Titles that word processors make up are none.
func pdfMetadata(in pdfiumInstance, ref references.FPDF_DOCUMENT, doc *Document) {
	meta, err := in.GetMetaData(&requests.GetMetaData{Document: ref, Tags: &[]string{"Title", "Author", "CreationDate"}})
	if err != nil {
		return
	}
	for _, tag := range meta.Tags {
		value := strings.TrimSpace(tag.Value)
		switch tag.Tag {
		case "Title":
			value = strings.TrimPrefix(value, "Microsoft Word - ")
			if lower := strings.ToLower(value); lower != "untitled" && lower != "untitled document" {
				doc.Title = value
			}
		case "Author":
			doc.Author = value
		case "CreationDate":
			doc.Published = value
		}
	}
}

// fault names what went wrong: the end of the context or of the extractor when that is why PDFium stopped, else the document's own fault.
func (p *pdfReader) fault(ctx context.Context, doing string, err error) error {
	switch {
	case p.ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ErrClosed)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return fmt.Errorf("%s: %w: %w", doing, ErrEncrypted, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrDamaged, err)
}

// start returns the running pool, starting it when needed, and counts one piece of work that the caller ends with p.work.Done. The start goes on when the context
// of the caller who began it ends: the next one will want it.
func (p *pdfReader) start(ctx context.Context) (pdfium.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.starting == nil {
		p.starting = make(chan struct{})
		go p.boot(p.starting)
	}
	started := p.starting
	p.mu.Unlock()
	var err error
	select {
	case <-started:
	case <-ctx.Done():
		err = fmt.Errorf("start pdfium: %w", ctx.Err())
	}
	p.mu.Lock()
	switch {
	case err != nil:
		return nil, err
	case p.closed:
		return nil, ErrClosed
	case p.pool == nil:
		return nil, p.startErr
	}
	p.work.Add(1)
	return p.pool, nil
}

// boot compiles or loads the module. A cache directory that cannot be used costs time, not the document: then the module is compiled in memory. Compiling cannot be
// interrupted, so close does not wait for it: a module that comes too late is freed here.
func (p *pdfReader) boot(done chan struct{}) {
	defer close(done)
	pool, cache, err := p.open(p.cfg.CacheDir)
	if err != nil && p.cfg.CacheDir != "" {
		pool, cache, err = p.open("")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.starting, p.startErr = nil, fmt.Errorf("start pdfium: %w", err)
	case p.closed:
		_ = p.free(pool, cache) // there is no caller left to tell
	default:
		p.pool, p.cache = pool, cache
	}
}

func (p *pdfReader) free(pool pdfium.Pool, cache wazero.CompilationCache) error {
	return errors.Join(pool.Close(), cache.Close(context.WithoutCancel(p.ctx)))
}

func (p *pdfReader) open(cacheDir string) (pdfium.Pool, wazero.CompilationCache, error) {
	cache := wazero.NewCompilationCache()
	if cacheDir != "" {
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(cacheDir); err != nil {
			return nil, nil, err
		}
	}
	runtime := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling). // the module uses exceptions
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(uint32(min(p.cfg.PDFMemory>>16, 1<<16))).
		WithCompilationCache(cache)
	pool, err := webassembly.Init(webassembly.Config{
		Context:       p.ctx,
		MaxTotal:      p.cfg.PDFWorkers,
		FSConfig:      wazero.NewFSConfig(), // the default would mount "/"
		RuntimeConfig: runtime,
		Stdout:        io.Discard,
		Stderr:        io.Discard,
		RandomSource:  zeros{},
	})
	if err != nil {
		return nil, nil, errors.Join(err, cache.Close(context.WithoutCancel(p.ctx)))
	}
	return pool, cache, nil
}

// zeros is the sandbox's source of chance: none, so that equal input gives equal text.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func (p *pdfReader) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pool == nil {
		return nil
	}
	err := p.free(p.pool, p.cache)
	p.pool, p.cache = nil, nil
	if err != nil {
		return fmt.Errorf("close pdfium: %w", err)
	}
	return nil
}
