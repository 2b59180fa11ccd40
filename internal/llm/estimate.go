package llm

import "unicode"

// Overheads of a request that no text shows, in tokens.
const (
	callOverhead = 24  // roles and separators of a call
	toolOverhead = 24  // the frame of one tool
	toolsPrompt  = 350 // what a provider tells its model about tools, when there are any
)

// EstimateText counts the tokens of a text, on the high side: a word counts one
// token for each four letters begun, and every digit pair, mark and line end one;
// letters outside ASCII count by their bytes. Tokenizers in use stay below it
// for prose, markup, numbers and code, so that a reservation holds.
func EstimateText(s string) int {
	tokens, letters, digits := 0, 0, 0
	flush := func() {
		tokens += (letters+3)/4 + (digits+1)/2
		letters, digits = 0, 0
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			if digits > 0 {
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
	}
	flush()
	return tokens
}

// Estimate counts the input tokens of a call, on the high side.
func Estimate(c Call) int {
	n := callOverhead + EstimateText(c.System) + EstimateText(c.Input) + EstimateText(string(c.Schema))
	for _, t := range c.Tools {
		n += toolOverhead + EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(string(t.Schema))
	}
	if len(c.Tools) > 0 {
		n += toolsPrompt
	}
	return n
}
