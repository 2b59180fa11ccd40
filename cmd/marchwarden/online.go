package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	vectorshelf "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/shelf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/kernel"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/minilm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// servicePart is a service that a research may use, and how to try it.
type servicePart struct {
	partRow
	// try calls it and may say what it saw; nil when there is nothing to try.
	try func(ctx context.Context) (said string, err error)
	// engine marks the search engines. One that the user did not name is a stand-in: where another
	// engine answers, it is not missed.
	engine, standIn bool
	// crowded marks a service that is shared with all the world, and may have no
	// room at the moment without being broken.
	crowded bool
}

// servicePartsOf looks at models, search engines, indexes of papers, the database
// and the browser as they are configured. Nothing is called.
func (a *app) servicePartsOf(c *settings.Settings) []servicePart {
	parts := []servicePart{a.modelPart(c, "model for the web", true), a.modelPart(c, "model for files", false)}
	if c.Text(settings.Fallback) != "" {
		parts = append(parts, a.fallbackPart(c))
	}
	parts = append(parts, a.vectorPart(c))
	for _, k := range network.EngineKinds {
		parts = append(parts, a.enginePart(c, k))
	}
	parts = append(append(parts, a.paperParts(c)...), a.databasePart(c))
	return append(parts, servicePart{partRow: browserPart(c)}, servicePart{partRow: allowPart(c)})
}

func (a *app) modelPart(c *settings.Settings, name string, public bool) servicePart {
	chosen := network.ChooseModel(c, "", public)
	model, err := a.BareModel(c, chosen.Name, chosen.Origin) // itself, without a stand-in
	switch {
	case err != nil:
		return servicePart{partRow: partRow{name, partBroken, err.Error()}}
	case model == nil && public:
		return servicePart{partRow: partRow{name, partOK, extractive.New().ID() + ": no model is set; ANTHROPIC_API_KEY, OPENAI_API_KEY or MARCHWARDEN_MODEL would add one"}}
	case model == nil:
		return servicePart{partRow: partRow{name, partOK, extractive.New().ID() + ": your documents go to a model only if --model or MARCHWARDEN_MODEL names one"}}
	}
	part := servicePart{partRow: partRow{name, partOK, model.ID() + " (by " + chosen.Origin + ")"}}
	if public || network.ChooseModel(c, "", true) != chosen {
		part.try = func(ctx context.Context) (string, error) { return "", tryModel(ctx, model) }
	}
	return part
}

func (a *app) fallbackPart(c *settings.Settings) servicePart {
	model, err := a.BareModel(c, c.Text(settings.Fallback), c.Label(settings.Fallback))
	if err != nil {
		return servicePart{partRow: partRow{"fallback model", partBroken, err.Error()}}
	}
	if model == nil {
		return servicePart{partRow: partRow{"fallback model", partOff, "none"}}
	}
	return servicePart{partRow: partRow{"fallback model", partOK, model.ID()}, try: func(ctx context.Context) (string, error) { return "", tryModel(ctx, model) }}
}

// tryModel makes the smallest call there is.
func tryModel(ctx context.Context, m llm.Model) error {
	_, err := m.Generate(ctx, llm.Call{Prompt: "doctor", System: "Answer with one word.", Input: "Say ok.", MaxTokens: 64})
	return err
}

func (a *app) enginePart(c *settings.Settings, k network.EngineKind) servicePart {
	row := partRow{"search by " + k.Name, partOK, "needs no key; asked last"}
	all := len(c.List(settings.Search)) == 0
	named := slices.Contains(c.List(settings.Search), k.Name)
	switch {
	case !k.Configured(c) && named:
		return servicePart{partRow: partRow{row.Name, partBroken, c.Label(settings.Search) + " names it, and " + settings.EnvOf(k.Needs) + " is not set"}}
	case !k.Configured(c):
		return servicePart{partRow: partRow{row.Name, partOff, settings.EnvOf(k.Needs) + " is not set"}}
	case !all && !named:
		return servicePart{partRow: partRow{row.Name, partOff, "not named by " + c.Label(settings.Search)}}
	case k.Needs != "":
		row.Detail = "set by " + c.Label(k.Needs)
	}
	engine := a.OpenEngine(c, k)
	return servicePart{partRow: row, engine: true, standIn: k.Needs == "", try: func(ctx context.Context) (string, error) {
		_, err := engine.Search(ctx, search.Query{Text: "encyclopedia", Limit: 1})
		return "", err
	}}
}

func browserPart(c *settings.Settings) partRow {
	const name = "browser"
	path, ok := network.FindChromium(c)
	switch {
	case c.Text(settings.Render) == settings.RenderNever:
		return partRow{name, partOff, "MARCHWARDEN_RENDER is never"}
	case ok && !network.RendersPages(c, ""):
		return partRow{name, partOff, "Chromium has no sandbox for root; --render auto or MARCHWARDEN_RENDER=auto uses it all the same"}
	case network.ChromiumProblem(c) != "":
		return partRow{name, partBroken, network.ChromiumProblem(c)}
	case !ok:
		return partRow{name, partOff, "no Chromium or Chrome is installed; pages that need JavaScript are read without it"}
	}
	return partRow{name, partOK, path + ", for pages that need JavaScript"}
}

func allowPart(c *settings.Settings) partRow {
	const name = "private addresses"
	allow, err := network.FetchAllow(c)
	if err != nil {
		return partRow{name, partBroken, err.Error()}
	}
	if list := c.List(settings.FetchAllow); len(list) > 0 {
		detail := "pages may be fetched from " + strings.Join(list, ", ") + ", on every port"
		if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
			detail += "; warning: that is every address, those of this machine, your network and cloud metadata included"
		}
		return partRow{name, partOK, detail}
	}
	return partRow{name, partOff, "never fetched; MARCHWARDEN_FETCH_ALLOW opens ranges on purpose"}
}

// tryTime is how long one service may take to answer doctor.
const tryTime = 20 * time.Second

// tryOnline calls every service that is set, all together, and says how it went.
func (a *app) tryOnline(ctx context.Context, parts []servicePart) []partRow {
	rows := make([]partRow, len(parts))
	var running sync.WaitGroup
	for i, p := range parts {
		rows[i] = p.partRow
		if p.try == nil {
			continue
		}
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, tryTime)
			defer cancel()
			began := a.Now()
			said, err := p.try(ctx)
			switch {
			case err != nil && p.crowded && errors.Is(err, marchwarden.CodeRateLimited):
				rows[i].State, said = partOff, "no room at the moment: "+onlineFault(err)
			case err != nil:
				rows[i].State, said = partBroken, onlineFault(err)
			case said == "":
				said = fmt.Sprintf("answered in %.1f s", a.Now().Sub(began).Seconds())
			}
			rows[i].Detail += "; " + said
		})
	}
	running.Wait()
	excuse(parts, rows)
	return rows
}

// excuse takes a stand-in that failed for off where another engine answered.
func excuse(parts []servicePart, rows []partRow) {
	answered := false
	for i, p := range parts {
		answered = answered || p.engine && rows[i].State == partOK
	}
	for i, p := range parts {
		if p.standIn && rows[i].State == partBroken && answered {
			rows[i].State = partOff
			rows[i].Detail += "; not missed, as another engine answered"
		}
	}
}

func onlineFault(err error) string {
	s := err.Error()
	if hint := marchwarden.HintOf(err); hint != "" {
		s += " (" + hint + ")"
	}
	return s
}

// vectorPart is the row of doctor, with a way to try a service.
func (a *app) vectorPart(c *settings.Settings) servicePart {
	row := partRow{"sentence vectors", partOK, ""}
	e, err := a.BareEmbedder(c)
	switch {
	case errors.Is(err, minilm.ErrNoModel):
		row.State, row.Detail = partOff, err.Error()+"; texts are compared by their words alone, and answers are picked without the reader"
	case err != nil:
		row.State, row.Detail = partBroken, err.Error()
	case e == nil:
		row.State, row.Detail = partOff, c.Label(settings.Embed)+" is off; texts are compared by their words alone, and answers are picked without the reader"
	}
	if e == nil {
		return servicePart{partRow: row}
	}
	if _, pure := e.(embed.Pure); pure {
		row.Detail = e.ID() + " on this machine, " + kernel.Best().Name + " arithmetic; answers are picked by " + reader.ID
		return servicePart{partRow: row}
	}
	row.Detail = e.ID() + " (by " + c.Label(settings.Embed) + "): what is searched and read is sent there"
	return servicePart{partRow: row, try: func(ctx context.Context) (string, error) {
		vs, err := e.Embed(ctx, []string{"ok"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("vectors of %d numbers", len(vs[0])), nil
	}}
}

// keptVectors says how many vectors were made before.
func keptVectors(c *settings.Settings) partRow {
	size, n, err := vectorshelf.Size(c.VectorsPath())
	switch {
	case err != nil:
		return partRow{"kept vectors", partOff, "cannot be read, and are made again: " + durable.Cause(err)}
	case n == 0:
		return partRow{"kept vectors", partOff, "none yet; the first question makes some"}
	}
	return partRow{"kept vectors", partOK, fmt.Sprintf("%s, %s in %s; may be deleted", term.Count(n), term.Bytes(size), c.VectorsPath())}
}
