package marchwarden

// Block is one typed part of an answer. Its type says which fields it has. Every
// claim and every cell names its citations, counted from one like the markers.
type Block struct {
	Type BlockType `json:"type"`
	// Level, 1 to 3, and Text are a heading's.
	Level int    `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`
	// Claims are the sentences of a paragraph.
	Claims []Claim `json:"claims,omitempty"`
	// Items are the entries of a list, numbered if it is Ordered.
	Ordered bool    `json:"ordered,omitempty"`
	Items   []Claim `json:"items,omitempty"`
	// Columns and Rows are a table's. Each row has a cell a column.
	Columns []string `json:"columns,omitempty"`
	Rows    [][]Cell `json:"rows,omitempty"`
	// Citation is what a quote shows, or what a chart's numbers are from.
	Citation int `json:"citation,omitempty"`
	// Kind is how a chart is drawn, "bar" or "line"; Series are its numbers.
	Kind   string   `json:"kind,omitempty"`
	Series []Series `json:"series,omitempty"`
}

// BlockType tells what a block is.
type BlockType string

// The types of blocks.
const (
	Heading    BlockType = "heading"
	Paragraph  BlockType = "paragraph"
	List       BlockType = "list"
	TableBlock BlockType = "table"
	Quote      BlockType = "quote"
	Chart      BlockType = "chart"
)

// Cell is one cell of a table: a few words of its sources. An empty one says that
// nothing was found.
type Cell struct {
	Text      string `json:"text"`
	Citations []int  `json:"citations,omitempty"`
}

// Series is a row of numbers from a database, each under its label.
type Series struct {
	Name   string    `json:"name,omitempty"`
	Labels []string  `json:"labels"`
	Values []float64 `json:"values"`
}
