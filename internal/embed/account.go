package embed

// This part is how an embedder that costs money asks the payer, by the context of the call: a cache
// in between knows nothing of it. It owns the interface alone; what may be spent is decided by
// package embed/metered.

import "context"

// Account pays for embedded texts. It is safe for concurrent use.
type Account interface {
	// Reserve sets tokens aside for one request, or refuses. settle is called once,
	// with what the request has really used; a request that failed has used nothing
	// unless its service says so.
	Reserve(tokens int) (settle func(used int), err error)
}

type accountKey struct{}

// WithAccount has an account pay for what is embedded under the context.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// AccountOf is the account of a context; without one everything is granted and nothing is counted.
func AccountOf(ctx context.Context) Account {
	if a, ok := ctx.Value(accountKey{}).(Account); ok {
		return a
	}
	return free{}
}

type free struct{}

func (free) Reserve(int) (func(int), error) { return func(int) {}, nil }
