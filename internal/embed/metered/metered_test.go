package metered_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/metered"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// How a run is metered and recorded is tested where runs are, in package loop.

type service struct{ id string }

func (s service) ID() string { return s.id }

func (service) Embed(context.Context, []string) ([]embed.Vector, error) {
	return nil, errors.New("down")
}

type encoder struct{ service }

func (encoder) Pure() {}

// What a start says of vectors decides what they are made by.
func TestRecall(t *testing.T) {
	t.Parallel()
	has := func(e embed.Embedder) func(string) (embed.Embedder, error) {
		return func(string) (embed.Embedder, error) { return e, nil }
	}
	pure, paid := encoder{service{"pure/1"}}, service{"paid/1"}
	for name, tt := range map[string]struct {
		made, has      embed.Embedder
		recall, goesOn marchwarden.Code // of the error
		nothing        bool             // there is none
	}{
		"without":                    {nil, pure, "", "", true},
		"the same":                   {pure, pure, "", "", false},
		"the same service":           {paid, paid, "", "", false},
		"without what made them":     {pure, nil, marchwarden.CodeUnsupported, marchwarden.CodeUnsupported, true},
		"with another":               {pure, encoder{service{"pure/2"}}, marchwarden.CodeUnsupported, marchwarden.CodeUnsupported, true},
		"recorded, the service gone": {paid, nil, "", marchwarden.CodeInvalid, true},
		"recorded, another service":  {paid, service{"paid/2"}, "", marchwarden.CodeInvalid, true},
	} {
		start := &trace.Start{Instruments: trace.Instruments{Vectors: "left over", VectorsRecorded: true}}
		metered.Describe(start, tt.made)
		e, err := metered.Recall(start, has(tt.has))
		if marchwarden.CodeOf(err) != tt.recall || (e == nil) != tt.nothing {
			t.Errorf("%s: %v, %v", name, e, err)
		}
		e, err = metered.GoOn(start, has(tt.has))
		if marchwarden.CodeOf(err) != tt.goesOn || (e == nil) != tt.nothing {
			t.Errorf("%s goes on: %v, %v", name, e, err)
		}
		if err != nil && (marchwarden.HintOf(err) == "" || !strings.Contains(err.Error(), start.Vectors)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An engine gets an embedder that is heard, and one that needs no hearing as it is.
func TestHeard(t *testing.T) {
	t.Parallel()
	if metered.Heard(nil) != nil {
		t.Error("something out of nothing")
	}
	if _, ok := metered.Heard(encoder{service{"pure/1"}}).(embed.Pure); !ok {
		t.Error("it is no longer known that it gives the same everywhere")
	}
	e := metered.Heard(service{"paid/1"})
	if _, err := e.Embed(t.Context(), []string{"x"}); err == nil || e.ID() != "paid/1" {
		t.Errorf("%s: %v", e.ID(), err) // outside of a run there is no listener, which is fine
	}
}
