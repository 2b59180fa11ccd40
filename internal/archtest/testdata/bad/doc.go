// Package marchwarden is a root package that imports a third-party module, in a
// tree that breaks every rule.
package marchwarden

import (
	_ "golang.org/x/sync/errgroup"
)
