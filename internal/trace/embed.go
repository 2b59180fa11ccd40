package trace

// Embed asks a service for sentence vectors. What is computed here is no step.
type Embed struct {
	Head
	Begun
	Model string `json:"model"`
	Texts int    `json:"texts"`
}

// EmbedComplete is what a service gave, or what a search has had it make.
type EmbedComplete struct {
	Head
	Effect
	Model    string `json:"model"`
	Texts    int    `json:"texts,omitempty"`
	Query    string `json:"query,omitempty"` // of the search
	TokensIn int    `json:"tokens_in"`       // that were charged; what is kept from before costs none
}

func (*Embed) action() Action         { return ActionEmbed }
func (*EmbedComplete) action() Action { return ActionEmbedComplete }
