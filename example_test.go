package marchwarden_test

import (
	"fmt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func ExampleRequest_Limits() {
	iterations := 3
	r := marchwarden.Request{
		Question:    "What are ideal crops for a garden in Utah?",
		Depth:       marchwarden.Deep,
		Constraints: &marchwarden.Constraints{MaxIterations: &iterations},
	}
	l := r.Limits()
	fmt.Println(l.MaxIterations, l.TokenBudget, l.MaxSources)
	// Output: 3 60000 20
}

func ExampleSourceFilter_Allows() {
	f, err := marchwarden.ParseSourceFilter(".edu,nasa.gov")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, host := range []string{"www.nasa.gov", "notnasa.gov", "usu.edu", "nasa.gov.example"} {
		fmt.Println(host, f.Allows(host))
	}
	// Output:
	// www.nasa.gov true
	// notnasa.gov false
	// usu.edu true
	// nasa.gov.example false
}

func ExampleRequest_Validate() {
	fmt.Println(marchwarden.Request{Question: "Why?", Depth: "thorough"}.Validate())
	// Output: depth: must be shallow, balanced or deep, not "thorough"
}
