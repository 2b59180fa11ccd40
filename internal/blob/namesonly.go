package blob

import "context"

// NamesOnly is a store that reads from s and keeps nothing: Put only names its
// content. A rerun has it, whose outcomes are stored already.
func NamesOnly(s Store) Store { return namesOnly{s} }

type namesOnly struct{ Store }

func (namesOnly) Put(_ context.Context, content []byte) (Ref, error) { return Of(content), nil }
