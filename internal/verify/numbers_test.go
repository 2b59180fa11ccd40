package verify

import "testing"

func TestLackedNumbers(t *testing.T) {
	for _, c := range []struct {
		sentence, text string
		want           bool
	}{
		{"It cost 1000 dollars.", "It cost 1,000 dollars.", false},
		{"It cost 1,200,000 dollars.", "It cost 1.2 million dollars.", false},
		{"It cost 1.2 million dollars.", "It cost $1,200,000.", false},
		{"It cost 1.2 million dollars.", "It cost 1.2 billion dollars.", true},
		{"It has 12 floors.", "It has twelve floors.", false},
		{"It has 21 floors.", "It has twenty-one floors.", false},
		{"It has 300 rooms.", "It has three hundred rooms.", false},
		{"It has 36 rooms.", "It has three dozen rooms.", false},
		{"It was the 22nd.", "It was the twenty-second.", false},
		{"It has 20 floors.", "It has twelve floors.", true},
		{"It was the 3rd.", "It was the third.", false},
		{"It was built in 1937.", "Work went on from 1934 to 1937.", false},
		{"It was built in 1938.", "Work went on from 1934 to 1937.", true},
		{"It fell by 10%.", "It fell by 10 percent.", false},
		{"It fell by 10%.", "It fell by 11 percent.", true},
		{"On 12 October 2020 it fell.", "October 12, 2020: it fell.", false},
		{"On 12 October 2020 it fell.", "It fell (2020-10-12).", false},
		{"On 13 October 2020 it fell.", "On 12 October 2020 it fell.", true},
		{"In the 1990s it grew.", "In the 1990s it grew.", false},
		{"The charge is fifteen hundred euros.", "The charge is 1,500 euros.", false},
		{"It takes two weeks.", "It takes 2 weeks.", false},
		{"It takes three weeks.", "It takes 2 weeks.", true},
		{"COVID-19 spread.", "The disease spread.", false},
		{"No number here.", "", false},
		{"It holds 50% of it.", "It holds half of it.", false},
	} {
		if got := numbersOf(c.text).lacked(c.sentence); (len(got) > 0) != c.want {
			t.Errorf("%q by %q: %q", c.sentence, c.text, got)
		}
	}
}
