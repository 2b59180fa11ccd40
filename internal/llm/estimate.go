package llm

import "unicode"

// Overheads of a request that no text shows, in tokens. They are measured:
// TestEstimateAgainstProviders holds them against recorded exchanges.
const (
	callOverhead = 96  // roles and separators of a call, and what a model's chat template adds
	toolOverhead = 24  // the frame of one tool
	toolsPrompt  = 420 // what a provider tells its model about tools, when there are any
	schemaPrompt = 64  // what it tells it about a schema
)

// longWord is the length from which a run of letters is taken for no word:
// tokenizers know words, and make twice as much of a key or a hash.
const longWord = 16

// EstimateText counts the tokens of a text, on the high side: a word counts one
// token for each four letters begun, the letters of a run too long for a word one
// for two, and every digit pair, mark and line end one; letters outside ASCII
// count by their bytes. Tokenizers in use stay below it for prose, markup,
// numbers and code, so that a reservation holds.
func EstimateText(s string) int {
	tokens, letters, digits := 0, 0, 0
	flush := func() {
		word := min(letters, longWord)
		tokens += (word+3)/4 + (letters-word+1)/2 + (digits+1)/2
		letters, digits = 0, 0
	}
	lower := false // the letter before was a small one
	for _, r := range s {
		small := r >= 'a' && r <= 'z'
		switch {
		case small || r >= 'A' && r <= 'Z':
			if digits > 0 || lower && !small {
				flush()
			}
			letters++
		case r >= '0' && r <= '9':
			if letters > 0 {
				flush()
			}
			digits++
		case r == ' ':
			flush()
		case r < 0x80:
			flush()
			tokens++
		case unicode.IsLetter(r) && r < 0x250: // Latin with marks: two letters' worth
			letters += 2
		case r < 0x800:
			flush()
			tokens++
		default:
			flush()
			tokens += 2
		}
		lower = small
	}
	flush()
	return tokens
}

// Estimate counts the input tokens of a call, on the high side.
func Estimate(c Call) int {
	n := callOverhead + EstimateText(c.System) + EstimateText(c.Input)
	if len(c.Schema) > 0 {
		n += schemaPrompt + EstimateText(string(c.Schema))
	}
	for _, t := range c.Tools {
		n += toolOverhead + EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(string(t.Schema))
	}
	if len(c.Tools) > 0 {
		n += toolsPrompt
	}
	return n
}
