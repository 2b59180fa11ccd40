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
		weights: [numFeatures]float64{featAnswers: -0.309, featAbout: 0.417, featSpan: 0.208, featOwn: 2.083, featWindow: 0.903, featRank: 1.199, featNear: 1.035, featNames: -0.430, featNumbers: -0.099, featDate: 0.304, featThin: -0.264},
		closer:  [numFeatures]float64{featAnswers: -0.287, featAbout: 0.248, featSpan: 0.152, featOwn: 1.553, featWindow: 0.802, featRank: 0.921, featNear: 0.534, featNames: -0.203, featNumbers: -0.189, featDate: 0.262, featThin: -0.114, featCloserAnswers: 0.089, featCloserAbout: 0.296, featCloserSpan: -0.066, featCloserNear: 0.960},
		right:   [numOdds + 1]float64{featAnswers: 0.094, featAbout: -0.004, featSpan: 0.020, featOwn: -0.113, featWindow: -0.771, featRank: 1.389, featNear: -0.401, featNames: -0.934, featNumbers: -1.412, featDate: 0.374, featThin: -0.087, featCloserAnswers: 0.042, featCloserAbout: -0.057, featCloserSpan: 0.036, featCloserNear: 2.227, oddsScore: -0.127, oddsMargin: 0.255, oddsMost: 0.175, oddsSpan: -0.021, numOdds: -0.915},
		exists:  [numOdds + 1]float64{featAnswers: 0.070, featAbout: -0.078, featSpan: 0.017, featOwn: -0.392, featWindow: -1.521, featRank: 1.233, featNear: -1.125, featNames: -1.141, featNumbers: -2.047, featDate: 0.229, featThin: -0.066, featCloserAnswers: 0.165, featCloserAbout: -0.071, featCloserSpan: -0.008, featCloserNear: 1.175, oddsScore: -0.164, oddsMargin: 0.029, oddsMost: 0.249, oddsSpan: 0.027, numOdds: 1.540},
		hedge:   0.4,
		refuse:  -1.030,
	}
	withoutReader = scale{
		weights: [numFeatures]float64{featOwn: 3.723, featWindow: 2.267, featRank: 2.146, featNames: -0.489, featNumbers: -0.271, featDate: 0.229, featThin: -0.268},
		right:   [numOdds + 1]float64{featOwn: -0.064, featWindow: 1.652, featRank: 0.437, featNames: -0.780, featNumbers: -0.901, featDate: 0.858, featThin: -3.488, oddsScore: 0.113, oddsMargin: 0.299, numOdds: -3.627},
		exists:  [numOdds + 1]float64{featOwn: 0.435, featWindow: -0.874, featRank: -1.984, featNames: -1.663, featNumbers: -1.723, featDate: 0.513, featThin: -0.243, oddsScore: -0.002, oddsMargin: -0.169, numOdds: 2.895},
		hedge:   0.15,
		refuse:  -0.322,
	}
)
