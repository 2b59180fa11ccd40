package marchwarden

import "cmp"

// Gap is something that was looked for and not found, and why.
type Gap struct {
	Topic    string      `json:"topic"`
	Category GapCategory `json:"category"`
	Detail   string      `json:"detail"`
}

// GapCategory decides what a caller can do about a gap.
type GapCategory string

// The categories. A failed service is never SourceNotFound.
const (
	SourceNotFound       GapCategory = "source_not_found"      // nothing in this researcher's domain
	AccessDenied         GapCategory = "access_denied"         // a page or a service refused or failed
	BudgetExhausted      GapCategory = "budget_exhausted"      // a cap, a deadline or the caller ended the work first
	ContradictorySources GapCategory = "contradictory_sources" // sources disagree and it cannot be resolved
	ScopeExceeded        GapCategory = "scope_exceeded"        // needs another kind of researcher
)

// Known reports whether a category is one of the contract's.
func (c GapCategory) Known() bool { return known(c) }

// gapCategories is the one table from error code to gap category.
var gapCategories = map[Code]GapCategory{
	CodeInvalid:     AccessDenied, // a service that refuses what it is sent; the question is not to blame
	CodeNotFound:    SourceNotFound,
	CodeDenied:      AccessDenied,
	CodeUnavailable: AccessDenied,
	CodeExhausted:   BudgetExhausted,
	CodeCanceled:    BudgetExhausted,
	CodeUnsupported: ScopeExceeded,
	CodeCorrupt:     AccessDenied,
	CodeNotRecorded: AccessDenied,
	CodeRateLimited: AccessDenied,
	CodeTimeout:     AccessDenied,
	CodeTruncated:   AccessDenied,
	CodeMalformed:   AccessDenied,
	CodeRefused:     AccessDenied,
	CodeInternal:    AccessDenied,
}

// GapFor turns a failure met while working on a topic into a gap. Its detail is
// the error's sentence and its hint, which carry no secret because errors never
// do. A code from a newer version is a failed service: AccessDenied. err must not be nil.
func GapFor(topic string, err error) Gap {
	category := cmp.Or(gapCategories[CodeOf(err)], AccessDenied)
	detail := err.Error()
	if hint := HintOf(err); hint != "" {
		detail += " (" + hint + ")"
	}
	return Gap{Topic: topic, Category: category, Detail: detail}
}
