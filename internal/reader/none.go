//go:build nomodel

package reader

// New gives ErrNoModel: the program was built without its model.
func New() (Reader, error) { return nil, ErrNoModel }
