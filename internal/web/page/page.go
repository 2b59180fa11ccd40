// Package page is what people see in a browser: the pages of `marchwarden ui` as
// templates, their style sheet and their script. A view goes in, bytes come out.
//
// It owns the words, the order and the look of the pages, the addresses that they
// lead to, and the names of the fields of their forms. It knows no handler, no
// store and no clock: what a page shows is in its view, and times are shown in the
// zone that they carry.
//
// All text in a view is untrusted and cannot become markup; only
// fields of type template.HTML are markup, and these are the works of packages
// prose and chart. No page has a script or a style of its own, so that a policy can
// forbid both, and none loads anything but what Static serves. Every change is a
// form with the token of its session. Without the script everything works but that
// a run is followed by itself.
//
//	page.go     the set of pages
//	static.go   style sheet, script and icon, under names that change with them
//	paths.go    where pages and forms lead
//	words.go    what templates call
//	frame.go    views: what several pages have
//	running.go  views: ask, run
//	answer.go   views: answer, source
//	archive.go  views: history, numbers, compare, drift, sign in, problem, confirm
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"regexp"
)

//go:embed templates/*.html
var templates embed.FS

// places are the pages, each with the entry of the navigation that it belongs to.
var places = map[string]string{
	"ask": "ask", "run": "", "answer": "", "source": "", "history": "history", "numbers": "numbers",
	"compare": "history", "drift": "", "signin": "", "problem": "", "confirm": "",
}

// Set is the pages, parsed. It is safe for concurrent use.
type Set struct {
	pages  map[string]*template.Template
	static *Static
}

// New parses the pages. Sheets are further style sheets that every page loads after
// its own, such as the one of package chart.
func New(sheets ...Sheet) (*Set, error) {
	static, err := newStatic(sheets)
	if err != nil {
		return nil, err
	}
	s := &Set{pages: map[string]*template.Template{}, static: static}
	shared := template.New("").Funcs(words).Funcs(template.FuncMap{"asset": static.path, "sheets": static.sheets})
	for _, name := range []string{"frame", "parts", "live", "panel"} {
		if err := parse(shared, name); err != nil {
			return nil, err
		}
	}
	for name := range places {
		t, err := shared.Clone()
		if err != nil {
			return nil, fmt.Errorf("clone the templates for page %s: %w", name, err)
		}
		if err := parse(t, name); err != nil {
			return nil, err
		}
		s.pages[name] = t
	}
	return s, nil
}

// indent is white space that only the author of a template needs.
var indent = regexp.MustCompile(`\n\s+`)

// parse adds a file of templates. White space at the beginning of lines goes: no
// template has text in which it would count.
func parse(t *template.Template, name string) error {
	text, err := templates.ReadFile("templates/" + name + ".html")
	if err != nil {
		return fmt.Errorf("read template %s: %w", name, err)
	}
	if _, err := t.New(name + ".html").Parse(indent.ReplaceAllString(string(text), "\n")); err != nil {
		return fmt.Errorf("parse template %s: %w", name, err)
	}
	return nil
}

// Static is the style sheets, the script and the icon.
func (s *Set) Static() *Static { return s.static }

// shell is what the frame of all pages is filled with.
type shell struct {
	Frame
	Page, Here string
	View       any
}

// render writes a page in one write, or nothing if it cannot be made.
func (s *Set) render(w io.Writer, name string, f Frame, view any) error {
	return s.execute(w, name, "frame", shell{Frame: f, Page: name, Here: places[name], View: view})
}

func (s *Set) execute(w io.Writer, page, name string, data any) error {
	var buf bytes.Buffer
	if err := s.pages[page].ExecuteTemplate(&buf, name, data); err != nil {
		return fmt.Errorf("make page %s: %w", page, err)
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write page %s: %w", page, err)
	}
	return nil
}

// Ask writes the page on which a question is put.
func (s *Set) Ask(w io.Writer, v Ask) error { return s.render(w, "ask", v.Frame, v) }

// Run writes the page of a run that goes on.
func (s *Set) Run(w io.Writer, v Run) error { return s.render(w, "run", v.Frame, v) }

// Live writes the part of a run's page that changes while it goes on: what an event
// stream sends, to be put in the place of the element of that id.
func (s *Set) Live(w io.Writer, v Live) error { return s.execute(w, "run", "live", v) }

// Answer writes the page of a run that has a result.
func (s *Set) Answer(w io.Writer, v Answer) error { return s.render(w, "answer", v.Frame, v) }

// Panel writes one source as the side panel of an answer, for the script.
func (s *Set) Panel(w io.Writer, v Evidence) error { return s.execute(w, "answer", "panel", &v) }

// Source writes the page of one whole source.
func (s *Set) Source(w io.Writer, v Source) error { return s.render(w, "source", v.Frame, v) }

// History writes the page of past runs.
func (s *Set) History(w io.Writer, v History) error { return s.render(w, "history", v.Frame, v) }

// Numbers writes the page of figures.
func (s *Set) Numbers(w io.Writer, v Numbers) error { return s.render(w, "numbers", v.Frame, v) }

// Compare writes the page of two runs side by side.
func (s *Set) Compare(w io.Writer, v Compare) error { return s.render(w, "compare", v.Frame, v) }

// Drift writes the page of a check of the sources.
func (s *Set) Drift(w io.Writer, v Drift) error { return s.render(w, "drift", v.Frame, v) }

// SignIn writes the page for those who are not known yet.
func (s *Set) SignIn(w io.Writer, v SignIn) error { return s.render(w, "signin", v.Frame, v) }

// Problem writes the page of what went wrong.
func (s *Set) Problem(w io.Writer, v Problem) error { return s.render(w, "problem", v.Frame, v) }

// Confirm writes the page that asks once more.
func (s *Set) Confirm(w io.Writer, v Confirm) error { return s.render(w, "confirm", v.Frame, v) }
