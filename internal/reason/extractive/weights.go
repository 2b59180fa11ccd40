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
		weights: [numFeatures]float64{featAnswers: -0.382, featAbout: 0.501, featSpan: 0.219, featOwn: 1.863, featWindow: 0.949, featRank: 1.217, featNear: 1.052, featNames: -0.321, featNumbers: -0.288, featDate: 0.170, featThin: -0.291},
		closer:  [numFeatures]float64{featAnswers: -0.251, featAbout: 0.264, featSpan: 0.147, featOwn: 1.258, featWindow: 0.823, featRank: 0.971, featNear: 0.641, featNames: -0.189, featNumbers: -0.134, featDate: 0.140, featThin: -0.162, featCloserAnswers: -0.114, featCloserAbout: 0.513, featCloserSpan: -0.070, featCloserNear: 0.901},
		right:   [numOdds + 1]float64{featAnswers: 0.119, featAbout: -0.007, featSpan: 0.011, featOwn: -0.600, featWindow: 0.580, featRank: 0.835, featNear: 1.039, featNames: -0.636, featNumbers: -1.231, featDate: 0.738, featThin: -1.850, featCloserAnswers: -0.006, featCloserAbout: -0.034, featCloserSpan: 0.050, featCloserNear: 1.998, oddsScore: -0.130, oddsMargin: 0.407, oddsMost: 0.115, oddsSpan: -0.013, numOdds: -1.889},
		exists:  [numOdds + 1]float64{featAnswers: 0.092, featAbout: -0.007, featOwn: -0.196, featWindow: -1.079, featRank: 1.048, featNear: -0.070, featNames: -1.176, featNumbers: -1.647, featDate: 0.482, featThin: -0.096, featCloserAnswers: 0.090, featCloserAbout: -0.089, featCloserSpan: 0.045, featCloserNear: 1.140, oddsScore: -0.210, oddsMargin: 0.146, oddsMost: 0.220, oddsSpan: -0.009, numOdds: 0.896},
		hedge:   0.4,
		refuse:  -0.629,
	}
	withoutReader = scale{
		weights: [numFeatures]float64{featOwn: 3.723, featWindow: 2.267, featRank: 2.146, featNames: -0.489, featNumbers: -0.271, featDate: 0.229, featThin: -0.268},
		right:   [numOdds + 1]float64{featOwn: -0.064, featWindow: 1.652, featRank: 0.437, featNames: -0.780, featNumbers: -0.901, featDate: 0.858, featThin: -3.488, oddsScore: 0.113, oddsMargin: 0.299, numOdds: -3.627},
		exists:  [numOdds + 1]float64{featOwn: 0.435, featWindow: -0.874, featRank: -1.984, featNames: -1.663, featNumbers: -1.723, featDate: 0.513, featThin: -0.243, oddsScore: -0.002, oddsMargin: -0.169, numOdds: 2.895},
		hedge:   0.15,
		refuse:  -0.322,
	}
)
