package settings

import "path/filepath"

// BlobPath and those below it are where things lie in the home folder.
func (c *Settings) BlobPath() string    { return filepath.Join(c.Home(), "blobs") }
func (c *Settings) IndexPath() string   { return filepath.Join(c.Home(), "library", "index.db") }
func (c *Settings) FoldersPath() string { return filepath.Join(c.Home(), "library", "folders") }

// DocumentsPath is where documents are that were handed over on the page.
func (c *Settings) DocumentsPath() string { return filepath.Join(c.Home(), "library", "documents") }
func (c *Settings) CachePath() string     { return filepath.Join(c.Home(), "cache") }

// RunsPath is the folder of the runs that were asked for over MCP.
func (c *Settings) RunsPath() string { return filepath.Join(c.Home(), "runs") }
func (c *Settings) SentPath() string { return filepath.Join(c.Home(), "sent.jsonl") }
func (c *Settings) PinsPath() string { return filepath.Join(c.Home(), "pins.json") }

// LoginsPath is the file of logins.
func (c *Settings) LoginsPath() string { return filepath.Join(c.Home(), "logins.json") }

// VectorsPath is the folder of vectors that were made before.
func (c *Settings) VectorsPath() string { return filepath.Join(c.Home(), "vectors") }

// TokensPath is the file of named tokens.
func (c *Settings) TokensPath() string { return filepath.Join(c.Home(), "tokens.json") }

// QueuePath is where questions wait that are worked on here.
func (c *Settings) QueuePath() string { return filepath.Join(c.Home(), "queue") }

// ClusterKeysPath is the file of the keys of a cluster.
func (c *Settings) ClusterKeysPath() string { return filepath.Join(c.Home(), "cluster-keys.json") }
