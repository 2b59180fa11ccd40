package marchwarden

// Choice says who may be asked, and with what. A run records it, and resumes by it.
// The zero value leaves everything to the settings.
type Choice struct {
	// Researcher is the one that is asked; "" or "pi" is the investigator.
	Researcher string `json:"researcher,omitempty"`
	// Researchers are those whom the investigator may ask; none means all that there are.
	Researchers []string `json:"researchers,omitempty"`
	// Online lets questions leave this machine: the web and arXiv are asked, too.
	Online bool `json:"online,omitempty"`
	// Isolate gives each built-in researcher a process of its own.
	Isolate bool `json:"isolate,omitempty"`
	// Library are folders to search, and Embedded adds the documents of the program.
	Library  []string `json:"library,omitempty"`
	Embedded bool     `json:"embedded,omitempty"`
	// DB is the address of a database. One with a password is never recorded.
	DB string `json:"db,omitempty"`
	// AllowSamples lets values of the database be shown to the model before it asks.
	AllowSamples bool `json:"allow_samples,omitempty"`
	// Model is the language model that plans and writes.
	Model string `json:"model,omitempty"`
	// Search names the engines of the web.
	Search string `json:"search,omitempty"`
	// Parallel is how many researchers work at once, MaxRihlas how many are sent in all;
	// 0 is the default.
	Parallel  int `json:"parallel,omitempty"`
	MaxRihlas int `json:"max_rihlas,omitempty"`
	// AllowEgress names the private researchers whose findings others may be told.
	AllowEgress []string `json:"allow_egress,omitempty"`
}
