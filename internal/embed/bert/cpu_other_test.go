//go:build !unix

package bert

import "time"

func processorTime() time.Duration { return 0 }
