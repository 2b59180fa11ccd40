// Package marchwarden is the research contract, version 1: the boundary between a researcher and
// its caller.
//
// A caller sends a [Request] to a [Researcher] and gets a [Result]. Every
// factual sentence of the answer carries markers like [1] that index the
// result's citations, and every [Citation] holds an excerpt that stands
// byte for byte in a document which was fetched and is stored. What could not
// be found is a [Gap] with a category; what was met on the way and not followed
// is a [DiscoveryEvent] or an [OpenQuestion]; how far to trust the answer is a
// number with the [ConfidenceFactors] it was computed from.
//
//	req := marchwarden.Request{Question: "What is the capital of France?", Depth: marchwarden.Shallow}
//	if err := req.Validate(); err != nil { … }            // names the field and the limit
//	res, err := researcher.Research(ctx, req, nil)         // a result with gaps beats an error
//
// The types are the wire form: their JSON names are the contract's names.
// Adding an optional field keeps version 1; removing one, or changing a type or
// whether it is required, makes version 2.
//
// The package imports the standard library only, and nothing in it reads a
// clock, the environment or the network.
package marchwarden

// ContractVersion is the version of the contract that these types are.
const ContractVersion = "v1"
