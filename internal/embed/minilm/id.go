// Package minilm is the sentence encoder that comes with the program:
// all-MiniLM-L6-v2, 384 dimensions, English. It owns the weights and the vocabulary
// and nothing else; the file NOTICE beside them says where they come from. Building
// with -tags nomodel leaves both out, which is why they stand apart.
package minilm

import "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"

// ID names the model and the arithmetic: a change of either that changes a bit of
// any vector changes the number behind the slash.
const ID = "minilm-l6-v2-q8/1"

// ErrNoModel says that the program was built with -tags nomodel. It is of
// CodeUnsupported.
var ErrNoModel error = &marchwarden.Error{
	Code:    marchwarden.CodeUnsupported,
	Message: "this program was built without its sentence encoder",
	Hint:    "build it without -tags nomodel, or set MARCHWARDEN_EMBED to a service",
}
