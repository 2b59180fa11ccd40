package extractive

// scale is how features become scores: the weights of an answer, the line that says how
// likely the best one is right, and the one that says whether there is an answer at all.
type scale struct {
	weights       [numFeatures]float64
	right, exists [numOdds + 1]float64
	refuse        float64 // odds of there being an answer under which nothing is said
	hedge         float64 // probability of being right under which it is said as partly supported
}

// The scales are fitted by tools/reader/score.py on questions whose answers are known;
// docs/reader.md says on which, and what came of it.
var (
	withReader = scale{
		weights: [numFeatures]float64{featAnswers: -0.403, featAbout: 0.560, featSpan: 0.211, featOwn: 2.060, featWindow: 0.835, featRank: 0.676, featNear: 1.064, featNames: -0.119, featNumbers: -0.018, featDate: 0.185, featThin: -0.163},
		right:   [numOdds + 1]float64{featAnswers: 0.095, featAbout: 0.077, featSpan: 0.019, featOwn: -0.307, featWindow: -0.109, featRank: 0.719, featNear: 1.798, featNames: -0.886, featNumbers: -1.046, featDate: 0.954, featThin: 0.935, oddsScore: 0.065, oddsMargin: 0.434, oddsMost: 0.004, oddsSpan: -0.024, numOdds: -2.550},
		exists:  [numOdds + 1]float64{featAnswers: 0.125, featAbout: 0.015, featSpan: 0.018, featOwn: -0.450, featWindow: -0.562, featRank: 0.241, featNear: 0.149, featNames: -1.594, featNumbers: -1.811, featDate: 0.352, featThin: 0.474, oddsScore: -0.090, oddsMargin: -0.157, oddsMost: 0.145, oddsSpan: 0.007, numOdds: 1.389},
		hedge:   0.4,
		refuse:  -1.096,
	}
	withoutReader = scale{
		weights: [numFeatures]float64{featOwn: 3.723, featWindow: 2.267, featRank: 2.146, featNames: -0.489, featNumbers: -0.271, featDate: 0.229, featThin: -0.268},
		right:   [numOdds + 1]float64{featOwn: -0.064, featWindow: 1.652, featRank: 0.437, featNames: -0.780, featNumbers: -0.901, featDate: 0.858, featThin: -3.488, oddsScore: 0.113, oddsMargin: 0.299, numOdds: -3.627},
		exists:  [numOdds + 1]float64{featOwn: 0.435, featWindow: -0.874, featRank: -1.984, featNames: -1.663, featNumbers: -1.723, featDate: 0.513, featThin: -0.243, oddsScore: -0.002, oddsMargin: -0.169, numOdds: 2.895},
		hedge:   0.15,
		refuse:  -0.322,
	}
)
