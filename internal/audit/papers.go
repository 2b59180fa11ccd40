package audit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// doi asks Crossref, with which most DOIs of papers are registered, and of what
// Crossref does not have the handle service, which has the DOIs of all. Only the
// latter can say that there is no such DOI.
func (r *Registry) doi(ctx context.Context, id scholar.ID) Status {
	work, asked := r.standing(ctx, id)
	s := Status{State: Registered}
	if !work.Knows(scholar.Crossref) {
		there, err := r.resolves(ctx, id.DOI())
		switch {
		case err != nil:
			s = Status{State: Unchecked, Detail: line(err)}
		case !there && work.Knows(scholar.OpenAlex):
			s = Status{State: Unchecked, Detail: "doi.org does not have the DOI, and OpenAlex has it"}
		case !there:
			return Status{State: Absent, Detail: "doi.org has no such DOI"}
		}
	}
	s.note(work, asked)
	return s
}

// preprint asks arXiv. That arXiv's answer has no such paper is not enough to call
// it absent, for an answer of arXiv may come out empty; either arXiv shows other
// versions of the paper, or the registry of DOIs, which has one for every paper of
// arXiv, does not have it either. That registry is the stand-in where arXiv fails,
// but it is some days behind, so that it can only confirm.
func (r *Registry) preprint(ctx context.Context, id scholar.ID) Status {
	paper, err := r.paper(ctx, id)
	if err == nil {
		s := Status{State: Registered}
		s.note(r.standing(ctx, id.Work()))
		if paper.Withdrawn() && !s.Retracted {
			s.Retracted, s.Doubt, s.Detail = true, "", scholar.Line("withdrawn, says arXiv: "+paper.Comment, 300)
		}
		return s
	}
	missing := marchwarden.CodeOf(err) == marchwarden.CodeNotFound
	if missing && id.Version() > 0 {
		if _, err := r.paper(ctx, id.Work()); err == nil {
			return Status{State: Absent, Detail: fmt.Sprintf("arXiv has the paper, but no version %d of it", id.Version())}
		}
	}
	there, other := r.resolves(ctx, id.DOI())
	switch {
	case other != nil:
		return Status{State: Unchecked, Detail: line(err) + "; " + line(other)}
	case !there && missing:
		return Status{State: Absent, Detail: "arXiv has no such paper, and doi.org no DOI for it"}
	case !there || id.Version() > 0:
		return Status{State: Unchecked, Detail: line(err)}
	}
	s := Status{State: Registered, Detail: "by its DOI; " + line(err)}
	s.note(r.standing(ctx, id))
	return s
}

func (r *Registry) paper(ctx context.Context, id scholar.ID) (p scholar.Preprint, err error) {
	err = r.arxiv.do(ctx, func() (err error) {
		p, err = r.cfg.ArXiv.Paper(ctx, id)
		return err
	})
	return p, err
}

// mostInList is how many papers are asked for in one request.
const mostInList = 50

// prepare looks all papers of arXiv up together, which arXiv's client remembers: it
// takes one question every three seconds. What fails is asked for again one by one.
func (r *Registry) prepare(ctx context.Context, locators []string) {
	var ids []scholar.ID
	for _, loc := range locators {
		if paper, address := nameOf(loc); address == "" && paper.ArXiv() != "" {
			ids = append(ids, paper)
		}
	}
	for part := range slices.Chunk(ids, mostInList) {
		if len(part) > 1 {
			_ = r.arxiv.do(ctx, func() error { // it is asked again
				_, err := r.cfg.ArXiv.Papers(ctx, part...)
				return err
			})
		}
	}
}

// The answers of the handle service, by its protocol's numbers. A handle without
// values is registered all the same.
const (
	handleFound    = 1
	handleNotFound = 100
	handleNoValues = 200
)

// resolves reports whether a DOI is registered. All but a plain answer is an error.
func (r *Registry) resolves(ctx context.Context, doi string) (there bool, err error) {
	var a struct {
		Code   int    `json:"responseCode"`
		Handle string `json:"handle"`
	}
	parts := strings.Split(doi, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." { // which would be another path
			return false, marchwarden.Errorf(marchwarden.CodeUnsupported, "a DOI of this form cannot be asked about")
		}
		parts[i] = url.PathEscape(p)
	}
	err = r.handle.do(ctx, func() error {
		if err := r.handles.GetJSON(ctx, "api/handles/"+strings.Join(parts, "/"), nil, &a); err != nil {
			return err
		}
		if !strings.EqualFold(a.Handle, doi) {
			return marchwarden.Errorf(marchwarden.CodeMalformed, "doi.org: the answer is about another DOI")
		}
		if a.Code != handleFound && a.Code != handleNoValues && a.Code != handleNotFound {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "doi.org: answered with code %d", a.Code)
		}
		return nil
	})
	return err == nil && a.Code != handleNotFound, err
}

// standing asks the indexes that have not failed; an error says that none was asked.
func (r *Registry) standing(ctx context.Context, id scholar.ID) (work scholar.Work, err error) {
	err = r.indexes.do(ctx, func() error {
		skip := func(index string) error { return r.tired[index].open() }
		work, _ = r.cfg.Indexes.Standing(ctx, skip, id) // who failed is in the work
		for _, a := range work.Asked {
			if b := r.tired[a.Index]; ctx.Err() == nil && b.open() == nil {
				var failed error
				if a.Code != "" {
					failed = marchwarden.Errorf(a.Code, "%s", a.Fault)
				}
				b.note(failed)
			}
		}
		return nil
	})
	return work, err
}

// note adds what standing says of a retraction.
func (s *Status) note(w scholar.Work, err error) {
	more := ""
	switch {
	case w.Retracted:
		s.Retracted, s.Notice = true, w.Notice
		if w.Notice == "" && w.NoticeBy != "" {
			more = "says " + w.NoticeBy
		}
	case w.Concern:
		more = strings.TrimSpace("there is an expression of concern " + w.Notice)
	case err != nil:
		s.Doubt = line(err)
	}
	for _, a := range w.Asked {
		if a.Code != "" && !w.Retracted && s.Doubt == "" {
			s.Doubt = a.Fault
		}
	}
	if len(w.Asked) == 0 && s.Doubt == "" {
		s.Doubt = "the check was stopped"
	}
	if more != "" {
		s.Detail = strings.TrimPrefix(s.Detail+"; "+more, "; ")
	}
}
