// Package pdf reads the text of PDFs, and draws their pages, with PDFium, which runs in a WebAssembly sandbox that has no files, clock, network or chance. It owns PDFium; what becomes of
// the pages is package extract's work.
package pdf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sync/singleflight"
)

// Config holds the limits of a Reader. The zero value is usable.
type Config struct {
	CacheDir string        // where the compiled module and the text of PDFs are kept between processes, created when missing; "" = memory only
	Timeout  time.Duration // longest time for one PDF, waiting for a free worker included; default 60 s
	Memory   int64         // largest memory of one worker, on top of the file itself; default 256 MiB
	Workers  int           // PDFs read at the same time; default one a processor, from 2 to 8
	OCR      string        // the program tesseract, which reads pages that are pictures; "" leaves them without text
}

// Reader is an extract.PDF. Each document gets a fresh instance of PDFium, so that a crash costs one document and no state leads from one to the next.
// Compiling the module takes seconds, so it starts with the first PDF and is kept in the cache directory.
type Reader struct {
	cfg    Config
	ctx    context.Context // parent of every instance; its end interrupts them
	cancel context.CancelFunc
	work   sync.WaitGroup // the PDFs in progress

	starts singleflight.Group

	mu     sync.Mutex // guards what follows
	closed bool
	pool   pdfium.Pool // nil before it is started
	cache  wazero.CompilationCache
}

// New returns a Reader; it does no work and opens no file. The caller closes it.
func New(cfg Config) *Reader {
	ctx, cancel := context.WithCancel(context.Background())
	return &Reader{ctx: ctx, cancel: cancel, cfg: Config{CacheDir: cfg.CacheDir, Timeout: cmp.Or(cfg.Timeout, time.Minute), Memory: cmp.Or(cfg.Memory, 256<<20), Workers: cmp.Or(cfg.Workers, min(max(runtime.NumCPU(), 2), 8)), OCR: cfg.OCR}}
}

// instance is the part of a PDFium instance that is used here. It is the implementation behind pdfium.Pdfium, whose own bookkeeping may not be touched by
// two goroutines; this way Kill is the only call made on the outside while a document is being read.
type instance interface {
	reading
	lettering
	drawing
}

// reading is the text of a document.
type reading interface {
	OpenDocument(*requests.OpenDocument) (*responses.OpenDocument, error)
	FPDF_GetPageCount(*requests.FPDF_GetPageCount) (*responses.FPDF_GetPageCount, error)
	GetPageText(*requests.GetPageText) (*responses.GetPageText, error)
	GetMetaData(*requests.GetMetaData) (*responses.GetMetaData, error)
}

// lettering is the characters of a page.
type lettering interface {
	FPDFText_LoadPage(*requests.FPDFText_LoadPage) (*responses.FPDFText_LoadPage, error)
	FPDFText_ClosePage(*requests.FPDFText_ClosePage) (*responses.FPDFText_ClosePage, error)
	FPDFText_CountChars(*requests.FPDFText_CountChars) (*responses.FPDFText_CountChars, error)
	FPDFText_GetUnicode(*requests.FPDFText_GetUnicode) (*responses.FPDFText_GetUnicode, error)
}

// drawing is where they stand, and the page as pixels.
type drawing interface {
	FPDFText_CountRects(*requests.FPDFText_CountRects) (*responses.FPDFText_CountRects, error)
	FPDFText_GetRect(*requests.FPDFText_GetRect) (*responses.FPDFText_GetRect, error)
	FPDF_PageToDevice(*requests.FPDF_PageToDevice) (*responses.FPDF_PageToDevice, error)
	RenderPageInPixels(*requests.RenderPageInPixels) (*responses.RenderPageInPixels, error)
}

// Scans reports whether pages that are pictures are read.
func (p *Reader) Scans() bool { return p.cfg.OCR != "" }

// Read implements extract.PDF.
func (p *Reader) Read(ctx context.Context, raw []byte, page func(n, of int, text string) error) (about extract.Document, err error) {
	words, bare := false, false // pages that have words, and that have none
	give := page
	page = func(n, of int, text string) error {
		words, bare = words || written(text), bare || !written(text)
		return give(n, of, text)
	}
	path := p.keptPath(raw)
	text := kept(path)
	if text != nil && p.ctx.Err() == nil {
		about, err = text.replay(ctx, page)
	} else {
		text, about, err = p.fresh(ctx, raw, page)
		if err == nil {
			text.keep(path, about)
		}
	}
	switch {
	case err != nil || !bare:
	case text.failed:
		about.Unread, about.Again = "its pages are pictures, and tesseract failed to read them", true
	case !p.Scans():
		about.Unread = "its pages are pictures; with tesseract installed their text is read"
	case !words:
		about.Unread = "its pages are pictures, and no text was recognised in them"
	}
	return about, err
}

// fresh reads what was not kept.
func (p *Reader) fresh(ctx context.Context, raw []byte, page func(n, of int, text string) error) (text *keptText, about extract.Document, err error) {
	text = &keptText{}
	s := scan{Reader: p, raw: raw, give: func(n, of int, words string) error {
		text.add(words)
		return page(n, of, words)
	}}
	err = p.with(ctx, func(ctx context.Context, in instance) (err error) {
		about, err = p.pages(ctx, in, raw, s.page)
		return err
	})
	if err == nil {
		err = s.rest(ctx)
	}
	text.failed = s.failed
	return text, about, err
}

// with does some work with an instance of PDFium of its own, which is killed when the time is over. A panic is the document's fault.
func (p *Reader) with(ctx context.Context, work func(context.Context, instance) error) (err error) {
	pool, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer p.work.Done()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	outer, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return p.fault(ctx, "start instance", err)
	}
	inner, ok := outer.GetImplementation().(instance)
	if !ok {
		return errors.Join(errors.New("pdfium instance lacks methods"), outer.Kill())
	}
	var once sync.Once
	var killErr error
	kill := func() { once.Do(func() { killErr = outer.Kill() }) }
	stop := context.AfterFunc(ctx, kill)
	err = func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: pdfium panic: %v", extract.ErrDamaged, v)
			}
		}()
		return work(ctx, inner)
	}()
	stop()
	kill()
	if err == nil && killErr != nil {
		err = fmt.Errorf("end instance: %w", killErr)
	}
	return err
}

// opened is a document, which has at least one page, and how many it has.
func (p *Reader) opened(ctx context.Context, in instance, raw []byte) (doc references.FPDF_DOCUMENT, pages int, err error) {
	opened, err := in.OpenDocument(&requests.OpenDocument{File: &raw})
	if err != nil {
		return doc, 0, p.fault(ctx, "open", err)
	}
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return doc, 0, p.fault(ctx, "count pages", err)
	}
	if count.PageCount == 0 {
		return doc, 0, fmt.Errorf("%w: no pages", extract.ErrDamaged)
	}
	return opened.Document, count.PageCount, nil
}

func (p *Reader) pages(ctx context.Context, in instance, raw []byte, page func(n, of int, text string) error) (about extract.Document, err error) {
	doc, count, err := p.opened(ctx, in, raw)
	if err != nil {
		return about, err
	}
	for i := range count {
		got, err := in.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}})
		if err != nil {
			return about, p.fault(ctx, fmt.Sprintf("read page %d", i+1), err)
		}
		if err := page(i+1, count, hyphens.Replace(got.Text)); err != nil {
			return about, err
		}
	}
	return metadata(in, doc), nil
}

// hyphens maps what PDFium writes for a hyphen at a line's end to a hyphen.
var hyphens = strings.NewReplacer("\ufffe", "-", "\x02", "-", "\uffff", "")

// metadata reads the information dictionary; a document without one is unnamed, not damaged. Titles that word processors make up are none.
func metadata(in instance, ref references.FPDF_DOCUMENT) (about extract.Document) {
	meta, err := in.GetMetaData(&requests.GetMetaData{Document: ref, Tags: &[]string{"Title", "Author", "CreationDate"}})
	if err != nil {
		return about
	}
	for _, tag := range meta.Tags {
		value := strings.TrimSpace(tag.Value)
		switch tag.Tag {
		case "Title":
			value = strings.TrimPrefix(value, "Microsoft Word - ")
			if lower := strings.ToLower(value); lower != "untitled" && lower != "untitled document" {
				about.Title = value
			}
		case "Author":
			about.Author = value
		case "CreationDate":
			about.Published = value
		}
	}
	return about
}

// fault names what went wrong: the end of the context or of the extractor when that is why PDFium stopped, else the document's own fault.
func (p *Reader) fault(ctx context.Context, doing string, err error) error {
	switch {
	case p.ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, extract.ErrClosed)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return fmt.Errorf("%s: %w: %w", doing, extract.ErrEncrypted, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, extract.ErrDamaged, err)
}

// start returns the running pool, starting it when needed, and counts one piece of work that the caller ends with p.work.Done. The start goes on when the context
// of the caller who began it ends: the next one will want it.
func (p *Reader) start(ctx context.Context) (pdfium.Pool, error) {
	var err error
	select {
	case started := <-p.starts.DoChan("", p.boot):
		err = started.Err
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, extract.ErrClosed
	case err != nil:
		return nil, fmt.Errorf("start pdfium: %w", err)
	}
	p.work.Add(1)
	return p.pool, nil
}

// boot compiles or loads the module, unless that is done. A cache directory that cannot be used costs time, not the document: then the module is compiled in memory. Compiling cannot be
// interrupted, so Close does not wait for it: a module that comes too late is freed here.
func (p *Reader) boot() (any, error) {
	p.mu.Lock()
	done := p.closed || p.pool != nil
	p.mu.Unlock()
	if done {
		return nil, nil
	}
	pool, cache, err := p.open(p.cfg.CacheDir)
	if err != nil && p.cfg.CacheDir != "" {
		pool, cache, err = p.open("")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case p.closed:
		return nil, p.free(pool, cache)
	}
	p.pool, p.cache = pool, cache
	return nil, nil
}

func (p *Reader) free(pool pdfium.Pool, cache wazero.CompilationCache) error {
	return errors.Join(pool.Close(), cache.Close(context.WithoutCancel(p.ctx)))
}

func (p *Reader) open(cacheDir string) (pdfium.Pool, wazero.CompilationCache, error) {
	cache := wazero.NewCompilationCache()
	if cacheDir != "" {
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(cacheDir); err != nil {
			return nil, nil, err
		}
	}
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling). // the module uses exceptions
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(uint32(min(p.cfg.Memory>>16, 1<<16))).
		WithCompilationCache(cache)
	pool, err := webassembly.Init(webassembly.Config{
		Context:       p.ctx,
		MaxTotal:      p.cfg.Workers,
		FSConfig:      wazero.NewFSConfig(), // the default would mount "/"
		RuntimeConfig: config,
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

// Close implements extract.PDF. It may be called more than once.
func (p *Reader) Close() error {
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
