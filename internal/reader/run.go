package reader

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Describe writes down in the start of a run what makes its vectors, and who reads with them; nil is
// nothing.
func Describe(start *trace.Start, e embed.Embedder) {
	start.Vectors, start.Reader = "", ""
	if e != nil {
		start.Vectors, start.Reader = e.ID(), ID
	}
}

// Of is what reads in a run that began so: nil for a run without. A run whose reader this program
// does not have would go another way: that is CodeUnsupported.
func Of(start *trace.Start) (Reader, error) {
	if start.Reader == "" {
		return nil, nil
	}
	if start.Reader != ID {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported,
			Message: "the run was made with the reader " + start.Reader + ", which this program does not have",
			Hint:    "use the version of the program that made it"}
	}
	return New(), nil
}

// VectorsOf finds what makes the vectors of a recorded run, which is run again or resumed: of is
// asked for the embedder of an id, and is nil or gives nil where there is none. It is nil for a run without vectors. A
// run whose vectors cannot be had would go another way: that is CodeUnsupported.
func VectorsOf(start *trace.Start, of func(id string) embed.Embedder) (embed.Embedder, error) {
	if start.Vectors == "" {
		return nil, nil
	}
	var e embed.Embedder
	if of != nil {
		e = of(start.Vectors)
	}
	if e == nil || e.ID() != start.Vectors {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported,
			Message: "the run was made with the sentence vectors of " + start.Vectors + ", which this program does not have",
			Hint:    "'marchwarden verify' still checks its answer; the version that made it can execute it again"}
	}
	return e, nil
}
