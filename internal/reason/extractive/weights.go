package extractive

// scale is how features become scores: the weights of an answer, the line that says how
// likely what is said is right, and the one that says whether there is an answer at all.
type scale struct {
	weights       [numFeatures]float64
	closer        [numFeatures]float64 // after a closer look
	right, exists [numOdds + 1]float64
	refuse        float64 // odds of there being an answer under which nothing is said
	hedge         float64 // probability of being right under which it is said as partly supported
}

// The scales are fitted by tools/reader/score.py on questions whose answers are known;
// docs/reader.md says on which, and what came of it.
var (
	withReader = scale{
		weights: [numFeatures]float64{featAnswers: 0.058, featAbout: 0.138, featSpan: 0.223, featOwn: 2.027, featWindow: 0.907, featRank: 1.113, featNear: 0.927, featNames: -0.451, featNumbers: -0.151, featDate: 0.360, featThin: -0.275},
		closer:  [numFeatures]float64{featAnswers: -0.160, featAbout: 0.185, featSpan: 0.164, featOwn: 1.462, featWindow: 0.738, featRank: 0.905, featNear: 0.469, featNames: -0.116, featNumbers: -0.224, featDate: 0.288, featThin: -0.083, featCloserAnswers: 0.148, featCloserAbout: 0.316, featCloserSpan: -0.104, featCloserNear: 0.933},
		right:   [numOdds + 1]float64{featAnswers: 0.136, featRank: 1.039, oddsMargin: 0.475, oddsMost: 0.111, numOdds: -1.378},
		exists:  [numOdds + 1]float64{featAnswers: 0.163, featAbout: -0.101, featSpan: -0.011, featOwn: -0.179, featWindow: -2.006, featRank: 1.068, featNear: -1.121, featNames: -0.972, featNumbers: -1.934, featDate: 0.632, featThin: 1.293, featCloserAnswers: 0.303, featCloserAbout: -0.182, featCloserSpan: -0.015, featCloserNear: 1.179, oddsScore: -0.172, oddsMargin: -0.014, oddsMost: 0.245, oddsSpan: 0.061, numOdds: 2.012},
		hedge:   0.4,
		refuse:  -0.861,
	}
	withoutReader = scale{
		weights: [numFeatures]float64{featOwn: 3.723, featWindow: 2.267, featRank: 2.146, featNames: -0.489, featNumbers: -0.271, featDate: 0.229, featThin: -0.268},
		right:   [numOdds + 1]float64{featOwn: -0.064, featWindow: 1.652, featRank: 0.437, featNames: -0.780, featNumbers: -0.901, featDate: 0.858, featThin: -3.488, oddsScore: 0.113, oddsMargin: 0.299, numOdds: -3.627},
		exists:  [numOdds + 1]float64{featOwn: 0.435, featWindow: -0.874, featRank: -1.984, featNames: -1.663, featNumbers: -1.723, featDate: 0.513, featThin: -0.243, oddsScore: -0.002, oddsMargin: -0.169, numOdds: 2.895},
		hedge:   0.15,
		refuse:  -0.322,
	}
)
