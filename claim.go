package marchwarden

// Claim is one factual sentence of the answer with its evidence.
type Claim struct {
	Text string `json:"text"`
	// Citations index Result.Citations, counted from one like the markers.
	Citations []int   `json:"citations"`
	Support   Support `json:"support"`
	// Judge is who gave the verdict, such as JudgeLocal; "" is not known, or that
	// there was nothing to judge.
	Judge string `json:"judge,omitempty"`
}

// The judges of this program.
const (
	JudgeLocal = "local"       // the judge without a model
	JudgeBoth  = "model+local" // a model, and that one on what the model said
)

// Support is the verdict on a claim against its excerpts. A verdict that could
// not be reached is Unchecked, which is not the same as Unsupported.
type Support string

// The verdicts.
const (
	Supported   Support = "supported"
	Partial     Support = "partial"
	Unsupported Support = "unsupported"
	Unchecked   Support = "unchecked"
	// Quoted is a claim that is copied from its source. That says nothing about the
	// question.
	Quoted Support = "quoted"
)

// Stands reports whether the excerpts say what the claim says: they were judged to,
// or it is theirs.
func (s Support) Stands() bool { return s == Supported || s == Quoted }

// Contradiction is two excerpts that cannot both hold, side by side.
type Contradiction struct {
	Subject   string `json:"subject"`   // what both speak of
	Attribute string `json:"attribute"` // what they disagree on
	A         Side   `json:"a"`
	B         Side   `json:"b"`
	Detail    string `json:"detail"` // the disagreement in one sentence
}

// Side is one half of a contradiction.
type Side struct {
	Locator    string `json:"locator"`
	RawExcerpt string `json:"raw_excerpt"`
	Value      string `json:"value,omitempty"`
	// What is known of the source, for a reader who has to weigh the two sides.
	Title      string    `json:"title,omitempty"`
	Published  string    `json:"published,omitempty"` // 2006-01-02
	Authority  Authority `json:"authority,omitempty"`
	Researcher string    `json:"researcher,omitempty"` // who reported it
}
